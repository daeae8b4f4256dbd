-- tests/spec/docs/documentation_spec.lua - the examples in the documentation run, and print what it
-- says.
--
-- An example that does not run is worse than none. Each block between --- ```lua and --- ``` in the
-- Lua sources and in these pages runs with gp, nn and optim defined; those of docs/schedules.md
-- also print the text block below them. The pictures there must be those that their script draws. A
-- block that is no whole script (it needs files or GPUs) is marked: ```lua fragment. Other pages
-- have specs of their own.
local gp = require "gpipe"

-- Returns the examples of a source file, or of a page: { line, text }.
local function examples_of(path)
  local is_page = path:find "%.md$"
  local found, open, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    local comment = is_page and line or line:match("^%s*%-%-%- ?(.*)$")
    if comment == "```lua" then
      open = { line = number, lines = {} }
    elseif comment == "```" and open then
      found[#found + 1] = { line = open.line, text = table.concat(open.lines, "\n") }
      open = nil
    elseif open then
      open.lines[#open.lines + 1] = comment
    end
  end
  return found
end

local function sources()
  local found = { "README.md", "docs/data.md", "docs/gradients.md", "docs/loop-parts.md",
    "docs/models.md", "docs/performance.md", "docs/pipeline.md", "docs/planning.md",
    "docs/shell.md" }
  for path in io.popen("find lua -name '*.lua' | sort"):lines() do found[#found + 1] = path end
  return found
end

-- The examples' print does nothing.
local function environment()
  local env = { gp = gp, nn = gp.nn, optim = gp.optim, print = function() end }
  env.flags = require "gpipe.flags"
  return setmetatable(env, { __index = _G })
end

for _, path in ipairs(sources()) do
  describe(path, function()
    local output
    setup(function()
      output = io.output()
      io.output(assert(io.tmpfile()))
    end)
    teardown(function() io.output(output) end)

    for _, example in ipairs(examples_of(path)) do
      it("has an example that runs, line " .. example.line, function()
        assert(load(example.text, "=" .. path .. ":" .. example.line, "t", environment()))()
      end)
    end
  end)
end

-- ---- docs/schedules.md --------------------------------------------------------------------------

local GUIDE = "docs/schedules.md"

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- Returns the blocks of a document: { text, wanted }, wanted where a block of text follows.
local function blocks_of(text)
  local found = {}
  for code, after in text:gmatch "```lua\n(.-\n)```\n()" do
    found[#found + 1] = { text = code, wanted = text:match("^\n```text\n(.-\n)```\n", after) }
  end
  return found
end

-- Runs a block; returns what it printed.
local function output_of(code)
  local lines, real, output = {}, print, io.output()
  local file <close> = assert(io.tmpfile())
  io.output(file)
  _G.print = function(...) -- luacheck: ignore 122
    local words = table.pack(...)
    for i = 1, words.n do words[i] = tostring(words[i]) end
    io.write(table.concat(words, "\t"), "\n")
  end
  local good, message = pcall(assert(load(code, "=" .. GUIDE, "t",
    setmetatable({ gp = gp, nn = gp.nn }, { __index = _G }))))
  _G.print = real -- luacheck: ignore 122
  io.output(output)
  assert(good, message)
  file:seek "set"
  for line in file:lines() do lines[#lines + 1] = line .. "\n" end
  return table.concat(lines)
end

describe(GUIDE, function()
  for i, block in ipairs(blocks_of(read(GUIDE))) do
    it("has a block that runs and prints what follows it, number " .. i, function()
      assert.are.equal(block.wanted or "", output_of(block.text))
    end)
  end

  it("names every schedule and shows its picture", function()
    local text = read(GUIDE)
    local catalog = require "gpipe.schedule.catalog"
    for _, name in ipairs(catalog.names()) do
      if catalog.find(name).module then -- the examples define others
        assert.is_truthy(text:find("\n### " .. name .. "\n", 1, true), name)
        assert.is_truthy(text:find(("](schedules/%s.svg)"):format(name), 1, true), name)
      end
    end
  end)

  it("has the pictures that scripts/draw_schedules.lua draws", function()
    local first, folder = 0, os.tmpname()
    while arg[first - 1] do first = first - 1 end
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local pipe = io.popen(("%s scripts/draw_schedules.lua %s 2>&1"):format(arg[first], folder))
    local drawn = pipe:read "a"
    assert.is_true(pipe:close(), drawn)
    for path in drawn:gmatch "[^\n]+" do
      local name = path:match "[^/]+$"
      assert.is_true(read("docs/schedules/" .. name) == read(path),
        name .. " is not what the script draws")
    end
    local there, count = io.popen "ls docs/schedules":read "a", 0
    for _ in there:gmatch "\n" do count = count + 1 end
    assert.are.equal(select(2, drawn:gsub("\n", "")), count)
    os.execute("rm -r " .. folder)
  end)
end)
