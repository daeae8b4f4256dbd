-- tests/spec/plan/own_recompute_spec.lua - a schedule that names R itself gives the same bits in
-- every mode of option checkpoint, wherever its R stands.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local MODES = {
  "never", "selective", "except_last", "always", "auto",
  { "keep", "selective", "recompute", "recompute", "selective", "keep" },
}

local function line(p)
  local placement = {}
  for d = 0, p - 1 do placement[d] = d end
  return placement
end

-- GPipe in which device d recomputes micro-batch i if chosen(d, i), `ahead` backward passes early;
-- the backward pass in one piece or in two.
local function define(name, chosen, ahead, in_two)
  gp.schedule.define(name, function(p, m)
    local rows = gp.schedule.rows(p)
    local function again(d, i)
      if i < m and chosen(d, i) then rows:R(d, d, i) end
    end
    local function backward(d, i)
      if not in_two then return rows:B(d, d, i) end
      rows:I(d, d, i)
      if i > 0 then rows:W(d, d, i - 1) end
      if i == m - 1 then rows:W(d, d, i) end
    end
    for d = 0, p - 1 do
      for i = 0, m - 1 do rows:F(d, d, i) end
      for i = 0, ahead - 1 do again(d, i) end
      for i = 0, m - 1 do
        again(d, i + ahead)
        backward(d, i)
      end
    end
    return { placement = line(p), rows = rows }
  end)
end

local function every() return true end
local function odd(d, i) return (d + i) % 2 == 1 end
local function last(_, i) return i == 3 end

local SCHEDULES = {
  { "own R of all", every, 0 }, { "own R of every other", odd, 0 },
  { "own R of the last", last, 0 }, { "own R two ahead", every, 2 },
  { "own R of every other, one ahead", odd, 1 },
  { "own R with I and W", every, 0, true }, { "own R ahead of I and W", odd, 1, true },
}
for _, one in ipairs(SCHEDULES) do define(table.unpack(one, 1, 4)) end

local function model()
  gp.seed(3)
  local list = {}
  for i = 1, 6 do
    list[i] = nn.Sequential {
      nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 64),
    }
  end
  return nn.Sequential(list)
end

gp.seed(1)
local x, y = gp.randn { 62, 64 }, gp.randint(0, 64, { 62 })

-- Returns losses and parameters after three steps, as text, and the memory of the devices.
local function train(schedule, checkpoint, cap)
  local made = model()
  local devices = {}
  for d = 1, 2 do devices[d] = { "cpu:" .. d - 1, threads = 1, memory = cap } end
  local pipe <close> = gp.pipeline(made, {
    balance = { 3, 3 }, devices = devices, chunks = 4, schedule = schedule, seed = 5,
    checkpoint = checkpoint, loss = nn.CrossEntropyLoss(),
  })
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local parts = {}
  for i = 1, 3 do
    parts[i] = ("%a"):format(pipe:step(x, y))
    opt:step()
  end
  parts[4] = ("%a"):format(pipe:evaluate(x, y))
  for _, entry in ipairs(made:parameters()) do parts[#parts + 1] = entry.param:bytes() end
  return table.concat(parts, "\n"), pipe:memory()
end

describe("a schedule that names R", function()
  for _, one in ipairs(SCHEDULES) do
    it("gives the bits of gpipe without recomputation in every mode: " .. one[1], function()
      local wanted = train("gpipe", "never")
      for _, mode in ipairs(MODES) do
        local got, memory = train(one[1], mode)
        local name = type(mode) == "table" and "by layer" or mode
        assert.is_true(got == wanted, name)
        for d = 1, 2 do assert.equal(memory[d].planned, memory[d].measured, name) end
      end
    end)
  end

  it("gives the same bits under a cap", function()
    local _, most = train("gpipe", "never")
    local _, least = train("gpipe", "always")
    local cap = (most[1].planned + math.max(least[1].planned, least[2].planned)) // 2
    local wanted = train("gpipe", "never")
    for _, one in ipairs(SCHEDULES) do
      if not one[4] then
        local got, memory = train(one[1], "auto", cap)
        assert.is_true(got == wanted, one[1])
        for d = 1, 2 do assert.is_true(memory[d].measured <= cap) end
      end
    end
  end)

  it("takes less memory the more micro-batches it recomputes, with never", function()
    local sums = {}
    for k, schedule in ipairs { "gpipe", "own R of every other", "own R of all" } do
      local _, memory = train(schedule, "never")
      sums[k] = memory[1].planned + memory[2].planned
    end
    assert.is_true(sums[1] > sums[2] and sums[2] > sums[3], table.concat(sums, " "))
    local _, always = train("gpipe", "always")
    assert.equal(always[1].planned + always[2].planned, sums[3])
  end)
end)
