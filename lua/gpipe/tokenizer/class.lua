-- lua/gpipe/tokenizer/class.lua - the methods of a tokenizer: texts to ids and back, tokens by id.
--
-- The work is done in C (runtime/io/bpe). A tokenizer never changes: each call says what encode
-- leaves out or adds.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

---@class gpipe.Tokenizer
---@field special table<string, integer> ids of the special tokens by their text
---@field path string
local Tokenizer = { __name = "gpipe.Tokenizer", methods = {} }
local methods = Tokenizer.methods

-- The object in C, kept apart from what users index.
local cores = setmetatable({}, { __mode = "k" })

local NAMES = { "encode", "decode", "token", "id", "special", "path" }

function Tokenizer.__index(_, key)
  local method = methods[key]
  if method == nil and type(key) == "string" then
    errors.raise("tokenizer: there is no '%s'%s", key, errors.hint(key, NAMES, "names"))
  end
  return method
end

function Tokenizer.__len(self) return core.tokenizer_count(cores[self]) end

function Tokenizer.__tostring(self)
  return ("Tokenizer(%s: %d ids)"):format(self.path, #self)
end

-- ---- ids ---------------------------------------------------------------------------------------

local ENCODE = {
  special = { type = "boolean", default = true },
  add_special = { type = "boolean", default = true },
}

--- The ids of a text, i64 [n]. The text may hold any bytes: bytes that are not UTF-8 become ids
--- too, so that `decode` returns the same bytes. Special tokens in the text become their ids. The
--- tokens that the tokenizer's file puts before and after every text (BOS, EOS) are added, as in
--- the original.
---
--- opts: `special = false`: special tokens in the text are treated as plain text (for texts that
--- are not trusted); `add_special = false`: nothing is added before and after.
--- Errors: a byte that the vocabulary lacks.
--- ```lua
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- local ids = tok:encode "It's 5 o'clock.<|endoftext|>"
--- assert(ids.dtype == "i64" and ids[-1] == tok.special["<|endoftext|>"])
--- assert(tok:encode("<|endoftext|>", {special = false}):numel() > 1)
--- ```
---@param text string
---@param opts? {special?: boolean, add_special?: boolean}
---@return gpipe.Tensor
function methods:encode(text, opts)
  text = options.argument("encode", "text", text, { type = "string", required = true })
  local o = options.check("encode", opts, ENCODE)
  return core.tokenizer_encode(cores[self], text, not o.special, not o.add_special)
end

-- Convert a list of ids or a tensor of integers to i64 [n].
local function ids_of(ids)
  if math.type(ids) == "integer" then ids = { ids } end
  if is_tensor(ids) then
    if ids.dtype ~= "i64" and ids.dtype ~= "i32" and ids.dtype ~= "u8" then
      errors.raise("decode: ids is a tensor of %s, expected ids (i64)", ids.dtype)
    end
    return ids:reshape { -1 }:to("i64"):contiguous()
  end
  if type(ids) ~= "table" then
    errors.raise("decode: ids is %s, expected a tensor or a list of ids", errors.show(ids))
  end
  for key, id in pairs(ids) do
    if math.type(key) ~= "integer" or math.type(id) ~= "integer" then
      errors.raise("decode: element %s of ids is %s, expected an id", tostring(key),
        errors.show(id))
    end
  end
  return core.tensor(ids, "i64")
end

--- The bytes that ids stand for, one after the other. If a character is cut off at an end, its
--- remaining bytes are returned as they are.
---
--- ids: a tensor of integers of any shape, a list, or one id. opts: `skip_special = true` leaves
--- special tokens out.
--- Errors: an id that stands for nothing.
--- ```lua
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- assert(tok:decode(tok:encode "naïve \xff bytes") == "naïve \xff bytes")
--- ```
---@param ids gpipe.Tensor|integer[]|integer
---@param opts? {skip_special?: boolean}
---@return string
function methods:decode(ids, opts)
  local o = options.check("decode", opts, { skip_special = { type = "boolean", default = false } })
  return core.tokenizer_decode(cores[self], ids_of(ids), o.skip_special)
end

--- The bytes of one id; nil if it stands for nothing.
--- ```lua
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- assert(tok:token(tok:id " the") == " the")
--- ```
---@param id integer from 0
---@return string?
function methods:token(id)
  return core.tokenizer_token(cores[self],
    options.argument("token", "id", id, { type = "integer", required = true }))
end

--- The id of bytes that form one token; nil if they do not.
--- ```lua
--- local tok = assert(gp.tokenizer "examples/data/tokenizer")
--- assert(tok:id "<|endoftext|>" == #tok - 1)
--- ```
---@param bytes string
---@return integer?
function methods:id(bytes)
  return core.tokenizer_find(cores[self],
    options.argument("id", "bytes", bytes, { type = "string", required = true }))
end

---@param loaded userdata the object in C
---@param path string where it is from
---@return gpipe.Tokenizer
local function new(loaded, path)
  local tokenizer = setmetatable({ path = path, special = core.tokenizer_special(loaded) },
    Tokenizer)
  cores[tokenizer] = loaded
  return tokenizer
end

-- The object in C; nil if the value is not a tokenizer.
local function core_of(value) return cores[value] end

return { new = new, methods = methods, core_of = core_of }
