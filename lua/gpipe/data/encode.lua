-- lua/gpipe/data/encode.lua - shared by text data: the tokenizer option, and texts encoded one
-- after the other.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local tokenizers = require "gpipe.tokenizer.class"

local encode = {}

local function is_tokenizer(value)
  return not tokenizers.core_of(value) and "a tokenizer (gp.tokenizer)" or nil
end

-- The rules of these options.
encode.SPEC = {
  tokenizer = { type = "any", required = true, check = is_tokenizer },
  context = { type = "integer", min = 1, required = true },
  stride = { type = "integer", min = 1 },
  separator = { type = { "string", "boolean" } },
  special = { type = "boolean", default = true },
}

--- The id that is put between texts: that of the option separator, else that of <|endoftext|> if
--- the tokenizer has it; nil for none.
---@param who string
---@param opts table
---@return integer?
function encode.separator(who, opts)
  local text = opts.separator
  if text == false then return nil end
  if text == nil or text == true then text = "<|endoftext|>" end
  local id = opts.tokenizer.special[text] or opts.tokenizer:id(text)
  if opts.separator and not id then
    errors.raise("%s: option 'separator' is %s, expected a token of the tokenizer", who,
      errors.show(opts.separator))
  end
  return id
end

--- The ids of texts (strings or u8 tensors), a separator after each.
---@param opts table
---@param separator integer?
---@param each fun(take: fun(text: string|gpipe.Tensor)): any, string?, string? gives the texts;
--- returns false, message, code where it could not
---@return gpipe.Tensor? ids u8 [size]
---@return integer|string width bytes of an id, or a message
---@return string? code
function encode.all(opts, separator, each)
  local pack, width = core.pack_new(tokenizers.core_of(opts.tokenizer))
  local good, message, code = each(function(text)
    core.pack_text(pack, text, not opts.special)
    if separator then core.pack_id(pack, separator) end
  end)
  if not good then return nil, message, code end
  return core.pack_take(pack), width
end

return encode
