-- gpipe/data/csv.lua - a table of numbers as a dataset: some columns are the target, others the
-- features.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local tensors = require "gpipe.data.tensors"

local csv = {}

-- ---- the target column -----------------------------------------------------------------------

local function named_column(names, target, what)
  if #names == 0 then
    errors.raise("data.csv: %s is %s, but the file has no header (a column number would do)", what,
      errors.show(target))
  end
  for i, name in ipairs(names) do
    if name == target then return i end
  end
  errors.raise("data.csv: there is no column '%s'%s", target, errors.hint(target, names, "columns"))
end

local function numbered_column(columns, target, what)
  local at = target < 0 and columns + 1 + target or target
  if at < 1 or at > columns then
    errors.raise("data.csv: %s is column %d, the file has %d", what, target, columns)
  end
  return at
end

-- The column that a name or a number means.
local function column_of(names, columns, given, what)
  if type(given) == "string" then return named_column(names, given, what) end
  local at = math.tointeger(given)
  if not at then
    errors.raise("data.csv: %s is %s, expected a column's name or number", what, errors.show(given))
  end
  return numbered_column(columns, at, what)
end

local function columns_of(names, columns, list, what)
  if #list == 0 then errors.raise("data.csv: %s is an empty list, expected a column", what) end
  local at = {}
  for i, given in ipairs(list) do at[i] = column_of(names, columns, given, what) end
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

-- ---- the tensors -----------------------------------------------------------------------------

-- Whole numbers become i64 ids, anything else f32. What a large table does not need any more is
-- freed at once: the collector would let it pile up to several times the file.
local function targets_of(values, column)
  local y = values:select(2, column):clone()
  values:free()
  local ids = y:to("i64")
  local back <close> = ids:to("f64")
  if core.methods.equal(back, y) then
    y:free()
    return ids
  end
  ids:free()
  return y:to("f32")
end

-- f32 [N, columns]: neighbours are taken together.
local function matrix_of(values, columns)
  local pieces, i = {}, 1
  while i <= #columns do
    local n = 1
    while columns[i + n] == columns[i] + n do n = n + 1 end
    pieces[#pieces + 1] = values:narrow(2, columns[i], n):to("f32")
    i = i + n
  end
  if #pieces == 1 then return pieces[1]:contiguous() end
  local x = core.concat(pieces, 2)
  for _, piece in ipairs(pieces) do piece:free() end
  return x
end

-- ---- reading ---------------------------------------------------------------------------------

-- A header of numbers is none: it would be a row that is lost without a word.
local function are_numbers(names)
  for _, name in ipairs(names) do
    if not name:find "^%s*[+-]?[%d.]+[eE]?[+-]?%d*%s*$" or not tonumber(name) then return false end
  end
  return #names > 0
end

-- Values and the names of the columns, or nil, message, code. Where the script does not say whether
-- the first line is a header, it is one unless it holds numbers only.
local function read(opts)
  local values, names, code = core.csv_read(opts.path, opts.header ~= false, opts.separator,
    opts.missing)
  if opts.header == nil and (not values or are_numbers(names)) then
    local all, none = core.csv_read(opts.path, false, opts.separator, opts.missing)
    if all then return all, none end
  end
  return values, names, code
end

-- ---- opening ---------------------------------------------------------------------------------

local function is_separator(text)
  return not text:find("^[^%w%s\"+.-]$") and text ~= "\t" and "one character such as ;" or nil
end

local SPEC = {
  path = { type = "string", required = true },
  target = { type = { "string", "integer", "table" }, default = -1 },
  columns = { type = "table" },
  missing = { type = "number" },
  header = { type = "boolean" },
  separator = { type = "string", default = ",", check = is_separator },
}

---@class gpipe.CsvOptions
---@field path string
---@field target? string|integer|table a column's name or number; default -1, the last one; a list
--- of them: y is f32 [N, columns], {"price"} gives [N, 1] for regression
---@field columns? table names or numbers of the features; default: all but the target
---@field missing? number what an empty field is; left out: an error
---@field header? boolean whether the first line names the columns; left out: it does unless it
--- holds numbers only
---@field separator? string between fields; default ","

--- Open a file of numbers separated by commas. x: f32, the columns but the target; y: the target,
--- as i64 ids where all its values are whole numbers, else f32.
--- Errors: wrong options raise, also a target that is not in the file; nil, message, code for a
--- file that cannot be read, with file:line and column for what is no number.
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
  local values, names, code = read(opts)
  if not values then return nil, names, code end
  local columns = values:size(2)
  local list = type(opts.target) == "table" and opts.target or { opts.target }
  local targets = columns_of(names, columns, list, "target")
  local features = opts.columns and columns_of(names, columns, opts.columns, "columns")
    or others(columns, targets)
  if #features == 0 then
    return nil, ("%s: %d column%s, expected features beside the target"):format(opts.path, columns,
      columns == 1 and "" or "s"), "format"
  end
  local x = matrix_of(values, features)
  if list == opts.target then return tensors.open(x, matrix_of(values, targets)) end
  return tensors.open(x, targets_of(values, targets[1]))
end

return csv
