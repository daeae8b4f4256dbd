-- tests/spec/cli/repl_terminal_spec.lua - what the interactive mode does for its user: colours,
-- narrow terminals, entries of several lines, mistakes, Ctrl-C.

local child = dofile "tests/child.lua"

local function chat(input, environment)
  return child.run({ "-i" }, { input = input, environment = environment })
end

local state = os.tmpname()
local function type_lines(lines, environment)
  os.execute("rm -rf " .. state)
  local all = { XDG_STATE_HOME = state }
  for name, value in pairs(environment or {}) do all[name] = value end
  local screen, code = child.type_lines(lines, all)
  os.execute("rm -rf " .. state)
  return screen, code
end

local terminal = child.has "script" and it or pending

describe("colours", function()
  local lines = { "{1, 'a', true}", "gp.full({1}, 0 / 0)", "nn.ReLU()", "error 'wrong'", "^D" }
  local function colours(environment)
    return select(2, (type_lines(lines, environment)):gsub("\27%[3%dm", ""))
  end

  terminal("are added on a terminal that knows them", function()
    -- 1, 'a', true; nan and its last line; the layer; the error
    assert.equal(7, colours { TERM = "xterm" })
  end)
  terminal("are left out with NO_COLOR", function()
    assert.equal(0, colours { TERM = "xterm", NO_COLOR = "1" })
  end)
  terminal("are left out on a dumb terminal", function() assert.equal(0, colours()) end)
  it("are left out in a pipe", function()
    local out, err = chat(table.concat(lines, "\n", 1, 4) .. "\n", { TERM = "xterm" })
    assert.is_nil((out .. err):find("\27", 1, true))
  end)
end)

describe("20 columns", function()
  local cases = {
    { "hold a wide tensor", "gp.randn {3, 40}" },
    { "hold wide numbers", "gp.full({2, 9}, 1e-7)" },
    { "hold a table with a long text", "{('ab'):rep(50), {1, 2, 3, 4, 5, 6, 7, 8, 9}}" },
    { "hold the names of nn", "nn" },
    { "hold the list of globals", "bias = gp.zeros {20, 30} who()" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local out, err = chat(case[2] .. "\n", { COLUMNS = "20" })
      assert.equal("", err)
      for line in out:gmatch "[^\n]+" do
        local word = not line:find "%S%s+%S" -- one long word cannot be broken
        assert.is_true(#line <= 20 or word and #line < 30, line)
      end
    end)
  end
end)

terminal("output fits a terminal that has become narrower", function()
  local screen = type_lines { "gp.zeros {1, 40}", "$ stty cols 24", "gp.ones {1, 40}", "^D" }
  assert.matches("0%s+0%s+0%s+0%s+0%s+0", screen)
  assert.is_nil(screen:find "1%s+1%s+1%s+1%s+1%s+1")
  assert.matches("1%s+%.%.%.%s+1", screen)
end)

describe("an entry of several lines", function()
  terminal("comes back from the history as one entry, and can be changed", function()
    local up, left = "\\033[A", "\\033[D"
    local screen = type_lines { "if true then", "print(20 + 22)", "end", up,
      up .. left:rep(5) .. "\\b3", "^D" }
    assert.equal(2, select(2, screen:gsub("\n42%f[^%d]", "")), screen)
    assert.equal(1, select(2, screen:gsub("\n43%f[^%d]", "")), screen)
  end)
end)

describe("a mistake", function()
  local cases = {
    { "names the global that was meant", "prnt(1)", "did you mean 'print'" },
    { "names the field that was meant", "string.formt('x')", "did you mean 'format'" },
    { "names the user's own name", "model = 3\nmodle + 1", "did you mean 'model'" },
    { "of a name typed alone says what was meant", "model = 3\nmodle", "did you mean 'model'" },
    { "of a field typed alone says what was meant", "t = {width = 3}\nt.widht",
      "did you mean 'width'" },
    { "shows the line of an earlier entry", "function f(t)\n  return t.x.y + 1\nend\nr = f {}",
      "stdin:2: attempt.*\n\tstdin:2: in .*\n\t    return t%.x%.y %+ 1\n\tstdin:4: in main chunk" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local _, err = chat(case[2] .. "\n")
      assert.matches(case[3], err)
    end)
  end

  it("without a near name stays as Lua says it", function()
    local out, err = chat "nil\nzqxj\nt = {}\nt.a\n"
    assert.equal("nil\nnil\nnil\n", out)
    assert.equal("", err)
  end)
end)

-- The thread sanitizer holds signals back until the program blocks; a loop never does.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and terminal or pending

describe("Ctrl-C", function()
  with_signals("leads back to the prompt whatever runs", function()
    local screen, code = type_lines { "half typ^C", "'half', 1", "while true do end", "^C",
      "'loop', 2", "coroutine.wrap(function() while true do end end)()", "^C", "'coroutine', 3",
      "while true do pcall(gp.zeros, {1}) end", "^C", "^C", "'caught', 4", "$ sleep 30", "^C",
      "'shell', 5", "^D" }
    for _, result in ipairs { "half\t1", "loop\t2", "coroutine\t3", "caught\t4", "shell\t5" } do
      assert.is_truthy(screen:find("\n" .. result .. "\n", 1, true), screen)
    end
    assert.equal(0, code)
  end)

  -- Two models with the same seed: one is interrupted while it trains, the other takes as many
  -- steps as the first has completed. Then both go on.
  local setup = [[
function make()
  gp.seed(7)
  local m = nn.Sequential {nn.Linear(64, 256), nn.Dropout(0.2), nn.Tanh(), nn.Linear(256, 8)}
  local p = gp.pipeline(m, {balance = {2, 2}, devices = {"cpu:0", "cpu:0"}, chunks = 4,
    loss = nn.MSELoss(), seed = 3})
  return {model = m, pipe = p, opt = optim.Adam(p:parameters(), {lr = 0.01})}
end
x, y, a, b = gp.randn {2048, 64}, gp.zeros {2048, 8}, make(), make()
function step(t) local l = t.pipe:step(x, y) t.opt:step() return l end
function same() for name, v in pairs(a.model:state_dict()) do
  if not v:equal(b.model:state_dict()[name]) then return false end end return true end
]]
  with_signals("in a training step keeps the last completed step, and training goes on", function()
    local file = child.file(setup)
    local screen = type_lines { ("dofile '%s'"):format(file), "while true do step(a) end", "^C",
      "n = a.pipe:progress().steps", "k = 0 repeat k = k + 1 step(b) until same() or k > n + 1",
      "'same', same(), n > 0", "'loss', step(a) == step(b), same()", "\\b", "\\b", "^D" }
    os.remove(file)
    assert.matches("interrupted!", screen)
    assert.matches("\nsame\ttrue\ttrue\n", screen)
    assert.matches("\nloss\ttrue\ttrue\n", screen)
  end)
end)
