-- tests/spec/cli/failures_spec.lua - what a user reads when a script ends with an error: whole
-- texts, fields of error objects, and tracebacks that appear at once however deep the stack is.

local child = dofile "tests/child.lua"

-- Runs a script; returns stderr, the exit code and the seconds that it took.
local function fail(text, environment)
  local script = child.file(text)
  local began = os.time()
  local _, err, code = child.run({ script }, { environment = environment })
  os.remove(script)
  return err, code, os.time() - began
end

local MOST_SECONDS = 20 -- a traceback that looked at each of the million levels took minutes

describe("an uncaught stack overflow", function()
  local recursion = "local function f() return 1 + f() end\nf()"

  it("prints its shortened traceback at once", function()
    local err, code, seconds = fail(recursion)
    local skipped = tonumber(err:match "skipping (%d+) levels")
    assert.is_true(skipped > 10000, err)
    assert.equal(22, select(2, err:gsub("\n\t[^\n]+: in ", "")))
    assert.matches(":2: in main chunk\n$", err)
    assert.equal(1, code)
    assert.is_true(seconds < MOST_SECONDS)
  end)

  it("does so with GPIPE_TRACEBACK=full too", function()
    local err, code, seconds = fail(recursion, { GPIPE_TRACEBACK = "full" })
    assert.matches("%[C%]: in", err)
    assert.equal(1, code)
    assert.is_true(seconds < MOST_SECONDS)
  end)

  it("is handled where layers call each other", function()
    local err, code, seconds = fail [[
      local gp = require "gpipe"
      local Loop = gp.nn.class "Loop"
      function Loop:forward(x) return self(x) end
      Loop()(gp.ones {1})]]
    assert.matches("skipping", err)
    assert.equal(1, code)
    assert.is_true(seconds < MOST_SECONDS)
  end)
end)

describe("Ctrl-C", function()
  -- The thread sanitizer holds signals back until the program blocks; a loop never does.
  local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

  with_signals("deep in a recursion prints its shortened traceback at once", function()
    local err, code, seconds = fail(child.presses(0.5) .. [[
      local function f(n) if n == 0 then while true do end end return 1 + f(n - 1) end
      f(150000)]])
    assert.is_true(tonumber(err:match "skipping (%d+) levels") > 100000, err)
    assert.equal(130, code)
    assert.is_true(seconds < MOST_SECONDS)
  end)
end)

describe("a script that is not there", function()
  local folder
  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    for _, name in ipairs { "train.lua", "evaluate.lua", "x.lua", ".train.lua" } do
      assert(io.open(folder .. "/" .. name, "w")):close()
    end
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  local cases = {
    { "trian.lua", "train.lua" }, { "train", "train.lua" }, { "evalute.lua", "evaluate.lua" },
    { "train.luac", "train.lua" }, { "y.lua", "x.lua" }, { "test.lua", nil }, { "a.py", nil },
  }
  for _, case in ipairs(cases) do
    it(("named %s: %s is suggested"):format(case[1], case[2] or "nothing"), function()
      local _, err, code = child.run { folder .. "/" .. case[1] }
      assert.equal(case[2] and folder .. "/" .. case[2], err:match "did you mean '([^']+)'")
      assert.equal(1, code)
    end)
  end

  it("is looked for in the current folder too", function()
    local program = io.popen("realpath " .. child.program):read "l"
    local _, err = child.shell(("cd %s && %s trian.lua"):format(folder, program))
    assert.matches("did you mean 'train%.lua'", err)
  end)
end)

describe("a script that takes what only the prompt defines", function()
  it("is told the line that it lacks", function()
    assert.matches([[global 'gp'): a script begins with local gp = require "gpipe"]],
      fail "print(gp.ones {2})", 1, true)
    assert.matches([[global 'nn'): a script begins with local nn = require("gpipe").nn]],
      fail "nn.Linear(2, 2)", 1, true)
    assert.is_nil(fail("opt.x = 1"):find "begins with")
  end)
end)

describe("an error object", function()
  it("that is a text with a zero is printed whole, with its traceback", function()
    local err = fail "error('before\\0behind')"
    assert.is_truthy(err:find("before\0behind\nstack traceback:", 1, true), err)
  end)

  it("that is a table shows its fields", function()
    local err = fail "error {code = 'io', path = 'a b', tries = {1, 2}}"
    assert.is_truthy(err:find('{code = "io", path = "a b", tries = {1, 2}}', 1, true), err)
    assert.matches("stack traceback:", err)
  end)

  it("that holds itself, or much, is printed in a few lines", function()
    local err = fail [[
      local e = {} e.self = e
      for i = 1, 1000 do e[i] = e end
      error(e)]]
    assert.is_true(#err < 4000)
  end)

  it("whose __tostring fails is described", function()
    local err = fail "error(setmetatable({}, {__tostring = function() return {} end}))"
    assert.matches("table value", err)
  end)
end)
