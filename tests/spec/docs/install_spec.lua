-- tests/spec/docs/install_spec.lua - what `cmake --install` puts into a folder works from there:
-- the program, the module in a stock lua5.4, and every example.

local child = dofile "tests/child.lua"

local with_cmake = child.has "cmake" and it or pending

describe("an installation", function()
  local prefix, examples
  setup(function()
    prefix = os.tmpname()
    os.remove(prefix)
    local build = child.program:match "^(.*)/[^/]*$"
    child.shell(("cmake --install %s --prefix %s"):format(child.quote(build), prefix))
    examples = prefix .. "/share/doc/gpipe-lua/examples/"
    assert(os.execute(("mkdir -p %s/pictures"):format(prefix)))
  end)
  teardown(function() os.execute("rm -r " .. prefix) end)

  local small = "--steps 1 --layers 1 --width 16 --context 16 --batch 4 --length 5 --quiet"

  -- Runs a command line with the installed program as gpipe-lua, outside of the checkout.
  local function run(line)
    local out, err, code = child.shell(("cd / && PATH=%s/bin:$PATH %s"):format(prefix, line))
    assert.equal(0, code, out .. err)
    return out
  end

  with_cmake("runs the quickstart on the documents that it has", function()
    assert.matches("validation loss %d",
      run(("gpipe-lua %squickstart.lua %s"):format(examples, small)))
  end)

  with_cmake("tells digits apart", function()
    assert.matches("held%-out digits are right",
      run(("gpipe-lua %sdigits.lua --quiet"):format(examples)))
  end)

  local schedules = {
    { "compare.lua", "%s/pictures --width 8 --rows 1 --chunks 4 --steps 1" },
    { "my_schedule.lua", "--steps 1 --chunks 2 --picture %s/pictures/mine.svg" },
    { "async.lua", "--epochs 1 --width 8 --picture %s/pictures/async.svg" },
  }
  for _, case in ipairs(schedules) do
    with_cmake("runs schedules/" .. case[1], function()
      run(("gpipe-lua %sschedules/%s %s"):format(examples, case[1], case[2]:format(prefix)))
    end)
  end

  -- A sanitizer's library must be loaded first in a process; stock lua does not do that.
  local plain = (os.getenv "GPIPE_SANITIZE" or "") == ""
  local stock = plain and child.has "cmake" and child.has "lua5.4" and it or pending
  stock("holds a module for a stock lua5.4", function()
    local line = "LUA_CPATH='%s/lib/lua/5.4/?.so' lua5.4 %squickstart.lua %s"
    assert.matches("validation loss %d", run(line:format(prefix, examples, small)))
  end)
end)
