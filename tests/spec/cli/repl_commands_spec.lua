-- tests/spec/cli/repl_commands_spec.lua - what the interactive mode adds to Lua: numbered values,
-- documentation, who(), shell commands, times, a start-up file.

local child = dofile "tests/child.lua"

local function chat(input, environment)
  return child.run({ "-i" }, { input = input, environment = environment })
end

describe("the interactive mode", function()
  local cases = {
    { "numbers the values of the session", "'a', 'b'\n3\n_1, _2, _3\n", "a\tb\n3\na\tb\t3\n" },
    { "runs commands of the shell, and says an exit code", "$ echo hi; exit 3\n", "hi\nexit 3\n" },
    { "lists the user's own globals", "x = gp.zeros {2, 3}\nname = 'n'\n1\nwho()\n",
      "1\nname         string\nx            f32 tensor   2x3        24 bytes\n" },
    { "leaves at exit typed alone", "1\nexit\n2\n", "1\n" },
    { "leaves at quit()", "1\nquit()\n2\n", "1\n" },
    { "lets exit be a name of the script's", "exit = 5\nexit\n", "5\n" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local out, err, code = chat(case[2])
      assert.equal(case[3], out)
      assert.equal("", err)
      assert.equal(0, code)
    end)
  end

  for _, name in ipairs { "gp.zeros", "gp.pipeline", "nn.Linear", "Linear", "t:matmul", "optim.Adam",
    "relu", "add_" } do
    it("explains " .. name .. " with its example", function()
      local out = chat("?" .. name .. "\n")
      assert.matches(name:match "[%w_]+$" .. "%(", out)
      assert.matches("`", out)
    end)
  end

  it("explains a value as it explains its name", function()
    assert.equal((chat "?gp.zeros\n"), (chat "help(gp.zeros)\n"))
  end)

  it("suggests a name where there is none", function()
    assert.matches("zeros", (chat "?gp.zerso\n"))
  end)

  it("prints the time of what takes longer than _SLOW", function()
    assert.matches("^%([%d.e-]+ s%)\n", (chat "_SLOW = 0\n"))
    assert.equal("", (chat "x = 1\n"))
  end)
end)

local terminal = child.has "script" and it or pending

terminal("the start-up file runs, and the session survives its error", function()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p %s/gpipe-lua"):format(folder))
  local file <close> = assert(io.open(folder .. "/gpipe-lua/init.lua", "w"))
  file:write("mine = 40\nerror 'broken here'\n")
  file:close()
  local script = ("(sleep 2; printf 'mine + 2\\n'; sleep 1; printf '\\004') | TERM=dumb SHELL=/bin/sh "
    .. "XDG_CONFIG_HOME=%s XDG_STATE_HOME=%s script -qec %s /dev/null")
    :format(folder, folder, child.quote("exec " .. child.program))
  local out = child.shell(script)
  os.execute("rm -rf " .. folder)
  assert.matches("broken here", out)
  assert.matches("\n42\r?\n", out)
end)
