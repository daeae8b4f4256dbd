-- tests/spec/examples_spec.lua - the examples run as a user runs them, in a process of their own.
local READY = pcall(require, "gpipe.pipeline")

-- The interpreter that runs this file.
local function interpreter()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return arg[first]
end

-- Run an example; returns its output and exit code.
local function run(line)
  local pipe = io.popen(("%s examples/%s 2>&1"):format(interpreter(), line))
  local text = pipe:read "a"
  local _, _, code = pipe:close()
  return text, code
end

describe("examples/digits.lua", function()
  it("tells at least 97 % of the held-out digits apart", function()
    if not READY then pending("no gpipe.pipeline yet") return end
    local text, code = run "digits.lua --quiet"
    assert.are.equal(0, code, text)
    assert.is_true(tonumber(text:match "([%d.]+) %% of") >= 97, text)
  end)
end)

describe("examples/quickstart.lua", function()
  it("trains, validates, writes and says what next", function()
    if not READY then pending("no gpipe.pipeline yet") return end
    local text, code = run(
      "quickstart.lua --steps 2 --layers 1 --width 16 --context 16 --batch 4 --length 5 --quiet")
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find "validation loss [%d.]+ nats per byte after 2 steps")
    assert.is_truthy(text:match "next: [^\n]+\n$")
  end)

  it("refuses an unknown option with the usage and status 2", function()
    local text, code = run "quickstart.lua --stpes 3"
    assert.are.equal(2, code)
    assert.is_truthy(text:find("unknown option '--stpes' (did you mean '--steps'?)", 1, true))
    assert.is_truthy(text:find("usage: gpipe-lua examples/quickstart.lua", 1, true))
  end)
end)
