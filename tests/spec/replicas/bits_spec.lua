-- tests/spec/replicas/bits_spec.lua - R replicas of m micro-batches give the bits of one pipeline
-- with R * m, over any number of processes.

local child = dofile "tests/child.lua"

local TRAIN = "tests/support/replicas_train.lua"

-- Two cells are {replicas, chunks}; devices of a replica; over so many ranks.
local function output(ranks, cell, stages, schedules)
  local words = ranks > 1 and { "--ranks", tostring(ranks) } or {}
  for _, word in ipairs { TRAIN, cell[1], cell[2], stages } do
    words[#words + 1] = tostring(word)
  end
  for _, name in ipairs(schedules) do words[#words + 1] = name end
  local out, err, code = child.run(words)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  return out
end

-- Gradients can be read by one process alone.
local function lines_of(text, gradients)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    if gradients or not line:match "^gradient of" then lines[#lines + 1] = line end
  end
  return lines
end

local function compare(one, other, gradients)
  local wanted, got = lines_of(one, gradients), lines_of(other, gradients)
  assert.truthy(#wanted > 100)
  for i, line in ipairs(wanted) do assert.equal(line, got[i]) end
  assert.equal(#wanted, #got)
end

-- Losses, norms, outputs, gradients, values and moments of all cells.
local function check(stages, schedules, cells)
  local one = output(1, { 1, 8 }, stages, schedules)
  for _, cell in ipairs(cells or { { 2, 4 }, { 4, 2 }, { 8, 1 } }) do
    compare(one, output(1, cell, stages, schedules), true)
  end
end

local function check_ranks(ranks, stages, schedules, cells)
  local one = output(1, { 1, 8 }, stages, schedules)
  for _, cell in ipairs(cells) do compare(one, output(ranks, cell, stages, schedules), false) end
end

describe("the bits of one pipeline with eight micro-batches", function()
  it("are those of two, four and eight replicas that share them", function()
    check(2, { "gpipe", "1f1b", "interleaved_1f1b", "zb_h1" })
  end)

  it("are those of replicas of one stage, and of four", function()
    check(1, { "1f1b" }, { { 2, 4 }, { 8, 1 } })
    check(4, { "1f1b", "interleaved_1f1b", "zb_h1" }, { { 2, 4 } })
  end)

  it("are those of two processes with replicas", function()
    check_ranks(2, 2, { "gpipe", "1f1b", "interleaved_1f1b", "zb_h1" },
      { { 1, 8 }, { 2, 4 }, { 4, 2 }, { 8, 1 } })
  end)

  it("are those of four processes with replicas", function()
    check_ranks(4, 2, { "1f1b", "zb_h1" }, { { 1, 8 }, { 2, 4 }, { 4, 2 }, { 8, 1 } })
  end)

  it("are those of three processes that share the devices unevenly", function()
    check_ranks(3, 2, { "1f1b" }, { { 2, 4 }, { 4, 2 } })
  end)
end)
