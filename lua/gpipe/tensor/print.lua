-- lua/gpipe/tensor/print.lua - tostring(tensor): its values, summarized, and a line with its dtype
-- and shape.
--
-- Printing must be safe for any size: it prints never more than a screen, and reads only the
-- elements that are shown. Large tensors show three items at each edge.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local screen = require "gpipe.screen"

local LINES = 20 -- lines of values; the footer comes in addition
local EDGE = 3 -- items shown at each end of a dimension that is summarised
local SUMMARISED = 1000 -- number of elements above which a tensor is summarised
local GAP = 0 -- stands for "..." in a list of positions

-- ---- what to show ----------------------------------------------------------------------------

-- The positions 1 .. size; if there are more than `limit`, only `edge` at each end and a gap.
local function pick(size, limit, edge)
  local positions = {}
  for i = 1, size <= limit and size or edge do positions[i] = i end
  if size > limit then
    positions[#positions + 1] = GAP
    for i = size - edge + 1, size do positions[#positions + 1] = i end
  end
  return positions
end

-- Read the values of the rows to show: a list of rows, each a list of numbers (GAP for a gap).
local function read_matrix(matrix, row_picks, column_picks)
  local rows = {}
  for i, r in ipairs(row_picks) do
    if r == GAP then
      rows[i] = GAP
    else
      local row, values = matrix:select(1, r), {}
      for j, c in ipairs(column_picks) do values[j] = c == GAP and "..." or row[c] end
      rows[i] = values
    end
  end
  return rows
end

-- ---- numbers ---------------------------------------------------------------------------------

local function is_finite(v) return v == v and v ~= math.huge and v ~= -math.huge end

-- The common format of all numbers shown: integers without a point, else four decimals, else
-- exponents.
local function number_format(blocks)
  local whole, low, high = true, math.huge, 0
  for _, block in ipairs(blocks) do
    for _, row in ipairs(block.rows) do
      for _, v in ipairs(row ~= GAP and row or {}) do
        if type(v) == "number" and is_finite(v) then
          local size = math.abs(v)
          whole = whole and math.tointeger(v) ~= nil
          high = math.max(high, size)
          if size > 0 then low = math.min(low, size) end
        end
      end
    end
  end
  if whole and high < 1e15 then return "%.0f" end
  if high >= 1e5 or low < 1e-4 then return "%.4e" end
  return "%.4f"
end

-- One value as text.
local function show(value, format)
  if type(value) == "string" then return value end
  if type(value) == "boolean" or math.type(value) == "integer" then return tostring(value) end
  if value ~= value then return "nan" end -- Lua would print "-nan" for 0/0
  if not is_finite(value) then return value > 0 and "inf" or "-inf" end
  return format:format(value)
end

-- ---- rows as text ----------------------------------------------------------------------------

-- The width of the widest cell in all blocks.
local function cell_width(blocks, format)
  local width = 1
  for _, block in ipairs(blocks) do
    for _, row in ipairs(block.rows) do
      for j, v in ipairs(row ~= GAP and row or {}) do
        row[j] = show(v, format)
        width = math.max(width, #row[j])
      end
    end
  end
  return width
end

-- Fit a row into a line that is too narrow for both ends: the first cells, and a gap.
local function fit_beginning(cells, capacity)
  local kept = table.move(cells, 1, math.max(1, capacity - 1), 1, {})
  kept[#kept] = kept[#kept] .. " .."
  return kept
end

-- Drop cells from the middle of a row until it fits.
local function fit(cells, capacity)
  if #cells <= capacity then return cells end
  if capacity < 3 then return fit_beginning(cells, capacity) end
  local edge = (capacity - 1) // 2
  local kept = {}
  for i = 1, edge do kept[i] = cells[i] end
  kept[#kept + 1] = "..."
  for i = #cells - edge + 1, #cells do kept[#kept + 1] = cells[i] end
  return kept
end

-- Write one row; cells are right-aligned, so that signs and points are below each other.
local function row_text(row, width)
  if row == GAP then return " ..." end
  local cells = fit(row, (screen.columns() - 1) // (width + 2))
  for i, cell in ipairs(cells) do
    cells[i] = (" "):rep(width + 1 - #cell:match "^%S*") .. cell
  end
  return table.concat(cells, " ")
end

-- ---- tensors ---------------------------------------------------------------------------------

-- "[f32 2x3]", "[f32 scalar]", "[f32 2x3 parameter]".
local function footer(tensor)
  local shape = table.concat(tensor.shape, "x")
  local kind = ""
  if tensor:is_parameter() then kind = tensor:is_buffer() and " buffer" or " parameter" end
  return ("[%s %s%s]"):format(tensor.dtype, shape == "" and "scalar" or shape, kind)
end

-- The columns that may be shown; row_text drops those that do not fit.
local function pick_columns(size, large)
  local limit = large and 2 * EDGE or screen.columns() // 2
  return pick(size, limit, large and EDGE or limit // 2)
end

-- The matrix at leading position `at` (1-based, row-major) of a tensor with more than two
-- dimensions, and its name "(2,1,.,.)".
local function slice_at(tensor, at)
  local shape, name = tensor.shape, {}
  at = at - 1
  for d = #shape - 2, 1, -1 do
    name[d] = at % shape[d] + 1
    at = at // shape[d]
  end
  local matrix = tensor
  for d = 1, #shape - 2 do matrix = matrix:select(1, name[d]) end
  return matrix, "(" .. table.concat(name, ",") .. ",.,.)"
end

-- Read the blocks {title, rows}; tensors of one and two dimensions have one block without a title.
local function read_blocks(tensor)
  local shape = tensor.shape
  local large = tensor:numel() > SUMMARISED
  local columns = pick_columns(shape[#shape], large)
  if #shape == 1 then
    local values = {}
    for j, c in ipairs(columns) do values[j] = c == GAP and "..." or tensor[c] end
    return { { rows = { values } } }
  end
  local height = shape[#shape - 1]
  if #shape == 2 then
    return { { rows = read_matrix(tensor, pick(height, LINES, EDGE), columns) } }
  end
  local slices = tensor:numel() // (height * shape[#shape])
  local all = slices * (height + 1) <= LINES
  local row_picks = pick(height, all and height or 2 * EDGE, EDGE)
  local room = (LINES - 1) // (2 * (#row_picks + 1)) -- slices at each end that a screen holds
  local blocks = {}
  for i, at in ipairs(pick(slices, all and slices or 2 * room, room)) do
    if at == GAP then
      blocks[i] = { title = "...", rows = {} }
    else
      local matrix, name = slice_at(tensor, at)
      blocks[i] = { title = name, rows = read_matrix(matrix, row_picks, columns) }
    end
  end
  return blocks
end

-- A parameter prints like its value, except for the last line.
local text_of
function text_of(tensor)
  if tensor:is_parameter() then
    return (text_of(tensor:value()):gsub("%b[]$", function() return footer(tensor) end))
  end
  if tensor:numel() == 0 then return footer(tensor) end
  if tensor:dim() == 0 then
    local value = tensor:item()
    local block = { rows = { { value } } }
    return show(value, number_format { block }) .. " " .. footer(tensor)
  end
  local blocks = read_blocks(tensor)
  local width = cell_width(blocks, number_format(blocks))
  local lines = {}
  for _, block in ipairs(blocks) do
    if block.title then lines[#lines + 1] = block.title end
    for _, row in ipairs(block.rows) do lines[#lines + 1] = row_text(row, width) end
  end
  lines[#lines + 1] = footer(tensor)
  return table.concat(lines, "\n")
end

-- ---- misspelt methods ------------------------------------------------------------------------

-- Called for a name that is neither a field nor a method; returns the end of the error text.
local function missing(key, methods)
  local way = require("gpipe.tensor.elsewhere")[key]
  if way then return (" (%s)"):format(way) end
  local names = { "shape", "dtype", "device" }
  for name in pairs(methods) do names[#names + 1] = name end
  table.sort(names)
  local near = errors.suggest(key, names)
  return near and (" (did you mean '%s'?)"):format(near) or ""
end

local DTYPES = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

core.hook("dtype", function(word) return errors.suggest(word, DTYPES) end)
core.hook("option", function(word, options)
  local names = {}
  for name in options:gmatch "[%w_]+" do names[#names + 1] = name end
  return errors.suggest(word, names)
end)
core.hook("tostring", text_of)
core.hook("missing", missing)

-- The names that completion offers besides methods.
local meta = debug.getmetatable(core.full("tensor", { 1 }, 0, "f32"))
function meta.fields(tensor)
  return { shape = tensor.shape, dtype = tensor.dtype, device = tensor.device,
    grad = tensor.grad or false, requires_grad = tensor.requires_grad }
end

return { text = text_of }
