-- lua/gpipe/shell/comments.lua - finds the comment above a function or class in its source, which
-- the program contains. Functions written in C have theirs in meta.lua, tensor/meta.lua and the
-- rows of ops.def.
--
-- An entry is {signature = "zeros(shape, opts)", comment = the lines as they are}.

local core = require "gpipe.core"
local terminal = require "gpipe.terminal"

local comments = {}

---@class gpipe.DocEntry
---@field signature string
---@field comment string[]
---@field colon? boolean its first argument is not in the signature
---@field section? string the heading above it, for methods of tensors

-- ---- sources ---------------------------------------------------------------------------------

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- The lines of a chunk: of the program's own source, else of its file (LUA_PATH, a script).
local function source(chunk)
  local text = terminal.source(chunk)
  if not text and chunk:sub(1, 1) == "@" then
    local file <close> = io.open(chunk:sub(2))
    text = file and file:read "a"
  end
  return text and lines_of(text)
end

local function module_source(name)
  local path = package.searchpath(name, package.path)
  return source("@" .. name:gsub("%.", "/") .. ".lua") or path and source("@" .. path) or {}
end

-- The comment right above a line, or nil.
local function comment_above(lines, number)
  local first = number
  while first > 1 and lines[first - 1]:find "^%s*%-%-%-" do first = first - 1 end
  if first == number then return nil end
  local found = {}
  for i = first, number - 1 do found[#found + 1] = lines[i]:gsub("^%s+", "") end
  return found
end

-- Shorten a line to a signature: `function create.zeros(shape)` to `zeros(shape)`,
-- `function Linear:init(n)` to `Linear(n)`.
local function signature(line)
  return (line:gsub("^%s*return%s+function", "function"):gsub("^%s*local%s+", "")
    :gsub("%s+%-%- luacheck.*$", ""):gsub("^%s*function%s*", ""):gsub("(%b()).*$", "%1")
    :gsub(":init%(", "("):gsub("^[%w_]+[.:]", ""))
end

-- ---- functions and classes ---------------------------------------------------------------------

-- The function that a wrapper calls; the wrapper holds it as `method`.
local function wrapped(f)
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if not name then return nil end
    if name == "method" and type(value) == "function" then return value end
  end
end

--- The comment above a function.
---@param f function
---@return gpipe.DocEntry?
function comments.of_function(f)
  local info = debug.getinfo(f, "S")
  local lines = info.linedefined > 0 and source(info.source)
  local line = lines and lines[info.linedefined]
  local comment = line and comment_above(lines, info.linedefined)
  if comment then
    return { signature = signature(line), comment = comment,
      colon = line:find "^%s*function [%w_.]+:" ~= nil }
  end
  local inner = wrapped(f)
  return inner and comments.of_function(inner)
end

-- The comment block that declares a class, if it says more than that.
local function of_declaration(class, shown)
  for _, held in next, class do
    local lines = type(held) == "function" and source(debug.getinfo(held, "S").source) or {}
    for number, line in ipairs(lines) do
      if line:match "^%-%-%-@class ([%w.]+)" == shown then
        local last = number
        while lines[last + 1] and lines[last + 1]:find "^%-%-%-" do last = last + 1 end
        return comment_above(lines, last + 1)
      end
    end
  end
end

local function says_something(comment)
  for _, line in ipairs(comment or {}) do
    if line:find "^%-%-%-%s*[^@%s]" then return true end
  end
  return false
end

--- The comment of a class of modules: above its init, else the block that declares it.
---@param class table
---@return gpipe.DocEntry?
function comments.of_class(class)
  local info = require("gpipe.nn.class").info(class)
  if not info then return nil end
  local init = class.init
  local entry = rawget(class, "init") and comments.of_function(init)
  local short = info.shown:match "[%w_]+$"
  if entry then
    entry.signature = entry.signature:gsub("^[%w_]+%(", short .. "(")
    return entry
  end
  local comment = of_declaration(class, info.shown)
  if not says_something(comment) then return nil end
  local line = debug.getinfo(init or print, "S")
  local lines = line.linedefined > 0 and source(line.source)
  local takes = lines and lines[line.linedefined]:match "%b()" or "()"
  return { signature = short .. takes, comment = comment }
end

-- ---- functions in C -------------------------------------------------------------------------

-- Add the functions of a source that a pattern finds to a table, name -> entry.
local function add_stubs(found, lines, pattern, section)
  for number, line in ipairs(lines) do
    section = line:match "^%-%- %-%-%-%- (.-) %-+$" or section
    local name = line:match(pattern)
    local comment = name and comment_above(lines, number)
    if comment then
      found[name] = { signature = signature(line), comment = comment, section = section }
    end
  end
end

-- Methods that are written in Lua, by the headings in their files.
local SECTIONS = { choose = "choosing elements", reduce = "along dimensions" }

local function add_written(found)
  for name, method in pairs(core.methods) do
    local entry = comments.of_function(method)
    if entry then
      local file = debug.getinfo(method, "S").source:match "([%w_]+)%.lua$"
      entry.section = SECTIONS[file] or "shape"
      found[name] = entry
    end
  end
end

local methods
--- The methods of tensors, name -> entry.
---@return table<string, gpipe.DocEntry>
function comments.of_tensors()
  if methods then return methods end
  methods = {}
  local ops = lines_of(require "gpipe.tensor.stubs"())
  add_written(methods)
  add_stubs(methods, ops, "^function Tensor:([%w_]+)%(", "functions of elements")
  add_stubs(methods, ops, "^function Tensor:([%w_]+_)%(", "in place")
  add_stubs(methods, module_source "gpipe.tensor.meta", "^function Tensor:([%w_]+)%(", "facts")
  for _, entry in pairs(methods) do entry.signature = "Tensor:" .. entry.signature end
  return methods
end

-- ---- tables of options ------------------------------------------------------------------------

local declared -- class -> its fields, and the class that it extends

-- Collect the classes that one source declares, with their fields.
local function add_classes(lines)
  local at
  for _, line in ipairs(lines) do
    local class, base = line:match "^%-%-%-@class ([%w_.]+):?%s*([%w_.]*)"
    if class then
      at = { base = base ~= "" and base or nil }
      declared[class] = declared[class] or at
    elseif not line:find "^%-%-%-" then at = nil
    elseif at and line:find "^%-%-%-@field" then
      at[#at + 1] = line:match "^%-%-%-@field%s+(.*)$"
    elseif at and #at > 0 and not line:find "^%-%-%-%s*@" then -- a continuation line
      at[#at] = at[#at] .. line:gsub("^%-%-%-", "")
    end
  end
end

--- The fields of a class that is declared in a comment, "name? type what it is", and those of the
--- class it extends; empty if there is no such class.
---@param class string "nn.ConvOptions"
---@return string[]
function comments.fields(class)
  if not declared then
    declared = {}
    for _, chunk in ipairs(terminal.chunks()) do add_classes(source(chunk) or {}) end
  end
  local list, at = {}, declared[class]
  while at do
    table.move(at, 1, #at, #list + 1, list)
    at = declared[at.base]
  end
  return list
end

local functions
--- The functions of gp that are written in C, name -> entry.
---@return table<string, gpipe.DocEntry>
function comments.of_gp()
  if functions then return functions end
  functions = {}
  add_stubs(functions, module_source "gpipe.meta", "^function gp%.([%w_]+)%(")
  return functions
end

return comments
