-- tests/support/awkward.lua - the awkward texts of tests/golden/tokenizer.py, made by the same
-- steps.

local awkward = {}

local char = utf8.char

local SPACES = { 9, 10, 11, 12, 13, 32, 32, 32, 0x85, 0xA0, 0x1680, 0x180E, 0x2000, 0x2003, 0x200A,
  0x200B, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF, 0x1C, 0x1F }
local DIGITS = { 0x30, 0x35, 0x39, 0x660, 0x669, 0xFF11, 0xB2, 0xBD, 0x2160, 0x1D7D8, 0x4E00, 0x966,
  0x1F100 }
local SNIPPETS = { "'s", "'S", "'ll", "'LL", "'re", "'Ve", "'d", "'t's", "\u{2019}s", "'\u{17f}",
  "''m", "don't", "I'M", "we'd've", "'\u{212a}", "o'clock" }
local EMOJI = { "\u{1F600}", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", "\u{1F44D}\u{1F3FD}",
  "\u{1F1E9}\u{1F1EA}", "1\u{FE0F}\u{20E3}", "\u{2764}\u{FE0F}",
  "\u{1F3F4}\u{E0067}\u{E0062}\u{E007F}", "\u{263A}" }
local WORDS = { "the", "pipeline", " of", " schedule", "micro-batch", "Hello", "WORLD", "memory",
  " devices", "gradient", "x", " a", "na\u{EF}ve", "stage", "2026", " 1,000,000", "camelCase",
  "HTTPServer", "snake_case", "==",
  -- the added tokens of the cases, and texts that are nearly one
  "<|endoftext|>", "<|end", "<mask>", " <mask> ", "<mask", "[X]", "[X][X]", "<|begin_of_text|>",
  "a[X]b", "<long>", "<longer>", "<|endoftext|><|endoftext|>", "word", " word ", "\u{E9}<r>",
  "<r> \u{3000}x", "<l>" }
local BREAKS = { "\n", "\r\n", " ", "\n\n", "  \n", "\t" }
local RANGES = { { 0x21, 0x7E }, { 0xA1, 0x24F }, { 0x300, 0x36F }, { 0x370, 0x1FFF },
  { 0x4E00, 0x9FFF }, { 0xAC00, 0xD7A3 }, { 0x2010, 0x2BFF }, { 0x1F300, 0x1FAFF },
  { 0, 0x10FFFF } }

-- Returns a generator of whole numbers below n.
local function random(seed)
  local x = seed
  return function(n)
    x = x * 6364136223846793005 + 1442695040888963407
    return (x >> 33) % n
  end
end

local function any_of(below, list) return list[below(#list) + 1] end

local function piece(below)
  local kind = below(16)
  if kind < 9 then
    local range = RANGES[kind + 1]
    local code = range[1] + below(range[2] - range[1] + 1)
    return char(code >= 0xD800 and code <= 0xDFFF and 0x41 or code)
  end
  if kind == 9 then
    local code = below(33)
    return char(code == 32 and 127 or code)
  end
  if kind == 10 then
    local space = char(any_of(below, SPACES))
    return space:rep(1 + below(4))
  end
  if kind == 11 then
    local digit = char(any_of(below, DIGITS))
    return digit:rep(1 + below(5))
  end
  if kind == 15 then
    local line = any_of(below, BREAKS)
    return line:rep(1 + below(12))
  end
  return any_of(below, ({ SNIPPETS, EMOJI, WORDS })[kind - 11])
end

--- Return the i-th text, i from 0.
---@param i integer
---@return string
function awkward.text(i)
  local below = random(i * 7919 + 17)
  local parts = {}
  for k = 1, below(24) do parts[k] = piece(below) end
  return table.concat(parts)
end

--- Return n bytes that need not be UTF-8.
---@param n integer
---@param seed integer
---@return string
function awkward.bytes(n, seed)
  local below = random(seed)
  local parts = {}
  for k = 1, n do parts[k] = string.char(below(256)) end
  return table.concat(parts)
end

return awkward
