-- lua/gpipe/shell/documentation.lua - the documentation of a function or class: the comment above
-- it in the sources, which the program holds.
--
-- Methods of tensors are C: theirs stand in tensor/meta.lua and in the rows of ops.def.

local errors = require "gpipe.errors"
local names = require "gpipe.shell.names"
local terminal = require "gpipe.terminal"

local documentation = {}

-- ---- sources ---------------------------------------------------------------------------------

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- The lines of a chunk: the program's own, else of its file (LUA_PATH, a script).
local function source(chunk)
  local text = terminal.source(chunk)
  if not text and chunk:sub(1, 1) == "@" then
    local file <close> = io.open(chunk:sub(2))
    text = file and file:read "a"
  end
  return text and lines_of(text)
end

-- ---- comments --------------------------------------------------------------------------------

-- `---@param x gpipe.Tensor what` reads `  x gpipe.Tensor what`.
local function readable(line)
  local text = line:gsub("^%s*%-%-%- ?", "")
  local word, rest = text:match "^@(%a+)%s*(.*)$"
  if not word then return text end
  if word == "param" or word == "field" then return "  " .. rest end
  if word == "return" then return "  returns " .. rest end
end

-- The comment right above a line, or nil.
local function comment_above(lines, number)
  local first = number
  while first > 1 and lines[first - 1]:find "^%s*%-%-%-" do first = first - 1 end
  if first == number then return nil end
  local found = {}
  for i = first, number - 1 do found[#found + 1] = readable(lines[i]) end
  return table.concat(found, "\n")
end

-- `function create.zeros(shape)` reads `zeros(shape)`, `function Linear:init(n)` `Linear(n)`.
local function signature(line)
  return (line:gsub("^%s*local%s+", ""):gsub("^%s*function%s*", ""):gsub("%s+end%s*$", "")
    :gsub(":init%(", "("):gsub("^[%w_]+%.", ""))
end

local function of_function(f)
  local info = debug.getinfo(f, "S")
  local lines = info.linedefined > 0 and source(info.source)
  local line = lines and lines[info.linedefined]
  if not line then return nil end
  local comment = comment_above(lines, info.linedefined)
  return comment and signature(line) .. "\n" .. comment
end

-- A class: the comment above its init, and above the line that makes it.
local function of_class(class)
  local init = rawget(class, "init")
  if type(init) ~= "function" then return nil end
  local text = of_function(init)
  if text then return text end
  local info = debug.getinfo(init, "S")
  local lines = source(info.source)
  for number = info.linedefined, 1, -1 do
    local comment = lines and lines[number]:find "class%(" and comment_above(lines, number)
    if comment then return comment end
  end
end

-- ---- methods of tensors ------------------------------------------------------------------------

local methods -- name -> text
local function methods_of_tensors()
  if methods then return methods end
  methods = {}
  local chunks = { lines_of(require "gpipe.tensor.stubs"()) }
  local meta = package.searchpath("gpipe.tensor.meta", package.path)
  chunks[2] = source "@gpipe/tensor/meta.lua" or meta and source("@" .. meta)
  for _, lines in pairs(chunks) do
    for number, line in ipairs(lines) do
      local name = line:match "^function Tensor:([%w_]+)%("
      local text = name and comment_above(lines, number)
      if text then methods[name] = signature(line) .. "\n" .. text end
    end
  end
  return methods
end

-- ---- looking up --------------------------------------------------------------------------------

-- The documentation of a value, or nil.
local function of_value(value)
  if type(value) == "function" then return of_function(value) end
  if type(value) == "table" then return of_class(value) end
end

-- Where a bare name is looked for.
local function places()
  local gp = require "gpipe"
  return { _G, gp, gp.nn, gp.optim, gp.data, gp.schedule }
end

local function known_names()
  local all = {}
  for _, place in ipairs(places()) do
    for _, name in ipairs(names.list(place)) do all[#all + 1] = name end
  end
  for name in pairs(methods_of_tensors()) do all[#all + 1] = name end
  return all
end

--- The documentation of a name: `gp.pipeline`, `Linear`, `t:matmul`, `matmul`.
---@param path string
---@return string text says what may be meant where there is none
function documentation.of_name(path)
  local value = names.resolve(path)
  local text = value ~= nil and of_value(value)
  if text then return text end
  local last = path:match "([%a_][%w_]*)$" or path
  if last == path and value == nil then
    for _, place in ipairs(places()) do
      local found = names.field(place, path)
      text = found ~= nil and of_value(found)
      if text then return text end
    end
  end
  local method = methods_of_tensors()[last]
  if method then return method end
  if value ~= nil then return ("%s: a %s, without documentation"):format(path, type(value)) end
  local near = errors.suggest(last, known_names())
  return ("there is no '%s'%s"):format(path,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

--- The documentation of a value, or of a name given as text.
---@param x any
---@return string
function documentation.of(x)
  if type(x) == "string" then return documentation.of_name(x) end
  return of_value(x) or ("a %s, without documentation"):format(type(x))
end

return documentation
