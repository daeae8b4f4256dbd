-- tests/spec/cli/flags_spec.lua - command-line options of scripts.
local flags = require "gpipe.flags"

local SPEC = {
  { "--data PATH", nil, "what to read" },
  { "--steps N", 100, "steps" },
  { "--lr X", 0.5, "rate" },
  { "--seed N", 1, "seed", min = 0 },
  { "--quiet", false, "no line" },
}

local function fault_of(...)
  local values, fault = flags.read(SPEC, { ... })
  assert.is_nil(values)
  return fault
end

describe("flags.read", function()
  it("gives the defaults", function()
    assert.are.same({ steps = 100, lr = 0.5, seed = 1, quiet = false }, flags.read(SPEC, {}))
  end)

  it("takes values after a space or an equals sign", function()
    local values = flags.read(SPEC, { "--steps", "7", "--data=a=b", "--quiet", "--lr", "1e-3" })
    assert.are.same({ steps = 7, data = "a=b", lr = 1e-3, seed = 1, quiet = true }, values)
  end)

  it("keeps integers integers", function()
    assert.are.equal("integer", math.type(flags.read(SPEC, { "--steps", "7" }).steps))
  end)

  it("lets seed be 0", function()
    assert.are.equal(0, flags.read(SPEC, { "--seed", "0" }).seed)
  end)

  local faults = {
    { { "--stpes", "3" }, "unknown option '--stpes' (did you mean '--steps'?)" },
    { { "words" }, "unknown option 'words'" },
    { { "-s" }, "unknown option '-s'" },
    { { "--steps" }, "--steps needs a value" },
    { { "--steps", "0" }, "--steps is '0', expected an integer of at least 1" },
    { { "--steps", "2.5" }, "--steps is '2.5', expected an integer of at least 1" },
    { { "--steps", "ten" }, "--steps is 'ten', expected an integer of at least 1" },
    { { "--lr", "-1" }, "--lr is '-1', expected a number of at least 0" },
    { { "--lr", "nan" }, "--lr is 'nan', expected a number of at least 0" },
    { { "--quiet=yes" }, "--quiet takes no value" },
  }
  for _, case in ipairs(faults) do
    it("refuses " .. table.concat(case[1], " "), function()
      assert.are.equal(case[2], fault_of(table.unpack(case[1])))
    end)
  end
end)

describe("the flags of runs", function()
  local words = { [0] = "a.lua", "--run-dir", "runs/a", "--minutes", "0.5", "--resume" }

  it("are there where the script asks for them", function()
    local got = flags.parse("Trains.", SPEC, words, { run = true })
    assert.are.same({ "runs/a", 0.5, true, false },
      { got["run-dir"], got.minutes, got.resume, got["dry-run"] })
    assert.is_nil(flags.parse("Trains.", SPEC, { [0] = "a.lua" }, { run = true })["run-dir"])
  end)

  it("yield to a flag of the script with the same name", function()
    local spec = { { "--minutes T", 3, "of its own" } }
    assert.are.equal(3, flags.parse("Trains.", spec, { [0] = "a" }, { run = true }).minutes)
    assert.are.equal(1, #spec)
  end)

  it("are unknown to other scripts", function()
    assert.are.equal("unknown option '--run-dir'", fault_of("--run-dir", "a"))
  end)

  it("take numbers without a default as numbers", function()
    local spec = { { "--minutes T", nil, "", number = true } }
    assert.are.equal(2.5, flags.read(spec, { "--minutes", "2.5" }).minutes)
    assert.are.equal("--minutes is 'x', expected a number of at least 0",
      select(2, flags.read(spec, { "--minutes", "x" })))
  end)
end)

describe("flags.usage", function()
  it("names every option, its use and its default", function()
    assert.are.equal([[
usage: gpipe-lua a.lua [options]
Does a thing.

  --data PATH  what to read
  --steps N    steps (100)
  --lr X       rate (0.5)
  --seed N     seed (1)
  --quiet      no line
  --help       print this and stop]], flags.usage("Does a thing.", SPEC, "a.lua"))
  end)
end)

describe("a flag that names a place to write", function()
  local spec = {
    { "--save DIR", nil, "weights", writes = "folder" }, { "--html FILE", nil, "page", writes = "file" },
  }

  it("is checked before the work", function()
    local place = os.tmpname()
    os.remove(place)
    assert.equal(place .. "/a/b", flags.read(spec, { "--save", place .. "/a/b" }).save)
    assert.is_truthy(io.open(place .. "/a/b"))
    assert.equal(place .. "/x.html", flags.read(spec, { "--html", place .. "/x.html" }).html)
    assert.is_nil(io.open(place .. "/x.html"))
    for _, words in ipairs { { "--html", place .. "/none/x" }, { "--html", place },
      { "--save", "/proc/none" } } do
      local values, fault = flags.read(spec, words)
      assert.is_nil(values)
      assert.is_truthy(fault:find("nothing can be written there", 1, true), fault)
      assert.is_truthy(fault:find(words[1], 1, true), fault)
    end
    os.execute(("rm -r '%s'"):format(place))
  end)
end)
