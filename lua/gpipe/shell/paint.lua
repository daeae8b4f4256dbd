-- lua/gpipe/shell/paint.lua - colours the output of the interactive mode.
--
-- A value is first converted to text, as everywhere. Colours are added to that text without
-- changing its characters, so the output without a terminal is the same. Texts that have their own
-- colours (drawings) are left alone.

local is_tensor = require "gpipe.tensor.is"
local show = require "gpipe.show"

local paint = {}

local RESET = "\27[0m"
local COLOURS = {
  number = "\27[33m", text = "\27[32m", word = "\27[35m", name = "\27[36m", faint = "\27[2m",
  wrong = "\27[31m",
}

local function in_colour(kind, text) return COLOURS[kind] .. text .. RESET end

-- ---- tables and numbers ------------------------------------------------------------------------

local WORDS = { ["nil"] = "word", ["true"] = "word", ["false"] = "word", ["function"] = "word",
  nan = "wrong", inf = "wrong" }

-- The end of the quoted text that begins at a position.
local function end_of_text(text, at)
  local i = at + 1
  while i <= #text and text:sub(i, i) ~= '"' do
    i = i + (text:sub(i, i) == "\\" and 2 or 1)
  end
  return i
end

-- The token at a position: its kind of colour (nil for none) and its last position.
local function token(text, at)
  if text:find('^"', at) then return "text", end_of_text(text, at) end
  local last = select(2, text:find("^tensor %w+ [%dx]+", at)) or
    select(2, text:find("^tensor %w+ scalar", at))
  if last then return "name", last end
  last = select(2, text:find("^%.%.%.[%w ]*", at))
  if last then return "faint", last end
  last = select(2, text:find("^[%a_][%w_.]*", at))
  if last then return WORDS[text:sub(at, last)], last end
  last = select(2, text:find("^%-?%d[%w.]*", at))
  if last then return "number", last end
  return nil, at
end

-- Colour the numbers, texts and words of a text that looks like Lua.
local function paint_code(text)
  local parts, at = {}, 1
  while at <= #text do
    local kind, last = token(text, at)
    local piece = text:sub(at, last)
    parts[#parts + 1] = kind and in_colour(kind, piece) or piece
    at = last + 1
  end
  return table.concat(parts)
end

-- ---- tensors, models ---------------------------------------------------------------------------

-- Colour NaN and infinities; other values stay plain. The last line says what the tensor is.
local function paint_tensor(text)
  local values, footer = text:match "^(.-)(%[[^%]]*%])$"
  values = values:gsub("%-?%f[%a]%a+", function(word)
    return (word == "nan" or word:find "inf") and in_colour("wrong", word) or nil
  end):gsub("%.%.%.", in_colour("faint", "..."))
  return values .. in_colour("name", footer)
end

local function paint_model(text)
  return (text:gsub("%[input [^%]]*%]", function(chain) return in_colour("faint", chain) end)
    :gsub("%f[%w_][%a_][%w_]*%.%u[%w_]*", function(name) return in_colour("name", name) end))
end

--- The text of a value in colours.
---@param value any
---@return string
function paint.value(value)
  local text = show.value(value)
  if type(value) == "string" or text:find("\27", 1, true) then return text end
  if is_tensor(value) then return paint_tensor(text) end
  local meta = type(value) == "table" and debug.getmetatable(value)
  if meta and rawget(meta, "__tostring") then return paint_model(text) end
  return paint_code(text)
end

--- Colour the first line of an error text.
---@param text string
---@return string
function paint.error(text)
  return (text:gsub("^[^\n]*", function(line) return in_colour("wrong", line) end))
end

return paint
