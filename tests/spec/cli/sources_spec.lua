-- tests/spec/cli/sources_spec.lua - the program runs only Lua sources, never precompiled chunks,
-- and takes its own modules from itself.

local child = dofile "tests/child.lua"

-- Runs a command in a folder of files {name = text}.
local function in_folder(files, command)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir -p " .. folder .. "/gpipe/shell"))
  for name, text in pairs(files) do
    local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(text)
  end
  local program = io.popen("realpath " .. child.program):read "l"
  local line = command:gsub("PROGRAM", program)
  local out, err, code = child.shell(("cd %s && %s"):format(folder, line))
  os.execute("rm -r " .. folder)
  return out, err, code
end

local chunk = string.dump(function() print "ran" end)

describe("a precompiled chunk", function()
  local cases = {
    { "as the script", "PROGRAM x.luac" },
    { "on standard input", "PROGRAM - <x.luac" },
    { "on standard input without a script", "PROGRAM <x.luac" },
    { "behind a first line for the system", "PROGRAM line.luac" },
    { "as a module", "PROGRAM -l module" },
    { "required by a script", "PROGRAM -e 'require \"module\"'" },
    { "as a module of LUA_PATH", "LUA_PATH='./?.luac' PROGRAM -l x" },
    { "in the place of a module of gpipe", "LUA_PATH='./?.luac' PROGRAM -l gpipe" },
    { "in LUA_INIT", "LUA_INIT=@x.luac PROGRAM -e ''" },
    { "in dofile", "PROGRAM -e 'dofile \"x.luac\"'" },
    { "in loadfile", "PROGRAM -e 'assert(loadfile \"x.luac\")'" },
  }
  for _, case in ipairs(cases) do
    it(case[1] .. " is refused", function()
      local files = { ["x.luac"] = chunk, ["gpipe.luac"] = chunk, ["module.lua"] = chunk,
        ["line.luac"] = "#!/bin/x\n" .. chunk }
      local out, err, code = in_folder(files, case[2])
      assert.equal("", out)
      assert.matches("precompiled", err)
      assert.equal(1, code)
    end)
  end

  it("is refused with the name of the source that may be meant", function()
    local _, err = in_folder({ ["x.luac"] = chunk }, "PROGRAM x.luac")
    assert.matches("x%.lua\n", err)
  end)

  it("loads where a script asks for one explicitly", function()
    local out = in_folder({ ["x.luac"] = chunk },
      "PROGRAM -e 'loadfile(\"x.luac\", \"b\")() load(string.dump(function() end))'")
    assert.equal("ran\n", out)
  end)
end)

describe("a source", function()
  local cases = {
    { "with a mark and a first line",
      "\239\187\191#!/bin/x\nprint(debug.getinfo(1, 'l').currentline)", "2\n" },
    { "of one line that begins with #", "#!/bin/x", "" },
    { "that is empty", "", "" },
    { "with a zero in a text", "print(#'a\0b')", "3\n" },
  }
  for _, case in ipairs(cases) do
    it(case[1] .. " runs", function()
      local out, err = in_folder({ ["x.lua"] = case[2] }, "PROGRAM x.lua")
      assert.equal("", err)
      assert.equal(case[3], out)
    end)
  end

  it("in dofile may yield and return values", function()
    local out = in_folder({ ["x.lua"] = "return coroutine.yield(1), 2" }, "PROGRAM -e '"
      .. "local c = coroutine.wrap(function() return dofile \"x.lua\" end) print(c()) print(c(5))'")
    assert.equal("1\n5\t2\n", out)
  end)

  it("that is a folder is refused as unreadable", function()
    local _, err, code = in_folder({}, "PROGRAM gpipe")
    assert.matches("cannot read gpipe", err)
    assert.equal(1, code)
  end)

  it("in loadfile keeps its mode and environment", function()
    local out = in_folder({ ["x.lua"] = "return y" },
      "PROGRAM -e 'print(loadfile(\"x.lua\", nil, {y = 4})()) print(loadfile \"no.lua\")'")
    assert.matches("^4\nnil\tcannot open no%.lua", out)
  end)
end)

describe("files of the current folder", function()
  local files = { ["gpipe.lua"] = "print 'mine'", ["gpipe/options.lua"] = "print 'mine'",
    ["gpipe/shell/command.lua"] = "print 'mine'", ["other.lua"] = "print 'other'" }

  for _, command in ipairs { "PROGRAM --list-devices", "PROGRAM -E --list-devices",
    "PROGRAM -l gpipe", "PROGRAM -e 'require \"gpipe.options\"'" } do
    it("do not replace gpipe's modules: " .. command, function()
      local out, err, code = in_folder(files, command)
      assert.is_nil(out:find "mine")
      assert.equal("", err)
      assert.equal(0, code)
    end)
  end

  it("are modules where gpipe has no module of that name", function()
    assert.equal("other\n", (in_folder(files, "PROGRAM -l other")))
  end)

  it("win where LUA_PATH asks for them, but not through its ;;", function()
    assert.equal("mine\n", (in_folder(files, "LUA_PATH='./?.lua;;' PROGRAM -l gpipe")))
    assert.equal("", (in_folder(files, "LUA_PATH=';;' PROGRAM -l gpipe")))
    assert.equal("", (in_folder(files, "LUA_PATH='./?.lua;;' PROGRAM -E -l gpipe")))
    assert.equal("mine\n", (in_folder(files, "LUA_PATH_5_4='./?.lua' LUA_PATH=x PROGRAM -l gpipe")))
  end)
end)
