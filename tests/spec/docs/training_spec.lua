-- tests/spec/docs/training_spec.lua - the scripts of docs/training.md run in an empty folder, and
-- again in the folder that they leave.

local child = require "tests.child"
local doc_blocks = require "tests.support.doc_blocks"

describe("docs/training.md #process", function()
  it("has scripts that run", function()
    local place = os.tmpname()
    os.remove(place)
    assert(os.execute("mkdir " .. place))
    local program = io.popen("readlink -f " .. child.quote(child.program)):read "l"
    local found = doc_blocks.of("docs/training.md", "lua")
    assert.is_true(#found >= 5)
    for round = 1, 2 do
      for i, text in ipairs(found) do
        local script = child.file("local gp = require 'gpipe' local nn, optim = gp.nn, gp.optim\n"
          .. text)
        local out, err, code = child.shell(("cd %s && %s %s"):format(place, child.quote(program),
          script))
        os.remove(script)
        assert.equal(0, code, ("block %d, round %d: %s%s"):format(i, round, out, err))
      end
    end
    os.execute("rm -r " .. place)
  end)
end)
