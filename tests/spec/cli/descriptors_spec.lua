-- tests/spec/cli/descriptors_spec.lua - where standard input, output or error are closed, no file
-- of the program gets their numbers.

local child = dofile "tests/child.lua"

local SCRIPT = [[
  local gp = require "gpipe"
  local run = gp.run(%q, { quiet = true })
  for step = 1, 5 do
    print("printed", step)
    io.stderr:write "an error line\n"
    run:log(step, { loss = step })
  end
  run:finish()
]]

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

for _, closed in ipairs { "0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-" } do
  it("a run keeps its files clean with " .. closed, function()
    local folder = os.tmpname()
    os.remove(folder)
    local script = child.file(SCRIPT:format(folder))
    local _, _, code = child.shell(("( %s %s %s )"):format(child.quote(child.program),
      child.quote(script), closed))
    assert.equal(0, code)
    assert.is_nil(read(folder .. "/log.jsonl"):find "error line")
    assert.equal(5, select(2, read(folder .. "/log.jsonl"):gsub("\n", "")))
    assert.is_nil(read(folder .. "/lock"):find "printed")
    assert.equal(5, select(2, read(folder .. "/stdout.txt"):gsub("printed", "")))
    os.remove(script)
    os.execute("rm -rf " .. folder)
  end)
end
