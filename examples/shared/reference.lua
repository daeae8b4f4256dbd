-- examples/shared/reference.lua - published makespans of schedules, which compare.lua
-- reproduces.
--
-- They were simulated with the sources' own implementations (or lists that equal theirs action by
-- action). Costs are those of a device's whole share of the model, for one micro-batch. The span
-- differs from the makespan where the devices do not finish together.
return {
  -- F = I = W = 1, no latency: {makespan, span} of 4 devices with 8 micro-batches, and of 8 with 16
  unit = {
    { { "gpipe" }, { 33, 33 }, { 69, 69 } },
    { { "1f1b" }, { 33, 33 }, { 69, 69 } },
    { { "1f1b", warmup = 2 }, { 33, 33 }, { 69, 69 } },
    { { "interleaved_1f1b", stages_per_device = 2 }, { 28.5, 28.5 }, { 58.5, 58.5 } },
    { { "interleaved_1f1b", stages_per_device = 4 }, { 26.25, 26.25 }, { 53.25, 53.25 } },
    { { "looped_bfs" }, { 28.5, 28.5 }, { 58.5, 58.5 } },
    { { "interleaved_zero_bubble" }, { 25.5, 25.5 }, { 51.5, 51.5 } },
    { { "zb_h1" }, { 27, 27 }, { 55, 55 } },
    { { "zb_h2" }, { 27, 24 }, { 55, 48 } },
    { { "zbv" }, { 25.5, 24 }, { 51.5, 48 } },
    { { "v_half" }, { 26.5, 26.5 }, { 56.5, 56.5 } },
    { { "v_min" }, { 29.5, 29.5 }, { 61.5, 61.5 } },
    { { "dualpipev" }, { 27, 27 }, { 55, 55 } },
    { { "dualpipe" }, { 26, 26 }, { 54, 54 } },
    { { "chimera" }, { 30, 30 }, { 66, 66 } },
  },
  -- F = 10, I = 12, W = 8, a hop takes 1, 8 devices: {makespan, span} of 16 micro-batches, makespan
  -- of 32
  unequal = {
    { { "gpipe" }, { 704, 704 }, 1184 },
    { { "1f1b" }, { 730, 730 }, 1238 },
    { { "1f1b", warmup = 2 }, { 704, 704 }, 1184 },
    { { "interleaved_1f1b", stages_per_device = 2 }, { 615, 615 }, 1095 },
    { { "interleaved_1f1b", stages_per_device = 4 }, { 594.5, 594.5 }, 1074.5 },
    { { "looped_bfs" }, { 599, 599 }, 1079 },
    { { "interleaved_zero_bubble" }, { 565, 565 }, 1045 },
    { { "zb_h1" }, { 606, 606 }, 1086 },
    { { "zb_auto", memory = 8, F = 10, I = 12, W = 8, comm = 1 }, { 606, 606 }, 1086 },
    { { "zb_h2" }, { 557, 536 }, 1037 },
    { { "zb_auto", memory = 16, F = 10, I = 12, W = 8, comm = 1 }, { 557, 528 }, 1037 },
    { { "zbv" }, { 555, 548 }, 1035 },
    { { "v_half" }, { 639, 639 }, 1119 },
    { { "v_min" }, { 819, 819 }, 1475 },
    { { "dualpipev" }, { 620, 620 }, 1128 },
    { { "dualpipe" }, { 575, 575 }, 1069 },
    { { "chimera" }, { 691, 691 }, 1315 },
  },
}
