-- tests/spec/docs/looking_spec.lua - the commands and the script of docs/runs.md run on prepared
-- runs.

local child = dofile "tests/child.lua"
local doc_blocks = require "tests.support.doc_blocks"
local run_folder = require "tests.support.run_folder"

local PAGE = "docs/runs.md"

local root
setup(function()
  root = run_folder.root()
  for i, name in ipairs { "first", "second" } do
    run_folder.make(root, "runs/" .. name, { step = 40 * i, config = '"lr":0.1' })
    -- the page plots the learning rate, too
    local log = assert(io.open(root .. "/runs/" .. name .. "/log.jsonl", "ab"))
    log:write(('{"step":%d,"lr":0.1}\n'):format(40 * i))
    log:close()
  end
end)
teardown(function() run_folder.remove(root) end)

local program = io.popen("realpath " .. child.program):read "l"

describe("docs/runs.md", function()
  it("has commands that run", function()
    local count = 0
    for _, block in ipairs(doc_blocks.of(PAGE, "sh")) do
      for line in block:gmatch "[^\n]+" do
        local words = assert(line:match "^gpipe%-lua (.*)$", line)
        local out, err, code = child.shell(("cd %s && %s %s"):format(root, program, words))
        assert.same({ "", 0 }, { err, code }, line)
        assert.is_true(#out > 0 or line:find "FILE" == nil)
        count = count + 1
      end
    end
    assert.is_true(count >= 7)
    for _, name in ipairs { "loss.svg", "runs.html" } do
      local file <close> = assert(io.open(root .. "/" .. name))
      assert(file)
    end
  end)

  it("has scripts that run", function()
    for i, block in ipairs(doc_blocks.of(PAGE, "lua")) do
      local script = child.file("local gp = require 'gpipe'\n" .. block)
      local out, err, code = child.shell(("cd %s && %s %s"):format(root, program, script))
      os.remove(script)
      assert.same({ "", 0 }, { err, code }, ("block %d: %s"):format(i, out))
    end
  end)
end)
