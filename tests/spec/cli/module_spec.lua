-- tests/spec/cli/module_spec.lua - where `require` finds gpipe: embedded, through LUA_PATH, as
-- gpipe.so.

local child = dofile "tests/child.lua"

local function folder_with(path, text)
  local folder = os.tmpname()
  os.remove(folder)
  local full = folder .. "/" .. path
  child.shell(("mkdir -p %s"):format(child.quote(full:match("^(.*)/"))))
  local file = assert(io.open(full, "w"))
  file:write(text)
  file:close()
  return folder
end

describe("embedded modules", function()
  it("are found from any folder, under names that make readable positions", function()
    local out = child.shell(("cd / && %s -e 'print(debug.getinfo(require "
      .. "\"gpipe.shell.repl\".run).short_src)'")
      :format(child.quote(child.program:gsub("^[^/]", os.getenv "PWD" .. "/%0"))))
    assert.equal("gpipe/shell/repl.lua\n", out)
  end)

  it("yield to LUA_PATH", function()
    local folder = folder_with("gpipe/shell/command.lua", "return { from = 'path' }")
    local out = child.run({ "-e", "print(require 'gpipe.shell.command'.from)" },
      { environment = { LUA_PATH = folder .. "/?.lua;;" } })
    child.shell("rm -r " .. child.quote(folder))
    assert.equal("path\n", out)
  end)

  it("win over a gpipe.so on LUA_CPATH: one program holds one runtime", function()
    local folder = folder_with("gpipe.so", "not a library")
    local out, err = child.run({ "-e", "print(type(require 'gpipe'))" },
      { environment = { LUA_CPATH = folder .. "/?.so;;" } })
    child.shell("rm -r " .. child.quote(folder))
    assert.equal("", err)
    assert.equal("table\n", out)
  end)

  it("are loaded once, whatever a script does to package.loaded", function()
    local out = child.run { "-e", [[
      local gp, core, nn = require "gpipe", require "gpipe.core", require "gpipe.nn"
      for name in pairs(package.loaded) do if name:find("^gpipe") then package.loaded[name] = nil end end
      print(gp == require "gpipe", core == require "gpipe.core", nn == require "gpipe.nn")]] }
    assert.equal("true\ttrue\ttrue\n", out)
  end)

  it("name what was searched when a module is not there", function()
    local _, err = child.run { "-e", "require 'gpipe.nothing'" }
    assert.matches("no embedded module 'gpipe.nothing'", err)
  end)
end)

-- A sanitizer's library must be loaded first; a stock lua5.4 does not do that.
local library = os.getenv "GPIPE_MODULE" or "build/gpipe.so"
local sanitized = (os.getenv "GPIPE_SANITIZE" or "") ~= ""
local stock = child.has "lua5.4" and not sanitized and it or pending

describe("gpipe.so in a stock lua5.4", function()
  local function run_stock(text)
    local cpath = library:gsub("gpipe%.so$", "?.so") .. ";;"
    return child.run({ "-e", text }, { program = "lua5.4", environment = { LUA_CPATH = cpath } })
  end

  stock("is all of gpipe", function()
    local out, err = run_stock
      "local gp = require 'gpipe' print(gp.version, gp.tensor({1, 2}):sum():item())"
    assert.equal("", err)
    assert.matches("^%d+%.%d+%.%d+\t3.0\n$", out)
  end)

  stock("gives the same classes when it is required again", function()
    local out, err = run_stock [[
      local gp, nn = require "gpipe", require "gpipe.nn"
      for name in pairs(package.loaded) do if name:find("^gpipe") then package.loaded[name] = nil end end
      print(gp == require "gpipe", nn == require "gpipe.nn", nn == gp.nn)]]
    assert.equal("", err)
    assert.equal("true\ttrue\ttrue\n", out)
  end)
end)
