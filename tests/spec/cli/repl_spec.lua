-- tests/spec/cli/repl_spec.lua - the interactive mode, without a terminal (-i) and with one
-- (script's pty).

local child = dofile "tests/child.lua"

local function chat(input)
  return child.run({ "-i" }, { input = input })
end

describe("the interactive mode", function()
  local cases = {
    { "prints the values of expressions, nil too", "1 + 1\nnil\n'a', nil, 2\n",
      "2\nnil\na\tnil\t2\n" },
    { "prints nothing for statements and calls without results",
      "x = 1\n(function() end)()\n\n-- a comment\n", "" },
    { "accepts =expr", "=1, 2\n", "1\t2\n" },
    { "keeps the last value in _", "6 * 7\n_ + 1\n", "42\n43\n" },
    { "reads on while a chunk is incomplete", "for i = 1, 2 do\nprint(i)\nend\nprint [[\na]]\n",
      "1\n2\na\n" },
    { "keeps top-level locals", "local a, b = 1, 2\na + b\nlocal function f() return a end\nf()\n",
      "3\n1\n" },
    { "keeps locals from anywhere in the line", "x = 1 local y = x + 1 -- so\ny\n", "2\n" },
    { "does not close a kept <close> variable",
      "local p <close> = setmetatable({}, {__close = error})\ntype(p)\n", "table\n" },
    { "runs a chunk that ends with return", "local r = 3 return r\n", "3\n" },
    { "prints the contents of plain tables", "x = {1, {2, 'a'}, n = {}}\nx\n{}\n",
      '{1, {2, "a"}, n = {}}\n{}\n' },
    { "prints a shape as its numbers, beside other values", "gp.ones {2, 3}.shape, 5\n",
      "{2, 3}\t5\n" },
    { "prints a table that holds itself", "t = {}\nt.t = t\nt\n", "{t = {...}}\n" },
    { "prints what a type says of itself",
      "setmetatable({1}, {__tostring = function() return 'me' end})\n", "me\n" },
    { "has help, unless the script has a name of its own",
      "type(tostring(help))\nhelp = 3\nhelp\n", "string\n3\n" },
    { "has gp, nn and optim", "gp == require 'gpipe' and nn == gp.nn and optim == gp.optim\n",
      "true\n" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local out, err, code = chat(case[2])
      assert.equal(case[3], out)
      assert.equal("", err)
      assert.equal(0, code)
    end)
  end

  it("prints the figures of a training step", function()
    local out = chat("p = gp.pipeline(nn.Sequential {nn.Linear(2, 2)}, {loss = nn.MSELoss()})\n"
      .. "l = p:step(gp.ones {4, 2}, gp.ones {4, 2})\np.stats\n")
    assert.matches("bubble = {", out)
    assert.matches("seconds = %d", out)
  end)

  it("lists the names of gp and nn", function()
    local out = chat "gp\nnn\n"
    assert.matches("pipeline", out)
    assert.matches("Linear", out)
    assert.is_nil(out:find("0x", 1, true))
  end)

  it("prints the part of a large schedule that fits the terminal", function()
    local chunk = "gp.schedule.build('1f1b', {devices = 64, chunks = 512})\n"
    local out = child.run({ "-i" }, { input = chunk,
      environment = { COLUMNS = "90", LINES = "20" } })
    local lines = 0
    for line in out:gmatch "[^\n]+" do
      lines = lines + 1
      assert.is_true(#line <= 90)
    end
    assert.is_true(lines > 10 and lines <= 20)
    assert.matches("more devices", out)
  end)

  it("goes on after errors", function()
    local out, err = chat("error('boom')\nx = = 1\nerror({})\nsetmetatable({}, {__tostring = "
      .. "error})\n8\n")
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

local state = os.tmpname() -- the folder of the history
os.remove(state)

local function type_lines(lines, locale)
  return child.type_lines(lines, { XDG_STATE_HOME = state, LC_ALL = locale })
end

local terminal = child.has "script" and it or pending

describe("on a terminal", function()
  terminal("a program knows how large it is", function()
    local print_size = "print(require 'gpipe.core'.terminal_size(io.stdout))"
    local command = ("stty cols 93 rows 21; exec %s -e %s"):format(child.program,
      child.quote(print_size))
    local out = child.shell(("SHELL=/bin/sh script -qec %s /dev/null"):format(child.quote(command)))
    assert.equal("93\t21", out:match "%d+\t%d+")
    assert.equal("\n", (child.run { "-e", print_size })) -- the output goes to a file
  end)

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
    local screen, code = type_lines { "if true then", "^C", "while true do end", "^C", "20 + 22",
      "^D" }
    assert.matches(">> ", screen)
    assert.matches("interrupted!", screen)
    assert.matches("\n42\n", screen)
    assert.equal(0, code)
  end)

  for _, locale in ipairs { "C", "C.UTF-8" } do
    terminal("takes letters of any language, in locale " .. locale, function()
      local screen = type_lines({ 'x = "häß→"', "#x, x", "^D" }, locale)
      assert.is_truthy(screen:find("\n8\thäß→\n", 1, true), screen)
    end)
  end

  terminal("Tab in pasted code is a plain tab", function()
    local screen = type_lines { "for i = 20, 20 do", "\\tprint(#'\\t\\t', i + 22)", "end", "^D" }
    assert.matches("\n2\t42\n", screen)
  end)
end)

describe("Tab", function()
  local cases = {
    { "completes a global", { "completed = 41", "compl\\t + 1" } },
    { "completes a field", { "t = {inside = 42}", "t.ins\\t" } },
    { "completes a method", { "x = gp.full({1}, 42)", "x:ite\\t()" } },
    { "completes what gp loads at its first use", { "gp.pipel\\t and 42" } },
    { "completes files inside a string", { "#io.open('tests/chil\\t'):read(0) + 42" } },
  }
  for _, case in ipairs(cases) do
    terminal(case[1], function()
      table.insert(case[2], "^D")
      assert.matches("\n42[.0]*\n", (type_lines(case[2])))
    end)
  end

  terminal("lists the candidates where there are several", function()
    local screen = type_lines { "t = {alpha = 1, alpine = 2}", "t.al\\t\\t\\t", "^D" }
    assert.matches("alpha%s+alpine", screen)
  end)
end)

describe("the history", function()
  local path = state .. "/gpipe-lua/history"
  before_each(function() os.execute("rm -rf " .. state) end)
  teardown(function() os.execute("rm -rf " .. state) end)

  local function read()
    local file = io.open(path)
    if not file then return nil end
    local text = file:read "a"
    file:close()
    return text
  end

  terminal("is kept from session to session, for its owner only", function()
    type_lines { "x = 'a\\\\nb'", "if x then", "y = 2 end", "^D" }
    type_lines { "z = 3", "^D" }
    assert.equal("x = 'a\\\\nb'\nif x then\\ny = 2 end\nz = 3\n", read())
    local mode = io.popen("stat -c %a " .. path):read "l"
    assert.equal("600", mode)
  end)

  terminal("begins a new line where the last one has no end", function()
    os.execute("mkdir -p " .. state .. "/gpipe-lua")
    local file = assert(io.open(path, "w"))
    file:write("x = 1\ny = 2")
    file:close()
    type_lines { "z = 3", "u = 4", "^D" }
    assert.equal("x = 1\ny = 2\nz = 3\nu = 4\n", read())
  end)

  terminal("comes back with the arrow key", function()
    type_lines { "seen = 6 * 7", "^D" }
    local screen = type_lines { "\\033[A", "seen", "^D" }
    assert.matches("\n42\n", screen)
  end)

  terminal("is cut where it is long, and goes on without a folder", function()
    os.execute("mkdir -p " .. state .. "/gpipe-lua")
    local file = assert(io.open(path, "w"))
    for i = 1, 2500 do file:write("x = ", i, "\n") end
    file:close()
    type_lines { "y = 1", "^D" }
    local text = read()
    assert.equal(1001, select(2, text:gsub("\n", "")))
    assert.matches("^x = 1501\n", text)
    assert.matches("\nx = 2500\ny = 1\n$", text)
    os.execute(("rm -rf %s && echo >%s"):format(state, state))
    local screen = type_lines { "20 + 22", "^D" }
    assert.matches("\n42\n", screen)
  end)

  it("is not kept without a terminal", function()
    child.run({ "-i" }, { input = "x = 1\n", environment = { XDG_STATE_HOME = state } })
    assert.is_nil(read())
  end)
end)

describe("a debug hook that raises", function()
  it("stops the entry, and not the session", function()
    local input = "debug.sethook(function() error('planted') end, 'l')\n1 + 1\n2 + 2\n"
    local _, err, code = child.run({ "-i" }, { input = input })
    assert.equal(0, code, err)
    assert.is_true(select(2, err:gsub("stdin:1: planted", "")) >= 2, err)
  end)
end)

describe("a session that writes over Lua's own names", function()
  local STRICT = "setmetatable(_ENV, {__index = function(_, k) error('undeclared ' .. k) end, "
    .. "__newindex = function() error 'read-only' end})"

  for _, line in ipairs {
    "table = {}", "type = 'x'", "io = 1", "os = 1", "print = 1", "tostring = 1", "load = 1",
    "rawget = 1", "rawset = 1", "pcall = 1", "debug = 1", "string = 1", "math = 1", "require = 1",
    "setmetatable = 1", "_G = 1", "debug.setmetatable('', nil)", STRICT,
  } do
    it("goes on after " .. line:sub(1, 40), function()
      local input = line .. "\n20 + 22\n(gp.ones {2, 3}).shape[2] + 40\ngp.nn.Linear(2, 2)\n"
      local out, err, code = child.run({ "-i" }, { input = input })
      assert.equal(0, code, err)
      assert.matches("42.*\n43", out)
      assert.matches("Linear%(2 %-> 2", out)
    end)
  end
end)
