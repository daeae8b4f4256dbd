-- gpipe/data/csv.lua - a table of numbers as a dataset: some columns are the target, others the
-- features.

local core = require "gpipe.core"
local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local tensors = require "gpipe.data.tensors"

local csv = {}

-- ---- the target column -----------------------------------------------------------------------

local SHOWN = 12 -- columns that an error lists

---@class gpipe.CsvHead
---@field names string[] empty where the file has no header
---@field at table<string, integer> the first column of each name
---@field width integer columns

local function head(names, width)
  local at = {}
  for i = #names, 1, -1 do at[names[i]] = i end
  return { names = names, at = at, width = width }
end

local function named_column(columns, target, what)
  if #columns.names == 0 then
    errors.raise("data.csv: %s is %s, but the file has no header (a column number would do)", what,
      errors.show(target))
  end
  return columns.at[target] or errors.raise("data.csv: there is no column '%s'%s",
    errors.name(target), errors.hint(target, columns.names, "columns", SHOWN))
end

local function numbered_column(columns, target, what)
  local at = target < 0 and columns.width + 1 + target or target
  if at < 1 or at > columns.width then
    errors.raise("data.csv: %s is column %d, the file has %d", what, target, columns.width)
  end
  return at
end

-- Find the column that a name or a number stands for.
local function column_of(columns, given, what)
  if type(given) == "string" then return named_column(columns, given, what) end
  local at = math.tointeger(given)
  if not at then
    errors.raise("data.csv: %s is %s, expected a column's name or number", what, errors.show(given))
  end
  return numbered_column(columns, at, what)
end

local function columns_of(columns, list, what)
  if #list == 0 then errors.raise("data.csv: %s is an empty list, expected a column", what) end
  local at = {}
  for i, given in ipairs(list) do at[i] = column_of(columns, given, what) end
  return at
end

-- All columns but these.
local function others(columns, targets)
  local taken, rest = {}, {}
  for _, at in ipairs(targets) do taken[at] = true end
  for at = 1, columns do
    if not taken[at] then rest[#rest + 1] = at end
  end
  return rest
end

-- ---- the header --------------------------------------------------------------------------------

local function is_number(field)
  return field:find "^%s*[+-]?[%d.]+[eE]?[+-]?%d*%s*$" ~= nil and tonumber(field) ~= nil
end

local function are_numbers(fields, may_miss)
  for _, field in ipairs(fields) do
    if not is_number(field) and not (may_miss and field == "") then return false end
  end
  return #fields > 0
end

-- Return whether the first line names the columns, its fields, and the fields of the first row. A
-- first line of numbers is not taken for a header: a row would be lost silently.
local function head_of(opts)
  local first, second, code = core.csv_head(opts.path, opts.separator)
  if not first then return nil, second, code end
  local header = opts.header
  if header == nil then header = not are_numbers(first, opts.missing) end
  return header, first, header and second or first
end

-- ---- columns -----------------------------------------------------------------------------------

local INPUT, TARGET = 1, 2

-- Lay out the columns for core.csv_read: for each one its part, its place in that part, and whether
-- it holds words.
local function layout(names, width, features, targets, words)
  local flat = {}
  for at = 1, width do
    flat[3 * at - 2], flat[3 * at - 1], flat[3 * at] = 0, 0, words[at] and 1 or 0
  end
  for part, list in ipairs { features, targets } do
    for place, at in ipairs(list) do
      if flat[3 * at - 2] ~= 0 then
        errors.raise("data.csv: column %d%s is named twice, expected it once as feature or target",
          at, names[at] and (" (%s)"):format(errors.name(names[at])) or "")
      end
      flat[3 * at - 2], flat[3 * at - 1] = part == 1 and INPUT or TARGET, place - 1
    end
  end
  return flat
end

-- Find the columns whose words are classes: those that were named, and a single target whose first
-- value is a word.
local function words_of(opts, columns, row, targets)
  local words = {}
  for _, at in ipairs(opts.words and columns_of(columns, opts.words, "words") or {}) do
    words[at] = true
  end
  local only = #targets == 1 and targets[1]
  if only and row[only] and row[only] ~= "" and not is_number(row[only]) then words[only] = true end
  return words
end

-- ---- opening ---------------------------------------------------------------------------------

local function is_separator(text)
  return not text:find("^[^%w%s\"+.-]$") and text ~= "\t" and "one character such as ;" or nil
end

local SPEC = {
  path = { type = "string", required = true },
  target = { type = { "string", "integer", "table" }, default = -1 },
  columns = { type = "table" },
  words = { type = "table" },
  missing = { type = "number" },
  header = { type = "boolean" },
  separator = { type = "string", default = ",", check = is_separator },
}

---@class gpipe.CsvOptions
---@field path string
---@field target? string|integer|table a column's name or number; default -1, the last one; a list
--- of them: y is f32 [N, columns], {"price"} gives [N, 1] for regression
---@field columns? table names or numbers of the features; default: all but the target
---@field words? table names or numbers of columns of words, which become numbers of classes
---@field missing? number the value of an empty field; left out: an empty field is an error
---@field header? boolean whether the first line names the columns; left out: it does unless it
--- holds numbers only
---@field separator? string between fields; default ","

--- Open a file of numbers separated by commas. x: f32, all columns but the target; y: the target,
--- as i64 ids if all its values are whole numbers, else as f32. A target of words becomes i64 ids,
--- from 0 in the order of the words, which are `d.classes`. Columns that are not used may hold
--- anything. The file is read in pieces and takes four bytes of memory a feature.
--- Errors: wrong options raise, and so does a target that is not in the file; nil, message, code
--- for a file that cannot be read, with file:line and column of a field that is not a number.
--- ```lua
--- local d = assert(gp.data.csv{path = "examples/data/digits.csv", target = "label"})
--- local train, test = d:shuffle(1):split(0.8)
--- ```
---@param opts gpipe.CsvOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function csv.open(opts)
  opts = options.check("data.csv", opts, SPEC)
  local header, first, row = head_of(opts)
  if header == nil then return nil, first, row end
  local width = #first
  local columns = head(header and first or {}, width)
  local list = type(opts.target) == "table" and opts.target or { opts.target }
  local targets = columns_of(columns, list, "target")
  local features = opts.columns and columns_of(columns, opts.columns, "columns")
    or others(width, targets)
  if #features == 0 then
    return nil, ("%s: %s, expected features beside the target"):format(opts.path,
      counted(width, "column")), "format"
  end
  local words = words_of(opts, columns, row or {}, targets)
  local several = list == opts.target
  local x, y, classes = core.csv_read(opts.path, header, opts.separator, opts.missing,
    layout(columns.names, width, features, targets, words), not several)
  if not x then return nil, y, classes end
  return tensors.open(x, several and y or y:select(2, 1), classes[targets[1]])
end

return csv
