-- tests/support/profile.lua - checks profiles on every kind of device.

local gp = require "gpipe"
local models = require "tests.support.models"
local nn, optim = gp.nn, gp.optim

local profile = {}

local x, y = models.ids(7, 6), models.ids(7, 6)

--- Open a pipeline of the small GPT on these devices; fields change its options.
function profile.pipe(devices, fields)
  local options = {
    balance = #devices == 1 and { 7 } or { 3, 4 }, devices = devices, chunks = 3,
    loss = nn.CrossEntropyLoss(), checkpoint = "except_last",
  }
  for key, value in pairs(fields or {}) do options[key] = value end
  local pipe = gp.pipeline(models.gpt()(), options)
  return pipe, optim.AdamW(pipe:parameters(), { lr = 1e-2 })
end

-- Returns the parameters as bytes.
local function bits(pipe)
  local parts = {}
  for i, entry in ipairs(pipe:parameters()) do
    parts[i] = table.concat(entry.value:to("cpu"):reshape({ -1 }):totable(), " ")
  end
  return table.concat(parts, "\n")
end

--- Return losses and weights of six steps; where `profiled`, a profile covers the fourth and the
--- fifth.
function profile.training(devices, fields, profiled)
  local pipe <close>, opt = profile.pipe(devices, fields)
  local losses = {}
  for i = 1, 6 do
    local function step()
      losses[i] = pipe:step(x, y)
      opt:step()
    end
    if profiled and (i == 4 or i == 5) then
      pipe:profile(step, { ceilings = false, eager = i == 5 })
    else
      step()
    end
  end
  return losses, bits(pipe)
end

--- Take a profile of a warm step with its update.
function profile.take(devices, fields, options)
  local pipe <close>, opt = profile.pipe(devices, fields)
  for _ = 1, 4 do
    pipe:step(x, y)
    opt:step()
  end
  return pipe:profile(function()
    pipe:step(x, y)
    opt:step()
  end, options or { ceilings = false }), pipe.stats
end

--- Sum a field over the rows that fit.
function profile.sum(p, field, fits)
  local sum = 0
  for _, row in ipairs(p.rows) do
    if not fits or fits(row) then sum = sum + row[field] end
  end
  return sum
end

--- Check that sums agree with each other, whatever was timed.
function profile.check_sums(p)
  for d, device in ipairs(p.devices) do
    local function sum(fits)
      return profile.sum(p, "seconds", function(row) return row.place == d - 1 and fits(row) end)
    end
    local function near(a, b) assert(math.abs(a - b) <= 1e-9 + 1e-6 * b, ("%g, %g"):format(a, b)) end
    near(sum(function() return true end), device.seconds)
    near(sum(function(row) return row.phase == "update" end), device.updates)
    near(sum(function(row) return row.phase == "copy" end), device.copies)
    local shares = profile.sum(p, "share", function(row) return row.place == d - 1 end)
    assert(device.seconds == 0 or math.abs(shares - 1) < 1e-6)
  end
  for _, row in ipairs(p.rows) do
    assert(row.count > 0 and row.seconds >= 0 and row.bytes >= 0 and row.flop >= 0)
    assert(math.abs(row.each * row.count - row.seconds) < 1e-9)
  end
end

return profile
