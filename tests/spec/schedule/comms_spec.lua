-- tests/spec/schedule/comms_spec.lua - sends and receives are added to a schedule as
-- torch.distributed.pipelining does.
--
-- The lists and the numbers of steps and actions are torch's: from its CSV files and its dry run.
local gp = require "gpipe"

local parse = gp.schedule.parse

-- Returns the schedule with sends and receives, as text.
local function lowered(s) return s:verify():csv "comm" end

local function count_actions(text) return select(2, text:gsub("[^,\n]+", "")) end

-- Returns the steps of the dry run, and the number of all actions.
local function figures(s)
  local text = lowered(s)
  return { parse(text):verify().checked:steps(), count_actions(text) }
end

local function merged(s)
  local rows = s:verify().checked:merged()
  return gp.schedule.wrap("merged", { rows = rows, placement = s.placement }, s.chunks)
end

local SIMPLE = parse "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n"
local V = parse("0F0,0F1,,3F0,3I0,3F1,3I1,0I0,3W0,0I1,3W1,0W0,0W1\n"
  .. ",1F0,2F0,1F1,2F1,2I0,1I0,2I1,1I1,2W0,2W1,1W0,1W1\n")

describe("sends and receives", function()
  it("stand where torch puts them: two stages", function()
    assert.equal("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      .. "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n", lowered(SIMPLE))
  end)

  it("stand where torch puts them: four stages in a V, none inside a device", function()
    assert.equal("1RECV_F0,1RECV_F1,1F0,2F0,2SEND_F0,1F1,2RECV_B0,2F1,2SEND_F1,2I0,2RECV_B1,1I0,1SEND_B0,2I1,1I1,"
      .. "1SEND_B1,2W0,2W1,1W0,1W1", lowered(V):match "\n(.-)\n")
  end)

  it("take torch's number of steps and actions", function()
    local function build(name, p, m) return gp.schedule.build(name, { devices = p, chunks = m }) end
    assert.same({ 11, 16 }, figures(SIMPLE))
    assert.same({ 24, 40 }, figures(V))
    assert.same({ 61, 160 }, figures(build("1f1b", 4, 8)))
    assert.same({ 56, 160 }, figures(build("gpipe", 4, 8)))
    assert.same({ 148, 352 }, figures(build("interleaved_1f1b", 4, 8)))
    assert.same({ 133, 384 }, figures(build("zbv", 4, 8)))
    local zero_bubble = merged(build("interleaved_zero_bubble", 2, 8))
    assert.same({ 113, 176 }, figures(zero_bubble))
    assert.equal(32, count_actions(zero_bubble:rows()[1]))
    assert.equal(48, count_actions(zero_bubble:rows()[2]))
  end)

  it("of an overlapped pair stand after it", function()
    local s = parse "0F0,0F1,(0F2;0B0),0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"
    assert.equal("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,(0F2;0B0)OVERLAP_F_B,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2",
      lowered(s):match "^(.-)\n")
  end)

  it("of a stage with two devices go to the one that has the micro-batch", function()
    local s = parse "0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n"
    assert.equal("0F0,0SEND_F0,1RECV_F1,1F1,1B1,1SEND_B1,0RECV_B0,0B0\n"
      .. "1RECV_F0,0F1,0SEND_F1,1F0,0RECV_B1,1B0,1SEND_B0,0B1\n", lowered(s))
  end)

  it("leave recomputation, updates and reductions where they are, and named messages alone",
    function()
    assert.equal("0F0,0SEND_F0,0R0,0RECV_B0,0B0,0REDUCE_GRAD,0U0\n1RECV_F0,1F0,1B0,1SEND_B0,1U0\n",
      lowered(parse "0F0,0R0,0B0,0REDUCE_GRAD,0U0\n1F0,1B0,1U0\n"))
    assert.equal("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
      lowered(parse "0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n"))
  end)
end)

describe("merging", function()
  it("makes B of I and the W after it, over empty cells too", function()
    assert.equal("0F0,0B0,0F1,0I1,0F2,0W1,0B2",
      merged(parse "0F0,0I0,,0W0,0F1,0I1,0F2,,0W1,0I2,0W2"):rows()[1])
  end)

  it("leaves pairs and other micro-batches alone", function()
    local row = "0F0,0F1,0I0,0I1,0W0,0W1"
    assert.equal(row, merged(parse(row)):rows()[1])
    row = "0F0,0F1,0I0,(0W0;0I1)OVERLAP_F_B,0W1"
    assert.equal(row, merged(parse(row)):rows()[1])
  end)
end)

describe("the dry run", function()
  it("runs one action of each device in a step, a pair as one", function()
    local function steps(text) return parse(text):verify().checked:steps() end
    assert.equal(2, steps "0F0,0B0")
    assert.equal(2, steps "0F0,,,0B0")
    assert.equal(3, steps "0F0,(0F1;0B0),0B1")
    assert.equal(6, steps "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0")
  end)
end)
