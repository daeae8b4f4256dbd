-- lua/gpipe/schedule/published/pipedream_2bw.lua - 1F1B without a flush, with two versions of the
-- weights.
--
-- An update after every m micro-batches; those of batch b (from 0) use version max(0, b-1),
-- forward and backward, on every stage: a delay of one batch, and never more than two versions. No
-- bubble once the pipeline is full for m >= p-1; with fewer, stages start only m ahead, for
-- version b-1 to be there when batch b begins. min(p-s, m+1) activations alive. The rows show
-- `batches` batches from fill to drain.
-- Source: Narayanan et al. 2021 (PipeDream-2BW), section 3.1.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local rows, n = new_rows(p), opts.batches * m
  local function version(k) return math.max(0, k // m - 1) end
  for s = 0, p - 1 do
    local w = math.min(p - 1 - s, m)
    for i = 0, w - 1 do rows:F(s, s, i, version(i)) end
    for i = 0, n - 1 do
      if w + i < n then rows:F(s, s, w + i, version(w + i)) end
      rows:B(s, s, i, version(i))
      if i % m == m - 1 then rows:U(s, s, i // m) end
    end
  end
  return { placement = placement.line(p), rows = rows, batch = m }
end
