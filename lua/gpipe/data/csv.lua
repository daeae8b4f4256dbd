-- gpipe/data/csv.lua - a table of numbers as a dataset: one column is the target, the others are
-- the features.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local tensors = require "gpipe.data.tensors"

local csv = {}

-- ---- the target column -----------------------------------------------------------------------

local function named_column(names, target)
  if #names == 0 then
    errors.raise("data.csv: target is %s, but the file has no header (a column number would do)",
      errors.show(target))
  end
  for i, name in ipairs(names) do
    if name == target then return i end
  end
  errors.raise("data.csv: there is no column '%s'%s", target, errors.hint(target, names, "columns"))
end

local function numbered_column(columns, target)
  local at = target < 0 and columns + 1 + target or target
  if at < 1 or at > columns then
    errors.raise("data.csv: target is column %d, the file has %d", target, columns)
  end
  return at
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

local function features_of(values, column)
  local columns, pieces = values:size(2), {}
  if column > 1 then pieces[1] = values:narrow(2, 1, column - 1) end
  if column < columns then
    pieces[#pieces + 1] = values:narrow(2, column + 1, columns - column)
  end
  local x = #pieces == 1 and pieces[1] or core.concat(pieces, 2)
  return x:to("f32"):contiguous()
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
  local values, names, code = core.csv_read(opts.path, opts.header ~= false, opts.separator)
  if opts.header == nil and (not values or are_numbers(names)) then
    local all, none = core.csv_read(opts.path, false, opts.separator)
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
  target = { type = { "string", "integer" }, default = -1 },
  header = { type = "boolean" },
  separator = { type = "string", default = ",", check = is_separator },
}

---@class gpipe.CsvOptions
---@field path string
---@field target? string|integer a column's name or number; default -1, the last one
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
  local column = math.type(opts.target) and numbered_column(columns, opts.target)
    or named_column(names, opts.target)
  if columns < 2 then
    return nil, ("%s: 1 column, expected features beside the target"):format(opts.path), "format"
  end
  local x = features_of(values, column)
  return tensors.open(x, targets_of(values, column))
end

return csv
