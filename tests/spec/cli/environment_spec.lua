-- tests/spec/cli/environment_spec.lua - the program warns about environment variables that are
-- misspelt, or whose values are unknown.

local child = dofile "tests/child.lua"
local environment = require "gpipe.environment"

local PIPELINE = [[
  local gp = require "gpipe"
  local model = gp.nn.Sequential {gp.nn.Linear(2, 2), gp.nn.Linear(2, 2)}
  gp.pipeline(model, {balance = {1, 1}, loss = gp.nn.MSELoss()}):step(gp.ones {2, 2}, gp.ones {2, 2})]]

local function run(variables)
  local out, err, code = child.run({ "-e", PIPELINE }, { environment = variables })
  assert.equal("", out)
  return err, code
end

describe("a variable GPIPE_…", function()
  local said = {
    { { GPIPE_FUSE = "maybe" }, "GPIPE_FUSE[^\n]*'maybe'" },
    { { GPIPE_GEMM = "nosuch" }, "GPIPE_GEMM[^\n]*'nosuch'" },
    { { GPIPE_ALONE = "x" }, "GPIPE_ALONE[^\n]*'x'" },
    { { GPIPE_TRACEBACK = "foo" }, "GPIPE_TRACEBACK[^\n]*'foo'" },
    { { GPIPE_WATCHDOGS = "3" }, "GPIPE_WATCHDOGS[^\n]*did you mean 'GPIPE_WATCHDOG'" },
    { { GPIPE_NOTHING = "1" }, "GPIPE_NOTHING" },
    { { GPIPE_FAULT = "device=9,action=fail" }, "no device 9" },
    { { GPIPE_FAULT = "stage=2,action=fail" }, "no stage 2" },
  }
  for _, case in ipairs(said) do
    local name, value = next(case[1])
    it(("is reported once, and the script runs: %s=%s"):format(name, value), function()
      local err, code = run(case[1])
      assert.matches(case[2], err)
      assert.equal(1, select(2, err:gsub("\n", "")))
      assert.equal(0, code)
    end)
  end

  local raised = {
    { { GPIPE_FAULT = "devcie=0,action=fail" }, "devcie" },
    { { GPIPE_WATCHDOG = "soon" }, "'soon'" },
    { { GPIPE_WHOLE_PLAN = "abc" }, "gp.pipeline: GPIPE_WHOLE_PLAN is 'abc'" },
  }
  for _, case in ipairs(raised) do
    local name, value = next(case[1])
    it(("is an error where it is used: %s=%s"):format(name, value), function()
      local err, code = run(case[1])
      assert.matches(case[2], err)
      assert.equal(1, code)
    end)
  end

  it("that is known, or belongs to the tools, is not reported", function()
    assert.equal("", (run { GPIPE_FUSE = "0", GPIPE_GEMM = "plain", GPIPE_TRACEBACK = "",
      GPIPE_BUILD = "x", GPIPE_TEST_ANY = "1", GPIPE_FAULT = "stage=1,op=U,action=fail" }))
  end)

  it("is in the table if the sources read it", function()
    local list = io.popen "grep -rhoE 'getenv[ (]*\"GPIPE_[A-Z0-9_]+' runtime bindings lua"
    for line in list:lines() do
      local name = line:match "GPIPE_[A-Z0-9_]+"
      assert.is_truthy(environment.variables[name], name)
    end
    list:close()
  end)
end)

describe("a name with a zero", function()
  it("is not a device", function()
    local gp = require "gpipe"
    local model = gp.nn.Sequential { gp.nn.Linear(2, 2) }
    for _, f in ipairs {
      function() gp.pipeline(model, { devices = { "cpu\0junk" } }) end,
      function() gp.ones { 2 }:to "cpu\0junk" end,
      function() gp.zeros({ 2 }, { device = "cpu\0junk" }) end,
      function() gp.load "a\0b" end,
    } do
      local good, text = pcall(f)
      assert.is_false(good)
      assert.is_truthy(text:find("\\0", 1, true) or text:find("?", 1, true), text)
    end
  end)
end)
