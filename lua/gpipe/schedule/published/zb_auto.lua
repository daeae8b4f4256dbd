-- lua/gpipe/schedule/published/zb_auto.lua - zero bubble under a limit of memory.
--
-- W goes where a device would wait, and at most `memory` activations of a micro-batch alive per
-- device: p makes ZB-1p (bubble and memory of ZB-H1), 2p ZB-2p (none, with an update without a
-- barrier). F, I, W (a number, or a list with one for each stage) and comm are what the list is
-- made for; with F = I = W = 1, p = 8 and a limit of 8, 12, 15 a device idles 7, 3, 0 between its
-- first and its last action. The best of eight trials, see bubble_filling.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 3.1, without its integer
-- program.

local new_rows = require("gpipe.core").rows
local errors = require "gpipe.errors"
local bubble_filling = require "gpipe.schedule.build.bubble_filling"
local placement = require "gpipe.schedule.build.placement"

-- A cost for all stages, or a list of costs, as {[device] = cost} from 0.
local function per_device(p, name, cost)
  local costs, each = {}, type(cost) == "table"
  if each and #cost ~= p then
    errors.raise("schedule zb_auto: option '%s' has %d costs, expected one for each of %d stages",
      name, #cost, p)
  end
  for d = 0, p - 1 do
    local one = each and cost[d + 1] or cost
    if type(one) ~= "number" or not (one >= 0 and one < math.huge) then
      errors.raise("schedule zb_auto: the cost %s of stage %d is %s, expected a number >= 0", name,
        d, errors.show(one))
    end
    costs[d] = one
  end
  return costs
end

local function best_trial(p, m, opts)
  local cost, best, shortest = {}, nil, math.huge
  for _, op in ipairs { "F", "I", "W" } do cost[op] = per_device(p, op, opts[op]) end
  for choice = 0, 7 do
    local trial, span = bubble_filling {
      p = p, m = m, memory = opts.memory or p, cost = cost, comm = opts.comm,
      overrun = choice & 4 ~= 0, backward_first = choice & 2 == 0, greedy = choice & 1 == 0,
    }
    if span < shortest then best, shortest = trial, span end
  end
  return best
end

return function(p, m, opts)
  local rows, trial = new_rows(p), best_trial(p, m, opts)
  for d = 0, p - 1 do
    local next = { F = 0, I = 0, W = 0 }
    for _, op in ipairs(trial[d].ops) do
      rows[op](rows, d, d, next[op])
      next[op] = next[op] + 1
    end
  end
  return { placement = placement.line(p), rows = rows }
end
