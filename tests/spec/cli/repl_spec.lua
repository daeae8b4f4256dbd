-- tests/spec/cli/repl_spec.lua - the interactive mode, without a terminal (-i) and with one (script's pty).

local child = dofile "tests/child.lua"

local function chat(input)
  return child.run({ "-i" }, { input = input })
end

describe("the interactive mode", function()
  local cases = {
    { "prints the values of expressions, nil too", "1 + 1\nnil\n'a', nil, 2\n", "2\nnil\na\tnil\t2\n" },
    { "prints nothing for statements and calls without results", "x = 1\n(function() end)()\n\n-- a comment\n", "" },
    { "accepts =expr", "=1, 2\n", "1\t2\n" },
    { "keeps the last value in _", "6 * 7\n_ + 1\n", "42\n43\n" },
    { "reads on while a chunk is incomplete", "for i = 1, 2 do\nprint(i)\nend\nprint [[\na]]\n", "1\n2\na\n" },
    { "keeps top-level locals", "local a, b = 1, 2\na + b\nlocal function f() return a end\nf()\n", "3\n1\n" },
    { "keeps locals from anywhere in the line", "x = 1 local y = x + 1 -- so\ny\n", "2\n" },
    { "does not close a kept <close> variable",
      "local p <close> = setmetatable({}, {__close = error})\ntype(p)\n", "table\n" },
    { "runs a chunk that ends with return", "local r = 3 return r\n", "3\n" },
    { "has gp, nn and optim", "gp == require 'gpipe' and nn == gp.nn and optim == gp.optim\n", "true\n" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local out, err, code = chat(case[2])
      assert.equal(case[3], out)
      assert.equal("", err)
      assert.equal(0, code)
    end)
  end

  it("goes on after errors", function()
    local out, err = chat("error('boom')\nx = = 1\nerror({})\nsetmetatable({}, {__tostring = error})\n8\n")
    assert.equal("8\n", out)
    assert.matches("stdin:1: boom\nstack traceback:\n\tstdin:1: in main chunk\n", err)
    assert.matches("unexpected symbol near '='", err)
    assert.matches("error object is a table value", err)
  end)

  it("says so when the input ends inside a chunk", function()
    local _, err = chat("for i = 1, 2 do\n")
    assert.matches("near <eof>", err)
  end)
end)

-- Type lines on a terminal. "^C" and "^D" are keys; the pauses let the program come to its prompt.
local function type_lines(lines)
  local keys = { "sleep 2" }
  for _, line in ipairs(lines) do
    local key = line == "^C" and "\\003" or line == "^D" and "\\004" or line .. "\\n"
    keys[#keys + 1] = ("printf %s; sleep 0.7"):format(child.quote(key:gsub("%%", "%%%%")))
  end
  -- exec: a shell that stayed between would get the Ctrl-C too, and some (dash) then end with 130.
  local script = ("(%s) | SHELL=/bin/sh TERM=dumb script -qec %s /dev/null")
    :format(table.concat(keys, "; "), child.quote("exec " .. child.program))
  local out, err, code = child.shell(script)
  return out:gsub("\r", "") .. err, code
end

local terminal = child.has "script" and it or pending

describe("on a terminal", function()
  terminal("greets, prompts, evaluates, and leaves with Ctrl-D", function()
    local screen, code = type_lines { "20 + 22", "^D" }
    assert.matches("gpipe%-lua %d+%.%d+", screen)
    assert.matches("gp, nn = gp.nn, optim = gp.optim", screen)
    assert.matches("\n> ", screen)
    assert.matches("\n42\n", screen)
    assert.equal(0, code)
  end)

  -- The thread sanitizer holds signals back until the program blocks; a loop never does.
  local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and terminal or pending
  with_signals("Ctrl-C at the prompt drops the line, in a loop stops it", function()
    local screen, code = type_lines { "if true then", "^C", "while true do end", "^C", "20 + 22", "^D" }
    assert.matches(">> ", screen)
    assert.matches("interrupted!", screen)
    assert.matches("\n42\n", screen)
    assert.equal(0, code)
  end)
end)
