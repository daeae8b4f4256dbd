-- tests/spec/cli/cli_spec.lua - the switches of gpipe-lua, its exit codes, and what it prints about
-- errors.

local child = dofile "tests/child.lua"
local run = child.run

describe("Lua's switches", function()
  local cases = {
    { "-e runs text", { "-e", "print(1 + 1)" }, "2\n" },
    { "-e takes attached text", { "-eprint(3)" }, "3\n" },
    { "several -e run in order", { "-e", "x = 1", "-e", "x = x + 1", "-e", "print(x)" }, "2\n" },
    { "-l makes a global of the module's name",
      { "-l", "string", "-e", "print(string.rep('x', 2))" }, "xx\n" },
    { "-l g=mod names the global", { "-l", "s=string", "-e", "print(s.rep('x', 3))" }, "xxx\n" },
    { "-W turns warnings on", { "-W", "-e", "warn('x') print(1)" }, "1\n", "Lua warning: x\n" },
    { "warnings are off without -W", { "-e", "warn('x') print(1)" }, "1\n", "" },
    { "-- ends the switches", { "-e", "print(1)", "--" }, "1\n" },
    { "a script named - reads standard input", { "-", "a", "b" }, "stdin\ta\tb\n",
      input = "print('stdin', ...)" },
    { "standard input is the script when there is none", {}, "7\n",
      input = "#!/usr/bin/gpipe-lua\nprint(7)" },
    { "-e alone does not read standard input", { "-e", "" }, "", input = "print(7)" },
    { "-i goes on with standard input", { "-i", "-e", "x = 4" }, "4\n5\n", input = "x\nx + 1\n" },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local out, err, code = run(case[2], { input = case.input })
      assert.equal(case[3], out)
      if case[4] then assert.equal(case[4], err) end
      assert.equal(0, code)
    end)
  end

  it("-v prints the version of the program and of Lua", function()
    local out, _, code = run { "-v" }
    assert.matches("^gpipe%-lua %d+%.%d+%.%d+, Lua 5%.4", out)
    assert.equal(0, code)
  end)

  it("-E ignores LUA_INIT, LUA_PATH and LUA_CPATH", function()
    local environment = { LUA_INIT = "print('init')", LUA_PATH = "nowhere/?.lua" }
    assert.equal("false\n", (run({ "-E", "-e", "print(package.path:find('nowhere') ~= nil)" },
      { environment = environment })))
  end)

  it("LUA_INIT_5_4 wins over LUA_INIT, and @ names a file", function()
    local script = child.file("print('from file')")
    local environment = { LUA_INIT_5_4 = "@" .. script, LUA_INIT = "print(1)" }
    local out = run({ "-e", "print('e')" }, { environment = environment })
    os.remove(script)
    assert.equal("from file\ne\n", out)
  end)

  it("LUA_INIT may be code, whose errors name it", function()
    local arguments = { "-e", "print('e')" }
    assert.equal("init\ne\n", (run(arguments, { environment = { LUA_INIT = "print('init')" } })))
    local out, err, code = run(arguments, { environment = { LUA_INIT = "error 'x'" } })
    assert.equal("", out)
    assert.matches("LUA_INIT", err)
    assert.equal(1, code)
  end)

  it("package.path must be a string to be searched", function()
    local _, err, code = run { "-e", "package.path = 7 package.path = nil require 'nothing'" }
    assert.matches("'package.path' must be a string", err)
    assert.equal(1, code)
  end)

  it("arg holds the script at 0, its arguments above, the rest below", function()
    local show = "print(arg[-2], arg[-1], arg[0] ~= nil, arg[1], arg[2], #arg, ...)"
    local script = child.file("#!/usr/bin/env gpipe-lua\n" .. show)
    local out = run { "-e", "", script, "a", "-b" }
    os.remove(script)
    assert.equal("-e\t\ttrue\ta\t-b\t2\ta\t-b\n", out)
  end)
end)

describe("our switches", function()
  it("--version names Lua, the matrix library, the instruction set and CUDA", function()
    local out, _, code = run { "--version" }
    for _, part in ipairs { "gpipe%-lua %d", "Lua 5%.4", "oneDNN", "march=", "CUDA: %S", "MPI: %S" } do
      assert.matches(part, out)
    end
    assert.equal(0, code)
  end)

  it("--help lists every switch on standard output", function()
    local out, err, code = run { "--help" }
    for _, name in ipairs { "-e", "-i", "-l", "-v", "-E", "-W", "--devices", "--seed", "--version",
      "--list-devices", "--help" } do
      assert.truthy(out:find("  " .. name, 1, true), name)
    end
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("--seed N seeds math.random and gp.rand alike", function()
    local print_both = "print(math.random(), gp.rand({ 1 })[1], gp.nn.Linear(2, 2).weight[1][1])"
    local function numbers(seed)
      return (run { "--seed", seed, "-l", "gp=gpipe", "-e", print_both })
    end
    assert.equal(numbers "1", numbers "1")
    assert.not_equal(numbers "1", numbers "2")
  end)

  it("--list-devices names cpu:0", function()
    local out, err, code = run { "--list-devices" }
    assert.equal("", err)
    assert.matches("^cpu:0 ", out)
    assert.equal(0, code)
  end)

  it("--list-devices names the path of bf16 on CPU devices, and GPIPE_CPU_BF16 chooses it", function()
    assert.matches("bf16 on CPU devices: [aex]%w+", (run { "--list-devices" }))
    local out = child.run({ "--list-devices" }, { environment = { GPIPE_CPU_BF16 = "emulate" } })
    assert.matches("bf16 on CPU devices: emulated %(GPIPE_CPU_BF16 asks for it%)", out)
  end)

  it("without a plugin --list-devices and --version say what makes one", function()
    local alone = os.tmpname() -- no plugin lies beside a copy
    os.execute(("cp -p --remove-destination %s %s"):format(child.quote(child.program), alone))
    for _, option in ipairs { "--list-devices", "--version" } do
      local out, _, code = child.run({ option }, { program = alone })
      assert.equal(0, code)
      assert.truthy(out:find("scripts/build --cuda", 1, true), out)
    end
    os.remove(alone)
  end)

  it("--devices and --seed reach the Lua layer", function()
    local show = "local c = require 'gpipe.config' print(c.seed, table.concat(c.devices, ' '))"
    assert.equal("3\tcpu:0 cpu:1\n",
      (run { "--seed", "3", "--devices", "cpu:0,cpu:1", "-e", show }))
    assert.equal("-4\tcpu:1\n", (run { "--seed=-4", "--devices=cpu:1", "-e", show }))
  end)

  it("--seed is gp.seed at the start of the script", function()
    local draw = "local t = require 'gpipe'.rand({4}) print(t[1], t[2], t[3], t[4])"
    local seeded = run { "--seed", "5", "-e", draw }
    assert.equal((run { "-e", "require 'gpipe'.seed(5)", "-e", draw }), seeded)
    assert.not_equal((run { "--seed", "6", "-e", draw }), seeded)
  end)
end)

describe("a wrong command line", function()
  local cases = {
    { "an unknown switch", { "-x" }, "unrecognized option '%-x'" },
    { "an unknown long switch gets a suggestion", { "--devics" }, "did you mean '%-%-devices'" },
    { "a switch with a letter too much", { "-ix" }, "unrecognized option '%-ix'" },
    { "-e without text", { "-e" }, "'%-e' needs an argument" },
    { "-l followed by a switch", { "-l", "-i" }, "'%-l' needs an argument" },
    { "--devices without a list", { "--devices" }, "'%-%-devices' needs an argument" },
    { "--seed that is not an integer", { "--seed=x" }, "'x' is not an integer" },
    { "--help with an argument", { "--help=1" }, "takes no argument" },
    { "--dry-run without a script", { "--dry-run" }, "plans the pipelines of a script" },
  }
  for _, case in ipairs(cases) do
    it(case[1] .. " exits with 2 and runs nothing", function()
      local arguments = { "-e", "print('ran')" }
      table.move(case[2], 1, #case[2], 3, arguments)
      local out, err, code = run(arguments)
      assert.equal("", out)
      assert.matches(case[3], err)
      assert.equal(2, code)
    end)
  end

  it("an empty name in --devices exits with 1 and says which", function()
    local _, err, code = run { "--devices", "cpu:0,,cpu:1", "-e", "" }
    assert.matches("device 2 has no name", err)
    assert.equal(1, code)
  end)
end)

describe("an error", function()
  -- Returns the whole of stderr, with the name of the script as SCRIPT.
  local function fail(text)
    local script = child.file(text)
    local _, err, code = run { script }
    os.remove(script)
    return err:gsub(script:gsub("%p", "%%%0"), "SCRIPT"), code
  end

  it("prints file, line, message and the script's own frames, and exits with 1", function()
    local err, code = fail "local function f()\n  error('boom')\nend\npcall(print)\nf()"
    local frames = "\n\tSCRIPT:2: in local 'f'\n\tSCRIPT:5: in main chunk\n"
    assert.equal("gpipe-lua: SCRIPT:2: boom\nstack traceback:" .. frames, err)
    assert.equal(1, code)
  end)

  it("raised inside gpipe names the script's line", function()
    local err = fail "local gp = require 'gpipe'\n\ngp.zeros('x')"
    assert.matches("^gpipe%-lua: SCRIPT:3: ", err)
    assert.is_nil(err:find("gpipe/", 1, true))
    assert.is_nil(err:find("[C]", 1, true))
  end)

  it("that is a table prints its __tostring", function()
    assert.matches("^gpipe%-lua: it is 7\n",
      (fail "error(setmetatable({n = 7}, {__tostring = function(e) return 'it is ' .. e.n end}))"))
  end)

  it("that is a plain table says so", function()
    assert.matches("error object is a table value", (fail "error({})"))
  end)

  it("in a deep recursion shows both ends of the stack", function()
    local err = fail "local function f(n) if n == 0 then error('deep') end f(n - 1) return 1 end\nf(100)"
    assert.matches("skipping %d+ levels", err)
    assert.matches("SCRIPT:2: in main chunk\n$", err)
  end)

  it("of syntax names the line", function()
    local err, code = fail "x = = 1"
    assert.equal("gpipe-lua: SCRIPT:1: unexpected symbol near '='\n", err)
    assert.equal(1, code)
  end)

  it("in a finalizer is shown as a warning", function()
    local text = "setmetatable({}, {__gc = function() error('lost') end}) collectgarbage() print(1)"
    local out, err, code = run { "-e", text }
    assert.equal("1\n", out)
    assert.matches("lost", err)
    assert.equal(0, code)
  end)

  it("shows every frame with GPIPE_TRACEBACK=full", function()
    local _, err = run({ "-e", "error('x')" }, { environment = { GPIPE_TRACEBACK = "full" } })
    assert.matches("%[C%]: in", err)
  end)

  it("is raised for a missing script too", function()
    local _, err, code = run { "/nowhere/at all.lua" }
    assert.matches("cannot open /nowhere/at all.lua", err)
    assert.equal(1, code)
  end)
end)

describe("os.exit", function()
  for _, case in ipairs { { "true", 0 }, { "false", 1 }, { "7", 7 }, { "3, true", 3 } } do
    it(("(%s) ends with %d"):format(case[1], case[2]), function()
      assert.equal(case[2], (select(3, run { "-e", "os.exit(" .. case[1] .. ")" })))
    end)
  end
end)
