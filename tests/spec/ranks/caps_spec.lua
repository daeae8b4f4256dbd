-- tests/spec/ranks/caps_spec.lua - caps and checkpoint = "auto" over ranks: all of them decide
-- alike, as one process with the same devices does.

local child = dofile "tests/child.lua"

-- arg[1]: the policy, then a cap for each device, or "-".
local TRAIN = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(1)
local layers = {}
for i = 1, 8 do
  layers[i] = nn.Sequential { nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32) }
end
local devices = {}
for d = 1, 2 do
  local cap = arg[1 + d] ~= "-" and math.tointeger(arg[1 + d]) or nil
  local rank = gp.ranks() > 1 and d - 1 .. "/" or ""
  devices[d] = { rank .. "cpu:" .. d - 1, threads = 1, memory = cap }
end
local pipe <close> = gp.pipeline(nn.Sequential(layers), {
  devices = devices, balance = { 4, 4 }, chunks = 4, checkpoint = arg[1], loss = nn.MSELoss(),
})
local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
local x = gp.randn { 256, 32 }
local words = {}
for i = 1, 3 do
  local good, loss = pcall(pipe.step, pipe, x, x)
  if not good then
    words[#words + 1] = loss
    break
  end
  opt:step()
  words[i] = ("%a"):format(loss)
end
for d, one in ipairs(pipe:memory()) do
  words[#words + 1] = ("%d %d"):format(one.planned, one.cap or 0)
  assert(not one.cap or one.measured <= one.cap, "device " .. d)
end
local text = table.concat(words, "\n")
for r, other in ipairs(gp.all_gather(text)) do assert(other == text, other) end
print(text)
]]

local script = child.file(TRAIN)

local function train(ranks, ...)
  local words = ranks > 1 and { "--ranks", tostring(ranks), script } or { script }
  for _, word in ipairs { ... } do words[#words + 1] = tostring(word) end
  local out, err, code = child.run(words)
  assert(code == 0, err)
  return out
end

-- The bytes that the devices take with a policy, without caps.
local function taken(policy)
  local first, second = train(2, policy, "-", "-"):match "\n(%d+) 0\n(%d+) 0\n$"
  return math.tointeger(first), math.tointeger(second)
end

describe("caps over ranks", function()
  teardown(function() os.remove(script) end)

  local most, other = taken "never"
  local least = taken "always"

  it("let a plan pass that fits, with the bits of one process", function()
    assert.is_true(least < most)
    local out = train(2, "never", most, other)
    assert.equal(train(1, "never", "-", "-"):match "^[^\n]+\n[^\n]+\n[^\n]+",
      out:match "^[^\n]+\n[^\n]+\n[^\n]+")
  end)

  it("refuse on all ranks what one rank's device has no room for, with what would fit", function()
    local out = train(2, "never", "-", other - 4096)
    assert.truthy(out:find("step: device 1/cpu:1 may take", 1, true), out)
    assert.truthy(out:find('would fit: checkpoint = "', 1, true), out)
  end)

  it("are what checkpoint = \"auto\" fills, on all ranks alike", function()
    local cap = (most + least) // 2
    local out = train(2, "auto", cap, other)
    local first, second = out:match("\n(%d+) " .. cap .. "\n(%d+) " .. other .. "\n$")
    assert.truthy(first, out)
    assert.is_true(tonumber(first) <= cap and tonumber(first) > 0.8 * cap)
    assert.equal(other, tonumber(second)) -- the other rank's device keeps everything
    -- recomputation does not change a bit
    assert.equal(train(1, "never", "-", "-"):match "^[^\n]+\n[^\n]+\n[^\n]+",
      out:match "^[^\n]+\n[^\n]+\n[^\n]+")
  end)

  it("may be left out: auto then takes what the machine has", function()
    local out = train(2, "auto", "-", "-")
    assert.equal(most, tonumber(out:match "\n(%d+) 0\n%d+ 0\n$"))
  end)
end)
