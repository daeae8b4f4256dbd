-- tests/spec/ranks/shared_spec.lua - large values between ranks of one host go through memory that
-- both can reach, with the same bits.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

-- Prints losses and bytes; the last line says how many pieces of shared memory rank 0 has.
local TRAIN = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(4)
local model = nn.Sequential {
  nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Dropout(0.1), nn.Linear(256, 256),
  nn.ReLU(), nn.Linear(256, 8),
}
local pipe <close> = gp.pipeline(model, { devices = 2, chunks = 4, schedule = arg[1],
  loss = nn.CrossEntropyLoss() })
local opt = gp.optim.AdamW(pipe:parameters(), { lr = 0.01 })
pipe:use(opt)
local x, y = gp.randn { 128, 64 }, gp.randint(0, 8, { 128 })
local bad = gp.full({ 128 }, 99, { dtype = "i64" })
for step = 1, 4 do
  print(("%.17g"):format(pipe:step(x, y)))
  if step == 2 then print((pcall(pipe.step, pipe, x, bad))) end
end
for _, name in ipairs { "1.weight", "8.weight" } do
  print(("%q"):format(pipe:state_dict()[name]:bytes()))
end
local maps = io.open("/proc/self/maps"):read "a"
print("maps", select(2, maps:gsub("memfd:gpipe%-slots", "")))]]

local script = child.file(TRAIN)

-- What is printed, and the number of pieces of shared memory.
local function output(way, ranks, schedule, variables)
  local words = { script, schedule }
  local out, err, code
  if ranks == 1 then out, err, code = child.run(words) else out, err, code = jobs.run(way, ranks, words, variables) end
  assert.equal("", err)
  assert.equal(0, code)
  local text, maps = out:match "^(.*)maps\t(%d+)\n$"
  return text, tonumber(maps)
end

describe("large values between ranks of one host", function()
  for _, case in ipairs { { "unix", "1f1b" }, { "tcp", "gpipe" }, { "unix", "dualpipe" } } do
    local way, schedule = case[1], case[2]
    it(("are those of one process through shared memory, over %s with %s"):format(way, schedule), function()
      local whole = output("", 1, schedule)
      local shared, maps = output(way, 2, schedule)
      assert.truthy(#whole > 10000)
      assert.truthy(whole == shared)
      assert.truthy(maps >= 2) -- the slots that it reads, and those that it writes
    end)
  end

  it("are sent where GPIPE_RANKS_SHARED is 0, with the same bits", function()
    local whole = output("", 1, "1f1b")
    local sent, maps = output("unix", 2, "1f1b", { GPIPE_RANKS_SHARED = "0" })
    assert.truthy(whole == sent)
    assert.equal(0, maps)
  end)

  it("leave no memory when the pipeline is closed", function()
    local text = TRAIN:gsub("local maps", "pipe:close()\nlocal maps")
    local out = jobs.script("unix", 2, text)
    assert.truthy(out:find("maps\t0\n", 1, true), out:sub(-40))
  end)

  teardown(function() os.remove(script) end)
end)
