-- tests/spec/plan/planner_advice_spec.lua - where nothing fits, what gp.plan says that would fit does:
-- it then plans, the pipeline opens, and a step runs under these caps.
local gp = require "gpipe"
local capacity = require "gpipe.plan.capacity"
local sizes = require "gpipe.sizes"
local nn = gp.nn

local ROWS = 8

local function mlp(width)
  local list = {}
  for i = 1, 6 do
    list[i] = nn.Sequential { nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(),
      nn.Linear(2 * width, width) }
  end
  return nn.Sequential(list), gp.zeros { ROWS, width }
end

local function convolutions()
  local list = { nn.Conv2d(3, 8, 3, { padding = 1 }) }
  for i = 2, 5 do
    list[i] = nn.Sequential { nn.Conv2d(8, 8, 3, { padding = 1 }), nn.ReLU() }
  end
  list[6], list[7] = nn.Flatten(), nn.Linear(8 * 64, 10)
  return nn.Sequential(list), gp.zeros { ROWS, 3, 8, 8 }
end

local function gpt()
  local x = gp.zeros({ ROWS, 16 }, { dtype = "i64" })
  return gp.models.gpt2 { layers = 6, width = 32, heads = 2, context = 16, vocabulary = 64 }, x, x
end

-- model, devices, memory, options of gp.plan. On CPU devices packed weights count as well, and
-- schedules that run I and W apart hold what is carried from one to the other.
local CASES = {
  { "an MLP under zb_h1", function() return mlp(32) end, 2, "80KiB",
    { schedules = { "zb_h1" }, checkpoint = "never", chunks = 2 } },
  { "convolutions under gpipe", convolutions, 2, "100KiB",
    { schedules = { "gpipe" }, checkpoint = "selective", chunks = 4 } },
  { "a GPT under 1f1b", gpt, 4, "90KiB", { schedules = { "1f1b" }, checkpoint = "always" } },
  { "a GPT with any schedule and policy", gpt, 2, "200KiB", { chunks = 1 } },
  { "a GPT that fills the memory", gpt, 2, "200KiB",
    { schedules = { "zbv" }, checkpoint = "auto", chunks = 4 } },
  { "an MLP on devices that differ", function() return mlp(48) end, 2,
    { "60KiB", "200KiB" }, { schedules = { "dualpipev" }, chunks = 4 } },
}

local function cpus(count, memory)
  local list = {}
  for d = 1, count do
    local own = type(memory) == "table" and memory[(d - 1) % #memory + 1] or memory
    list[d] = { "cpu:" .. d - 1, threads = 1, flops = 1e11, bandwidth = 1e11, memory = own }
  end
  return list
end

-- Plan under these conditions; where that is possible, run a step of the pipeline, too.
local function tried(case, change)
  gp.seed(4)
  local model, x, y = case[2]()
  local opts = { loss = nn.CrossEntropyLoss(), optimizer = "AdamW", batch = ROWS,
    devices = cpus(change.devices or case[3], change.memory or case[4]) }
  y = y or gp.zeros({ ROWS }, { dtype = "i64" })
  for key, value in pairs(case[5]) do opts[key] = value end
  opts.chunks, opts.checkpoint = change.chunks or opts.chunks, change.checkpoint or opts.checkpoint
  local plan, message = gp.plan(model, { x, y }, opts)
  if not plan then return nil, message end
  local pipe <close> = gp.pipeline(model, plan)
  pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-3 }))
  pipe:step(x, y)
  for d, one in ipairs(pipe:memory()) do assert.is_true(one.measured <= one.cap, "device " .. d) end
  return plan
end

-- "160.2 KiB" as option `memory` takes it.
local function option_of(text)
  return text:match "bytes" and tonumber(text:match "%d+") or text:gsub(" ", "")
end

-- What each piece of advice says to change.
local function changes_of(message)
  local list = {}
  for item in (message:match "It would fit with (.*)$" .. ", or with "):gmatch "(.-), or with " do
    local memory = item:match "^([%d.]+ %a+) of memory on each device"
    local change = { chunks = tonumber(item:match "^chunks = (%d+)"),
      checkpoint = item:match '^checkpoint = "(.*)"',
      devices = tonumber(item:match "^(%d+) devices like these"),
      memory = memory and option_of(memory) }
    assert.is_truthy(next(change), item)
    list[#list + 1] = change
  end
  return list
end

describe("where no plan fits, gp.plan's advice", function()
  for _, case in ipairs(CASES) do
    it("works: " .. case[1], function()
      local plan, message = tried(case, {})
      assert.is_nil(plan)
      for _, change in ipairs(changes_of(message)) do
        local made, why = tried(case, change)
        assert.is_truthy(made, why)
      end
    end)
  end

  it("is no more memory than the exact plan that it stands for takes", function()
    local case = CASES[1]
    local _, message = tried(case, {})
    local enough = option_of(message:match "([%d.]+ %a+) of memory on each device")
    local plan = assert(tried(case, { memory = enough }))
    local most, advised = math.max(table.unpack(plan.best.peak)), capacity.bytes("test", enough)
    assert.is_true(plan.best.exact)
    assert.is_true(most <= advised and advised <= 1.01 * most, enough)
  end)

  it("names the memory of the host where that is short", function()
    local list = {}
    for i = 1, 8 do list[i] = nn.Linear(64, 64) end
    local function planned(host_memory)
      return gp.plan(nn.Sequential(list), { gp.zeros { 512, 64 }, gp.zeros { 512, 64 } }, {
        devices = { { "sim:0", memory = "1GiB", flops = 1e11, bandwidth = 1e10,
          host_link = { bandwidth = 1e10 }, host_memory = host_memory } },
        chunks = 8, schedules = { "gpipe" }, checkpoint = "offload", optimizer = "SGD",
        loss = nn.MSELoss() })
    end
    local plan, message = planned "64KiB"
    assert.is_nil(plan)
    local enough = message:match "and ([%d.]+ %a+) of the host's memory for it"
    assert.is_truthy(planned(option_of(enough)), message)
  end)

  it("says \"about\" where only a profile is known", function()
    local profile = gp.profile { layers = { { forward = 1, saved_bytes = 4096 } }, rows = 1 }
    local _, message = gp.plan(profile, nil, { devices = { { "sim:0", memory = 64, flops = 1,
      bandwidth = 1 } }, batch = 1 })
    assert.matches("about [%d.]+ %a+ of memory on each device", message)
  end)
end)

describe("a text of bytes that are enough", function()
  it("is never less than they are, and a tenth of its unit more at most", function()
    for _, bytes in ipairs { 0, 1, 1023, 1024, 1025, 1100, 104858, 2 ^ 20 - 1, 2 ^ 20, 2 ^ 20 + 1,
      123456789, 5 * 2 ^ 30 + 17, 2 ^ 41 + 3 } do
      local text = sizes.at_least(bytes)
      local option = option_of(text)
      local given = type(option) == "number" and option or capacity.bytes("test", option)
      assert.is_true(given >= bytes and given <= math.max(bytes + 1, 1.1 * bytes), text)
    end
  end)
end)
