-- scripts/bench/fuse.lua - what fusing neighbouring ops of a layer gains: bytes moved, and time.
--
-- Two pipelines of the same transformer blocks take turns, one of them with every op on its own;
-- their losses must have the same bits on a CPU.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local figure, model = require "figure", require "model"
local flags = require "gpipe.flags"

local opt = flags.parse("Compare training steps with and without fused ops.", {
  { "--rounds N", 9, "turns" }, { "--threads N", 1, "of the device" },
  { "--layers N", 2, "blocks" },
  { "--width N", 384, "width" }, { "--heads N", 6, "heads" },
  { "--context N", 128, "tokens in a sequence" },
  { "--batch N", 4, "sequences in a step" },
}, arg)

local ids = model.bytes(opt)

local function open(fuse)
  gp.seed(0)
  return gp.pipeline(model.gpt(opt), {
    devices = model.devices(1, opt.threads), checkpoint = "never", loss = gp.nn.CrossEntropyLoss(),
    fuse = fuse,
  })
end

-- Counts the bytes that a forward and backward pass move, from the shapes.
local function bytes_of(pipe)
  local _, plan = next(pipe.plans)
  local total = 0
  for _, action in ipairs { "F", "B" } do
    total = total + select(2, inside(pipe).core:cost(plan.handle, 0, action))
  end
  return total
end

local fused <close> = open(true)
local apart <close> = open(false)
assert(fused:step(ids, ids) == apart:step(ids, ids), "the losses differ")
figure.print("fuse.bytes", bytes_of(fused) / bytes_of(apart), "of those of single ops", "<=", 0.9)
local times = figure.alternate(opt.rounds, {
  fused = function() fused:step(ids, ids) end, apart = function() apart:step(ids, ids) end,
}, { "fused", "apart" })
-- Fused ops must be no slower; they gain little, as unfused row-wise ops find their rows in the
-- cache.
figure.print("fuse.speed", figure.median(figure.ratios(times.apart, times.fused)),
  "x of single ops", ">=", 0.97)
