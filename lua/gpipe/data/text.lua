-- lua/gpipe/data/text.lua - reads files of text as windows of ids.

local core = require "gpipe.core"
local encode = require "gpipe.data.encode"
local files = require "gpipe.data.files"
local options = require "gpipe.options"
local windows = require "gpipe.data.windows"

local text = {}

local SPEC = { field = { type = "string" } }
for _, rules in ipairs { files.SPEC, encode.SPEC } do
  for name, rule in pairs(rules) do SPEC[name] = rule end
end

-- ---- texts -------------------------------------------------------------------------------------

local function give_file(path, take)
  local bytes, message, code = core.file_map(path)
  if not bytes then return nil, message, code end
  local good
  good, message, code = core.corpus_check(path, bytes, 1)
  if good then take(bytes) end
  bytes:free()
  return good, message, code
end

-- Give the texts in a field of a JSONL file.
local function give_lines(path, field, take)
  local file, rows, code = core.jsonl_load(path, { field })
  if not file then return nil, rows, code end
  for row = 1, rows do
    local texts = core.jsonl_read(file, { row }, 1)
    if type(texts) ~= "table" then
      return nil, ("%s: field '%s' holds no texts"):format(path, field), "format"
    end
    take(texts[1])
  end
  return true
end

local function give_all(paths, field, take)
  for _, path in ipairs(paths) do
    local good, message, code
    if field then
      good, message, code = give_lines(path, field, take)
    else
      good, message, code = give_file(path, take)
    end
    if not good then return nil, message, code end
  end
  return true
end

-- ---- opening -----------------------------------------------------------------------------------

---@class gpipe.TextOptions one of path, dir and files
---@field path? string a file or a folder
---@field dir? string a folder
---@field files? string[] files and folders
---@field match? string a Lua pattern that paths must contain, e.g. "%.txt$"
---@field tokenizer gpipe.Tokenizer
---@field context integer ids of input in a window
---@field stride? integer ids from one window to the next; default context
---@field field? string the files are JSONL, and this field of each line is a text
---@field separator? string|boolean a token that follows each text; default `<|endoftext|>` where
--- the tokenizer has it; false: none
---@field special? boolean special tokens in the texts become their ids (true)

--- Open files of text as windows of `context` + 1 ids of a tokenizer: the inputs are the first
--- `context` ids, the targets are the last ones, i64. The texts follow one another in the order of
--- their files' names, with the separator after each. All texts are encoded at once; an id takes 2
--- bytes if the vocabulary has at most 65,536 tokens, else 4.
--- Errors: wrong options raise; nil, message, code for files that cannot be read, hold too little,
--- are not UTF-8 or are another kind of file, with the position of the byte.
--- ```lua
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- local d = assert(gp.data.text{path = "LICENSE", tokenizer = tok, context = 32})
--- local x, y = d:item(1)
--- print(tok:decode(x))
--- ```
---@param opts gpipe.TextOptions
---@return gpipe.Dataset?
---@return string? message
---@return string? code
function text.open(opts)
  opts = options.check("data.text", opts, SPEC)
  local separator = encode.separator("data.text", opts)
  local paths, message, code = files.find("data.text", opts)
  if not paths then return nil, message, code end
  local ids, width
  ids, width, code = encode.all(opts, separator, function(take)
    return give_all(paths, opts.field, take)
  end)
  if not ids then return nil, width, code end
  return windows.new {
    ids = ids, width = width, context = opts.context, stride = opts.stride, unit = "ids",
    name = files.name("data.text", opts), files = #paths,
  }
end

return text
