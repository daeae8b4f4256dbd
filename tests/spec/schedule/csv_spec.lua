-- tests/spec/schedule/csv_spec.lua - schedules as CSV: they are written as
-- torch.distributed.pipelining writes them, and read back.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with

local parse = gp.schedule.parse

describe("gp.schedule.parse", function()
  it("infers devices, stages, micro-batches and placement", function()
    local s = parse("0F0,0F1,,3F0,3I0,3F1,3I1,0I0,3W0,0I1,3W1,0W0,0W1\n"
      .. ",1F0,2F0,1F1,2F1,2I0,1I0,2I1,1I1,2W0,2W1,1W0,1W1\n")
    assert(s:verify())
    assert.same({ 2, 2, 4, 1, 0 }, { s.devices, s.chunks, s.stages, s.copies, s.batch })
    assert.same({ [0] = 0, 1, 1, 0 }, s.placement)
    assert.equal("csv", s.name)
    assert.equal("mine", parse("0F0,0B0", { name = "mine" }).name)
  end)

  it("infers stages of two devices", function()
    local s = parse("0F0,0F1,3F2,3B2,3F3,3B3,0B0,0B1\n1F0,2F2,1F1,2F3,2B2,1B0,2B3,1B1\n"
      .. "1F2,2F0,1F3,2F1,2B0,1B2,2B1,1B3\n0F2,0F3,3F0,3B0,3F1,3B1,0B2,0B3\n")
    assert(s:verify())
    assert.equal(2, s.copies)
    assert.same({ [0] = { 0, 3 }, { 1, 2 }, { 2, 1 }, { 3, 0 } }, s.placement)
    assert.same({ [0] = { 0, 0 }, { 0, 1 } }, parse("0F0,1F0,0F1\n1F1\n").placement)
  end)

  it("infers batches of asynchronous schedules", function()
    local one = "0F0@0,0B0@0,0U0,0F1@1,0B1@1,0U1"
    assert.equal(1, parse(one):verify().batch)
    assert.equal(2, parse("0F0@0,0B0@0,0F1@0,0B1@0,0U0,0F2@1,0B2@1,0F3@1,0B3@1,0U1\n"):verify().batch)
    assert.equal(0, parse("0F0,0B0,0F1,0B1,0U0"):verify().batch)
    assert.equal(2, parse("0F0@0,0B0@0,0F1@0,0B1@0,0U0", { batch = 2 }):verify().batch)
  end)

  it("takes spaces, quotes, CRLF, a byte order mark, and empty lines at the end",
    function()
    local plain = parse "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n"
    assert.same({ "0F0,0F1,,0B0,,0B1", ",1F0,1B0,1F1,1B1," }, plain:rows())
    for _, text in ipairs {
      " 0F0 , 0F1,,0B0,\t,0B1\r\n,1F0,1B0, 1F1,1B1,\r\n", "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,",
      "0F0,0F1,,0B0,,0B1\r,1F0,1B0,1F1,1B1,\r",
      "\u{FEFF}0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n\n \n",
      '"0F0","0F1","","0B0","","0B1"\n"","1F0","1B0","1F1","1B1",""\n',
    } do
      assert.equal(plain, parse(text))
    end
  end)

  it("keeps the line of a device that does nothing", function()
    local s = parse "0F0,0B0\n\n1F0,1B0\n"
    assert.same({ 3, 2 }, { s.devices, s.stages })
    assert.same({ [0] = 0, 2 }, s.placement)
    assert(s:verify())
  end)

  it("reads files from before October 2024", function()
    local old = parse("0F0,0F1,,1F0,1B0,1F1,1B1,0B0,1W0,0BW1,1W1,0W0\n", { old_letters = true })
    assert.equal("0F0,0F1,,1F0,1I0,1F1,1I1,0I0,1W0,0B1,1W1,0W0", old:rows()[1])
    fails_with("line 1, cell 3: '0BW1' is not an action", parse, "0F0,0F1,0BW1\n")
    fails_with("(old letters, B for I and BW for B: pass old_letters = true)", parse,
      "0F0,0F1,0BW1\n")
  end)

  it("reads sends, receives, pairs, shards and reductions", function()
    local text = "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
      .. "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n"
    assert.equal(text, parse(text):csv "comm")
    assert.equal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", parse(text):csv())
    local pair = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
    assert.equal(pair, parse(pair):csv())
    assert.equal(pair, parse("0F0,(0F1;0B0),0B1\n"):csv())
  end)

  it("says which line and cell cannot be read", function()
    fails_with("gp.schedule.parse: line 2, cell 3: '1X0' is not an action, expected \"2F0\"", parse,
      "0F0,0F1\n1F0,,1X0,1B0\n")
    fails_with("line 1, cell 2: '(0F1;' is not an action", parse, "0F0,(0F1;,0B0\n")
    fails_with("line 1, cell 4: '0F1000000' is not an action", parse,
      "0F0,(0F1;0B0),0B1,0F1000000\n")
    fails_with("line 2, cell 1: 'F0' is not an action", parse, "0F0\nF0\n")
    fails_with("the text is empty, expected a line per device", parse, "\r\n \n")
    fails_with("there is no action", parse, ",,\n,\n")
    fails_with("stage 1 has no action, expected stages 0 to 2", parse, "0F0,2F0\n")
    fails_with("stage 0 is on lines 1, 2 and 3, expected one device, or two", parse,
      "0F0\n0F1\n0F2\n")
    fails_with("text is 3, expected a string", parse, 3)
    fails_with("unknown option 'names' (did you mean 'name'?)", parse, "0F0", { names = 1 })
  end)

  it("leaves errors of the schedule to verify", function()
    local good, report = parse("0F0,0F1,0B0\n"):verify()
    assert.is_nil(good)
    assert.equal("complete", report[1].check)
  end)
end)

describe("csv", function()
  it("and parse are inverse", function()
    for _, name in ipairs { "naive", "gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zbv", "chimera",
      "dualpipe",
      "dualpipev", "pipedream", "pipedream_2bw" } do
      local s = gp.schedule.build(name, { devices = 4, chunks = 8 })
      assert.equal(s, parse(s:csv()), name)
      local lowered = parse(s:csv "comm")
      assert(lowered:verify())
      assert.equal(s:csv "comm", lowered:csv "comm")
      assert.equal(s:csv(), lowered:csv())
    end
  end)

  it("keeps empty cells in the compute form and drops them in the other", function()
    local s = parse "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n"
    assert.equal("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n", s:csv "compute")
    assert.is_nil(s:csv("comm"):find(",,", 1, true))
  end)

  it("refuses another form", function()
    local s = gp.schedule.build("gpipe", { devices = 1, chunks = 1 })
    fails_with('form is "comms" (string), expected one of "compute", "comm"', s.csv, s, "comms")
  end)
end)

describe("two schedules", function()
  it("are equal where they do the same", function()
    local a, b = parse "0F0,0B0\n1F0,1B0\n", gp.schedule.build("gpipe", { devices = 2, chunks = 1 })
    assert.equal(a, b)
    assert.are_not.equal(a, parse "1F0,1B0\n0F0,0B0\n")
    assert.are_not.equal(a, parse "0F0,,0B0\n1F0,1B0\n")
    assert.is_false(a == {})
  end)
end)

describe("a NUL in the text", function()
  it("does not end a line", function()
    for _, text in ipairs { "0F0,0B0,\0this is no action\n", "0F0,0B0,\0,99999999999999999999F0\n" } do
      local good, message = pcall(require "gpipe".schedule.parse, text)
      assert.is_false(good)
      assert.is_truthy(message:find("line 1, cell 3", 1, true), message)
    end
  end)
end)
