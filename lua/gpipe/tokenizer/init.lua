-- lua/gpipe/tokenizer/init.lua - `gp.tokenizer`: loads a byte-level vocabulary from its files.

local class = require "gpipe.tokenizer.class"
local core = require "gpipe.core"
local options = require "gpipe.options"

local function are_texts(list)
  for key, text in pairs(list) do
    if math.type(key) ~= "integer" or type(text) ~= "string" or text == "" then
      return "a list of tokens such as \"<|endoftext|>\""
    end
  end
end

local SPEC = {
  special = { type = "table", check = are_texts }, add_prefix_space = { type = "boolean" },
}

--- Load a byte-level BPE tokenizer: a `tokenizer.json`, a folder with one, or a folder with GPT-2's
--- `vocab.json` and `merges.txt`. The ids are those of the original (Hugging Face's tokenizers).
--- `#tok` is one more than the highest id; `tok.special` maps special tokens to their ids.
---
--- opts are for `vocab.json` and `merges.txt`, which lack this information: `special` is a list of
--- tokens of the vocabulary that are found in texts as a whole (by default `<|endoftext|>` if the
--- vocabulary has it); `add_prefix_space` treats every text as if it began with a space (false).
--- Errors: nil, message, code for files that cannot be read, are damaged ("format", with the
--- offset), or need a feature that is not supported ("unsupported", with its name).
--- ```lua
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- print(#tok, tok:encode "Hello, world!")
--- ```
---@param path string
---@param opts? {special?: string[], add_prefix_space?: boolean}
---@return gpipe.Tokenizer?
---@return string? message
---@return string? code
return function(path, opts)
  path = options.argument("gp.tokenizer", "path", path, { type = "string", required = true })
  local o = options.check("gp.tokenizer", opts, SPEC)
  local made, message, code = core.tokenizer_load(path, o.add_prefix_space or false, o.special)
  if not made then return nil, message, code end
  return class.new(made, path)
end
