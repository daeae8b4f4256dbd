-- tests/spec/asynchronous_spec.lua - asynchronous schedules follow their papers' update rules, bit for bit.
--
-- Sources: Narayanan et al. 2019 (PipeDream: weight stashing, vertical sync), 2021 (PipeDream-2BW). The rules are
-- simulated one mini-batch after another in tests/support/asynchronous.lua.
local gp = require "gpipe"
local asynchronous = require "tests.support.asynchronous"
local nn, optim = gp.nn, gp.optim

local RULES = { "pipedream", "vertical_sync", "pipedream_2bw" }

local function check(made, rule, p, chunks, script, options)
  local want = asynchronous.simulate(made, rule, p, chunks, script)
  local got = asynchronous.run(made, rule, p, chunks, script, options)
  local what = asynchronous.difference(want, got)
  if what then error(("%s, %d stages, %d chunks: %s"):format(rule, p, chunks, what), 2) end
  return got
end

-- n steps of the same rows, with another learning rate at each.
local function steady(n, rows)
  local script = {}
  for t = 1, n do script[t] = { rows = rows, lr = 0.02 / t } end
  return script
end

describe("losses, parameters and moments are those of the update rule", function()
  for _, rule in ipairs(RULES) do
    for p = 1, 8 do
      it(("%s, %d stages"):format(rule, p), function()
        for _, chunks in ipairs { 1, 2, 3, 5, 8 } do
          check(asynchronous.tower(), rule, p, chunks, steady(5, 2 * chunks))
        end
      end)
    end
  end
end)
