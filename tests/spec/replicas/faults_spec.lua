-- tests/spec/replicas/faults_spec.lua - a replica that fails, or makes values that are not finite,
-- leaves all replicas as they were.

local child = dofile "tests/child.lua"

local SCRIPT = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
gp.seed(3)
local model = nn.Sequential {nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2)}
local pipe <close> = gp.pipeline(model, {
  balance = {2, 2}, replicas = 2, chunks = 2, loss = nn.MSELoss(),
})
local opt = optim.Adam(pipe:parameters(), {lr = 0.1})
pipe:use(opt)
local x, y = gp.randn({8, 4}, {seed = 1}), gp.randn({8, 2}, {seed = 2})
local function bytes()
  local list = {}
  for name, value in pairs(pipe:state_dict()) do list[#list + 1] = name .. value:bytes() end
  table.sort(list)
  return table.concat(list)
end
local before = bytes()
local good, message = pcall(pipe.step, pipe, x, y)
print(good, good and pipe.stats.skipped or message:match "[^\n]*$")
print("unchanged", before == bytes())
-- a step that failed is not counted, so that a fault of step 0 would strike again
if good then print("goes on", pipe:step(x, y) > 0, before ~= bytes()) end
]]

-- What a child with this fault prints, on so many ranks.
local function run(fault, ranks)
  local path = child.file(SCRIPT)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  words[#words + 1] = path
  local out, err, code = child.run(words, { environment = { GPIPE_FAULT = fault } })
  os.remove(path)
  assert.equal(0, code, err)
  return out
end

describe("in a pipeline of two replicas", function()
  for _, ranks in ipairs { 1, 2 } do
    it(("an action that fails on the second one leaves both as they were (%d ranks)"):format(ranks),
      function()
        local out = run("device=2,step=0,op=B,micro=3,action=fail", ranks)
        assert.matches("false\t.*GPIPE_FAULT asked for this failure", out)
        assert.matches("unchanged\ttrue", out)
      end)

    it(("gradients that are not finite on one skip the update of both (%d ranks)"):format(ranks),
      function()
        local out = run("device=3,step=0,op=B,micro=2,action=nan", ranks)
        assert.matches("true\t1\nunchanged\ttrue\ngoes on\ttrue\ttrue", out)
      end)
  end
end)
