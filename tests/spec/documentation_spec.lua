-- tests/spec/documentation_spec.lua - the examples in the documentation comments run.
--
-- An example that does not run is worse than none. Each block between --- ```lua and --- ``` in the
-- Lua sources is loaded with gp, nn and optim at hand and run.
local gp = require "gpipe"

-- The examples of a source file: { line, text }.
local function examples_of(path)
  local found, open, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    local comment = line:match("^%s*%-%-%- ?(.*)$")
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
  local found = {}
  for path in io.popen("find lua -name '*.lua' | sort"):lines() do found[#found + 1] = path end
  return found
end

-- What examples print goes nowhere.
local function environment()
  local env = { gp = gp, nn = gp.nn, optim = rawget(gp, "optim"), print = function() end }
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
