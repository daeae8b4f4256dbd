-- tests/spec/ranks/bits_spec.lua - a script prints the same bits, however many processes run it.

local child = dofile "tests/child.lua"

local TRAIN = "tests/support/ranks_train.lua"

local function output(ranks, devices, schedules)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  words[#words + 1] = TRAIN
  words[#words + 1] = tostring(devices)
  for _, name in ipairs(schedules) do words[#words + 1] = name end
  local out, err, code = child.run(words)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  return out
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- Losses, norms, outputs, gradients, values and moments of all of it.
local function check(ranks, devices, schedules)
  local whole = lines_of(output(1, devices, schedules))
  local shared = lines_of(output(ranks, devices, schedules))
  assert.truthy(#whole > 100)
  for i, line in ipairs(whole) do assert.equal(line, shared[i]) end
  assert.equal(#whole, #shared)
end

describe("the bits of one process", function()
  it("are those of two processes with a device each", function()
    check(2, 2, { "gpipe", "1f1b", "interleaved_1f1b" })
  end)

  it("are those of two processes that both have every stage", function()
    check(2, 2, { "dualpipe" })
  end)

  it("are those of three processes with a device each", function()
    check(3, 3, { "gpipe", "1f1b", "zb_h1" })
  end)

  it("are those of two and three processes that share four devices", function()
    check(2, 4, { "dualpipe", "1f1b" })
    check(3, 4, { "dualpipe", "zbv" })
  end)

  it("are those of three processes of which one has no device", function()
    check(3, 2, { "1f1b" })
  end)
end)
