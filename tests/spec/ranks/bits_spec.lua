-- tests/spec/ranks/bits_spec.lua - a script prints the same bits, however many processes run it, and
-- whatever connects them.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local TRAIN = "tests/support/ranks_train.lua"

local function words_of(devices, schedules)
  return { TRAIN, tostring(devices), table.unpack(schedules) }
end

local function lines_of(out, err, code)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- Losses, norms, outputs, gradients, values and moments of all of it.
local function check(way, ranks, devices, schedules)
  local words = words_of(devices, schedules)
  local whole = lines_of(child.run(words))
  local shared = lines_of(jobs.run(way, ranks, words))
  assert.truthy(#whole > 100)
  for i, line in ipairs(whole) do assert.equal(line, shared[i]) end
  assert.equal(#whole, #shared)
end

describe("the bits of one process", function()
  it("are those of two processes with a device each", function()
    check("unix", 2, 2, { "gpipe", "1f1b", "interleaved_1f1b" })
  end)

  it("are those of two processes that both have every stage", function()
    check("unix", 2, 2, { "dualpipe" })
  end)

  it("are those of three processes with a device each", function()
    check("unix", 3, 3, { "gpipe", "1f1b", "zb_h1" })
  end)

  it("are those of two and three processes that share four devices", function()
    check("unix", 2, 4, { "dualpipe", "1f1b" })
    check("unix", 3, 4, { "dualpipe", "zbv" })
  end)

  it("are those of three processes of which one has no device", function()
    check("unix", 3, 2, { "1f1b" })
  end)

  for _, way in ipairs { "tcp", "hosts", "mpi" } do
    it("are those of processes that are connected by " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      check(way, 2, 2, { "1f1b", "dualpipe" })
      check(way, 3, 4, { "zbv" })
    end)
  end
end)
