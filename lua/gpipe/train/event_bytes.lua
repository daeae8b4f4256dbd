-- lua/gpipe/train/event_bytes.lua - encodes the records of TensorBoard's event files.
--
--   record = u64 length, u32 masked crc of these 8 bytes, data, u32 masked crc of the data
--   data   = an Event in protocol buffers: wall_time 1, step 2, file_version 3, summary 5,
--            session_log 7
--
-- Source: TFRecord and tensorflow/core/util/event.proto, summary.proto, tensor.proto of TensorFlow;
-- CRC-32C is Castagnoli's polynomial, reflected.

local bytes = {}

-- ---- records -----------------------------------------------------------------------------------

local POLYNOMIAL = 0x82F63B78

local TABLE = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = c & 1 == 1 and c >> 1 ~ POLYNOMIAL or c >> 1 end
  TABLE[i] = c
end

local AT_ONCE = 128 -- bytes read from a string in one call

--- The CRC-32C of a text.
---@param text string
---@return integer
function bytes.crc32c(text)
  local crc = 0xFFFFFFFF
  for first = 1, #text, AT_ONCE do
    local part = { text:byte(first, first + AT_ONCE - 1) }
    for i = 1, #part do crc = TABLE[(crc ~ part[i]) & 0xFF] ~ crc >> 8 end
  end
  return crc ~ 0xFFFFFFFF
end

-- Mask a CRC, so that the CRC of data that contains CRCs differs from them.
local function masked(text)
  local crc = bytes.crc32c(text)
  return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF
end

--- An event with its frame.
---@param event string
---@return string
function bytes.record(event)
  local length = ("<I8"):pack(#event)
  return ("%s%s%s%s"):format(length, ("<I4"):pack(masked(length)), event,
    ("<I4"):pack(masked(event)))
end

-- ---- protocol buffers --------------------------------------------------------------------------

local function varint(n)
  if n < 0x80 then return string.char(n) end
  local parts = {}
  while n >= 0x80 do
    parts[#parts + 1] = string.char(n & 0x7F | 0x80)
    n = n >> 7
  end
  parts[#parts + 1] = string.char(n)
  return table.concat(parts)
end

local WHOLE, EIGHT, TEXT, FOUR = 0, 1, 2, 5 -- wire types

local function key(field, wire) return varint(field << 3 | wire) end
local function whole(field, n) return key(field, WHOLE) .. varint(n) end
local function double(field, x) return key(field, EIGHT) .. ("<d"):pack(x) end
local function float(field, x) return key(field, FOUR) .. ("<f"):pack(x) end
local function text(field, s) return key(field, TEXT) .. varint(#s) .. s end

local function doubles(field, list)
  local parts = {}
  for i, x in ipairs(list) do parts[i] = ("<d"):pack(x) end
  return text(field, table.concat(parts))
end

-- ---- events ------------------------------------------------------------------------------------

--- The first record of a file.
---@param time number seconds since 1970
---@return string
function bytes.version(time) return double(1, time) .. text(3, "brain.Event:2") end

-- Begin an event; a step of 0 is not written, as in TensorFlow.
local function begin(time, step) return double(1, time) .. (step > 0 and whole(2, step) or "") end

local function value(time, step, tag, content)
  return begin(time, step) .. text(5, text(1, text(1, tag) .. content))
end

--- Mark that a process begins at a step: records in earlier files from this step on do not count.
---@param time number
---@param step integer
---@return string
function bytes.start(time, step) return begin(time, step) .. text(7, whole(1, 1)) end

---@param time number
---@param step integer
---@param tag string
---@param x number
---@return string
function bytes.scalar(time, step, tag, x) return value(time, step, tag, float(2, x)) end

local TEXT_PLUGIN = text(9, text(1, text(1, "text")))
local STRING = 7 -- DT_STRING

---@param time number
---@param step integer
---@param tag string
---@param what string Markdown
---@return string
function bytes.text(time, step, tag, what)
  local one = text(2, text(2, whole(1, 1))) -- a shape of one element
  return value(time, step, tag, TEXT_PLUGIN .. text(8, whole(1, STRING) .. one .. text(8, what)))
end

---@param time number
---@param step integer
---@param tag string
---@param h {min: number, max: number, count: number, sum: number, squares: number,
---  limits: number[], counts: number[]}
---@return string
function bytes.histogram(time, step, tag, h)
  return value(time, step, tag, text(5, double(1, h.min) .. double(2, h.max) .. double(3, h.count)
    .. double(4, h.sum) .. double(5, h.squares) .. doubles(6, h.limits) .. doubles(7, h.counts)))
end

return bytes
