-- tests/spec/docs/reference_spec.lua - every public name is documented, help prints its text, and
-- the reference and the definitions for editors contain it.

local catalog = require "gpipe.shell.catalog"
local child = dofile "tests/child.lua"
local documentation = require "gpipe.shell.documentation"

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local folder
setup(function()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir -p %s/reference %s/meta"):format(folder, folder)))
  local out, err, code = child.run { "scripts/reference.lua", folder }
  assert(code == 0, out .. err)
end)
teardown(function() os.execute("rm -r " .. folder) end)

-- Returns the first sentence of a comment.
local function beginning(entry)
  for _, line in ipairs(entry.comment) do
    local text = line:match "^%-%-%-%s*([^@%s].*)$"
    if text then return text end
  end
end

for _, page in ipairs(catalog.pages()) do
  describe("of the page " .. page.file, function()
    it("every name is documented", function()
      local missing = {}
      for _, known in ipairs(page.names) do
        if not (known.entry and beginning(known.entry)) then missing[#missing + 1] = known.path end
      end
      assert.same({}, missing) -- a comment `--- What it does.` above the function or class is missing
    end)

    it("help shows every name with the same text", function()
      for _, known in ipairs(page.names) do
        local shown = documentation.of_name(known.path)
        assert.is_truthy(shown:find(beginning(known.entry), 1, true), known.path .. ":\n" .. shown)
      end
    end)

    it("every name has its heading, and its definition for editors", function()
      local text = read(("%s/reference/%s.md"):format(folder, page.file))
      local definitions = read(folder .. "/meta/gpipe.lua") .. read(folder .. "/meta/ops.lua")
        .. read(folder .. "/meta/tensor.lua") .. read(folder .. "/meta/methods.lua")
      for _, known in ipairs(page.names) do
        assert.is_truthy(text:find(("\n### `%s"):format(known.path), 1, true), known.path)
        local name = known.class and known.class:match "%w+$" .. ":" .. known.name or known.path
        assert.is_truthy(definitions:find(("\nfunction %s("):format(name), 1, true), name)
      end
    end)
  end)
end

it("the definitions are Lua", function()
  for _, name in ipairs { "gpipe", "tensor", "ops", "methods" } do
    assert(loadfile(("%s/meta/%s.lua"):format(folder, name)))
  end
end)

it("a name is found without its prefix too, and an unknown one gets a suggestion", function()
  assert.matches("^step%(x, y, opts%)\n", documentation.of_name "pipe:step")
  assert.matches("^shuffle%(seed, epoch%)\n", documentation.of_name "shuffle")
  assert.matches("no 'shufle'.*shuffle", documentation.of_name "shufle")
end)
