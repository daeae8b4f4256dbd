-- lua/gpipe/shell/documentation.lua - shows the documentation of a function or class: the comment
-- above it in the sources, which the program contains.
--
-- catalog.lua lists the public names; comments.lua finds their comments.

local comments = require "gpipe.shell.comments"
local errors = require "gpipe.errors"
local names = require "gpipe.shell.names"

local documentation = {}

-- ---- comments --------------------------------------------------------------------------------

-- Turn `---@param x gpipe.Tensor what` into `  x gpipe.Tensor what`.
local function readable(line)
  local text = line:gsub("^%s*%-%-%- ?", "")
  local word, rest = text:match "^@(%a+)%s*(.*)$"
  if not word then return text end
  if word == "param" or word == "field" then return "  " .. rest end
  if word == "return" then return "  returns " .. rest end
end

local WRAPPED = 70 -- characters: a longer line of prose continues in the next one

-- Return whether a line continues the one before: a terminal is not as wide as the sources.
local function continues(before, line)
  return #before >= WRAPPED and before:find "^%S" and line:find "^%S" and not line:find "^%u%a+: "
    and not line:find "^```" and not line:find "^[-|*] "
end

-- The signature under the name that was asked for, if the sources use another name.
local function signature_of(entry, path)
  local own = entry.signature:match "^[%w_.:]*"
  if not path or own:match "[%w_]*$" == path:match "[%w_]+$" then
    return entry.signature
  end
  return path .. entry.signature:sub(#own + 1)
end

-- Add the fields of an option table below the argument that takes it.
local function add_options(lines, comment)
  local class = comment:match "^%-%-%-@param%s+%S+%s+(nn%.%w*Options)"
    or comment:match "^%-%-%-@param%s+%S+%s+(gpipe%.%w*Options)"
  for _, field in ipairs(class and comments.fields(class) or {}) do
    lines[#lines + 1] = "    " .. field
  end
end

local function text_of(entry, path)
  if not entry then return nil end
  local lines, in_code = { signature_of(entry, path), "" }, false
  for _, comment in ipairs(entry.comment) do
    local line = readable(comment)
    if line and line:find "^```" then in_code = not in_code end
    if line and not in_code and continues(lines[#lines], line) then
      lines[#lines] = lines[#lines] .. " " .. line
    else
      lines[#lines + 1] = line
      add_options(lines, comment)
    end
  end
  table.remove(lines, 2)
  return table.concat(lines, "\n")
end

-- ---- looking up --------------------------------------------------------------------------------

-- The documentation of a value, or nil.
local function entry_of(value)
  local meta = type(value) == "table" and getmetatable(value)
  if type(meta) == "table" and rawget(meta, "call") then value = meta.call end -- gp.models.gpt2
  if type(value) == "table" then return comments.of_class(value) end
  if type(value) ~= "function" then return nil end
  local entry = comments.of_function(value)
  if entry then return entry end
  local gp = require "gpipe"
  for name, found in pairs(comments.of_gp()) do
    if rawequal(gp[name], value) then return found end
  end
end

local function of_value(value, path) return text_of(entry_of(value), path) end

-- ---- values without a comment ------------------------------------------------------------------

local function in_line(title, list)
  return #list > 0 and ("%s: %s"):format(title, table.concat(list, " ")) or nil
end

-- List the class, fields and methods of an object, or the names of a table of names.
local function listed(value, path)
  local meta = debug.getmetatable(value)
  local kind = type(meta) == "table" and rawget(meta, "__name")
  if type(kind) ~= "string" then return nil end
  local shown = path or kind:match "%w+$":lower()
  if kind == "gpipe" or kind:find "^gp%." then
    return table.concat({ tostring(value), ("?%s.%s explains one of them"):format(kind == "gpipe"
      and "gp" or kind, names.list(value)[1]) }, "\n")
  end
  local callable, fields = {}, {}
  for _, name in ipairs(names.list(value, true)) do callable[name] = true end
  for _, name in ipairs(names.list(value)) do
    if not callable[name] then fields[#fields + 1] = name end
  end
  local methods = names.list(value, true)
  return table.concat({ "of the class " .. kind, in_line("fields", fields) or "no fields",
    in_line("methods", methods) or "no methods",
    methods[1] and ("?%s:%s explains one of them"):format(shown, methods[1]) or nil }, "\n")
end

-- The tables in which a bare name is looked up.
local function places()
  local gp = require "gpipe"
  return { _G, gp, gp.nn, gp.optim, gp.data, gp.schedule }
end

local function known_names()
  local all = {}
  for _, place in ipairs(places()) do
    for _, name in ipairs(names.list(place)) do all[#all + 1] = name end
  end
  for _, page in ipairs(require("gpipe.shell.catalog").pages()) do
    for _, known in ipairs(page.names) do all[#all + 1] = known.name end
  end
  return all
end

--- The documentation of a name: `gp.pipeline`, `Linear`, `t:matmul`, `matmul`.
---@param path string
---@return string text if there is none, it says what may be meant
function documentation.of_name(path)
  local value = names.resolve(path)
  local text = value ~= nil and of_value(value, path)
  if text then return text end
  text = value ~= nil and type(value) ~= "function" and listed(value, path)
  if text then return text end
  local last = path:match "([%a_][%w_]*)$" or path
  if last == path and value == nil then
    for _, place in ipairs(places()) do
      local found = names.field(place, path)
      text = found ~= nil and of_value(found)
      if text then return text end
    end
  end
  local catalog = require "gpipe.shell.catalog"
  local entry = last ~= path and catalog.find(path) or comments.of_tensors()[last]
    or catalog.find(path)
  if entry then return text_of(entry) end
  if value ~= nil then return ("%s: a %s, without documentation"):format(path, type(value)) end
  local near = errors.suggest(last, known_names())
  return ("there is no '%s'%s"):format(path,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

--- The documentation of a value: its signature and comment.
---@param value any
---@return gpipe.DocEntry?
documentation.entry = entry_of

--- The documentation of a value, or of a name given as text.
---@param x any
---@return string
function documentation.of(x)
  if type(x) == "string" then return documentation.of_name(x) end
  return of_value(x) or listed(x) or ("a %s, without documentation"):format(type(x))
end

return documentation
