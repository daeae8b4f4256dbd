-- tests/spec/docs/sweeps_spec.lua - the scripts of docs/sweeps.md run, in an empty folder, and
-- leave the files that the page names.
local child = dofile "tests/child.lua"
local doc_blocks = require "tests.support.doc_blocks"

describe("docs/sweeps.md", function()
  it("has scripts that run as they stand", function()
    local folder = os.tmpname()
    os.remove(folder)
    local list = doc_blocks.of("docs/sweeps.md", "lua")
    assert.are.equal(2, #list)
    for i, block in ipairs(list) do
      local path = child.file('local gp = require "gpipe"\nlocal nn, optim = gp.nn, gp.optim\n' .. block)
      local line = 'mkdir -p %s; cd %s; exec "%s" %s'
      local program = io.popen("realpath " .. child.program):read "l"
      local out, err, code = child.shell(line:format(folder, folder, program, path))
      os.remove(path)
      assert.are.equal(0, code, ("block %d: %s%s"):format(i, out, err))
    end
    for _, name in ipairs { "first.db", "net.db", "net.html" } do
      local file <close> = assert(io.open(folder .. "/sweeps/" .. name))
      assert(file)
    end
    os.execute("rm -r " .. folder)
  end)
end)
