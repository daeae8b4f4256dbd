-- tests/spec/plan/process_memory_spec.lua - gp.memory {process = true}: what the process has in
-- memory beyond the plans, and for what.
local child = require "tests.child"
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with

-- Sanitizers have an allocator of their own.
local counted = (os.getenv "GPIPE_SANITIZE" or "") == "" and it or pending

local TRAINED = [[
local gp = require "gpipe"
local model = MODEL
local pipe <close> = gp.pipeline(model, {
  devices = {{"cpu:0", threads = 1}, {"cpu:1", threads = 1}}, balance = {2, #model - 2},
  chunks = 4, loss = gp.nn.CrossEntropyLoss(),
})
pipe:use(gp.optim.AdamW(pipe:parameters(), {lr = 1e-3}))
local x, y = SAMPLE
for _ = 1, 2 do pipe:step(x, y) end
collectgarbage()
collectgarbage()
local planned, own = 0, 4 * x:numel() + 8 * y:numel()
for _, one in ipairs(pipe:memory()) do planned = planned + one.planned end
local p = gp.memory {process = true}.process
print(p.resident, planned, own, p.runtime, p.script, p.libraries, p.files, p.code, p.stacks,
  p.unused)
]]

local CASES = {
  ["a GPT"] = { "gp.models.gpt2 {layers = 4, width = 128, heads = 4, context = 64, "
    .. "vocabulary = 256, dropout = 0}",
    "gp.randint(0, 256, {8, 64}), gp.randint(0, 256, {8, 64})" },
  ["a ResNet"] = { "gp.models.resnet(18, {classes = 10})",
    "gp.randn {8, 3, 64, 64}, gp.randint(0, 10, {8})" },
}

-- Bytes after training, in the order in which they are printed.
local function trained(case)
  local script = child.file((TRAINED:gsub("MODEL", case[1]):gsub("SAMPLE", case[2])))
  local out, err, code = child.run { script }
  os.remove(script)
  assert.equal(0, code, err)
  local list = {}
  for word in out:gmatch "%S+" do list[#list + 1] = math.tointeger(word) end
  return table.unpack(list)
end

describe("gp.memory {process = true}", function()
  local MIB = 1 << 20

  for name, case in pairs(CASES) do
    counted("explains what a process that trains " .. name .. " has beyond its plans", function()
      local resident, planned, own, runtime, script, libraries, files, code, stacks, unused =
        trained(case)
      assert.equal(resident, runtime + script + libraries + files + code + stacks + unused)
      -- models' and plans' own data
      assert.is_true(runtime >= planned + own and runtime - planned - own < 3 * MIB)
      assert.is_true(math.abs(unused) < 3 * MIB, unused)
      assert.is_true(libraries >= 0 and libraries < 8 * MIB, libraries)
      assert.is_true(files > MIB and script > 0 and stacks > 0 and code >= 0)
    end)
  end

  it("is what the kernel says", function()
    local status = assert(io.open "/proc/self/status"):read "a"
    local kib = tonumber(status:match "VmRSS:%s+(%d+)")
    local resident = gp.memory { process = true }.process.resident
    assert.is_true(math.abs(resident - 1024 * kib) < 2 * MIB)
  end)

  it("is left out where it is not asked for", function()
    assert.is_nil(gp.memory().process)
    fails_with("expected true or false", gp.memory, { process = 1 })
  end)
end)
