-- lua/gpipe/models/gpt2/config.lua - reads and writes the config.json of Hugging Face's GPT-2.
--
-- A setting that this model does not support is an error: silently computing something else would
-- be worse.

local core = require "gpipe.core"

local config = {}

-- The file's field, our name, and the value if it is left out (that of GPT2Config).
local SIZES = {
  { "n_layer", "layers", 12 }, { "n_embd", "width", 768 }, { "n_head", "heads", 12 },
  { "n_positions", "context", 1024 }, { "vocab_size", "vocabulary", 50257 },
}
local DROPOUTS = {
  { "embd_pdrop", "embedding" }, { "attn_pdrop", "attention" }, { "resid_pdrop", "residual" },
}
local ACTIVATIONS = { gelu_new = "tanh", gelu_pytorch_tanh = "tanh", gelu_fast = "tanh",
  gelu = "erf" }
-- Fields that must have this value if they are present.
local FIXED = {
  { "model_type", "gpt2" }, { "scale_attn_weights", true },
  { "scale_attn_by_inverse_layer_idx", false }, { "add_cross_attention", false },
}
local LARGEST = 1 << 31 -- no model has a larger size, and products of two sizes fit in 64 bits

-- ---- reading ------------------------------------------------------------------------------------

local function shown(value)
  if type(value) == "string" then return ('"%s"'):format(value) end
  return type(value) == "table" and "a list or an object" or tostring(value)
end

local function fault(faults, name, value, wanted)
  faults[#faults + 1] = ("%s is %s, expected %s"):format(name, shown(value), wanted)
end

local function size_of(given, name, default, faults)
  local value = given[name]
  if value == nil then return default end
  local number = math.type(value) and math.tointeger(value)
  if number and number >= 1 and number < LARGEST then return number end
  fault(faults, name, value, "a positive integer")
  return default
end

local function share_of(given, name, faults)
  local value = given[name]
  if value == nil then return 0.1 end
  if math.type(value) and value >= 0 and value <= 1 then return value end
  fault(faults, name, value, "a number from 0 to 1")
  return 0
end

local function check_fixed(given, faults)
  for _, row in ipairs(FIXED) do
    local value = given[row[1]]
    if value ~= nil and value ~= row[2] then fault(faults, row[1], value, shown(row[2])) end
  end
end

local function read_rest(c, given, faults)
  c.inner = size_of(given, "n_inner", 4 * c.width, faults)
  c.activation = ACTIVATIONS[given.activation_function or "gelu_new"]
  if not c.activation then
    fault(faults, "activation_function", given.activation_function, '"gelu_new" or "gelu"')
  end
  c.eps = given.layer_norm_epsilon or 1e-5
  if not math.type(c.eps) or not (c.eps > 0 and c.eps < 1) then
    fault(faults, "layer_norm_epsilon", c.eps, "a number between 0 and 1")
  end
  c.tied = given.tie_word_embeddings
  if c.tied == nil then c.tied = true end
  if type(c.tied) ~= "boolean" then
    fault(faults, "tie_word_embeddings", c.tied, "true or false")
  end
  if c.width % c.heads ~= 0 then
    fault(faults, "n_head", c.heads, ("what divides n_embd, %d"):format(c.width))
  end
end

--- Read the text of a config.json.
---@param text string
---@return table? config as gpipe.models.gpt2.layers takes it
---@return string? reason all faults
function config.read(text)
  local given, reason = core.json_decode(text)
  if type(given) ~= "table" then return nil, reason or "it is no JSON object" end
  local c, faults = { dropouts = {} }, {}
  check_fixed(given, faults)
  for _, row in ipairs(SIZES) do c[row[2]] = size_of(given, row[1], row[3], faults) end
  for _, row in ipairs(DROPOUTS) do c.dropouts[row[2]] = share_of(given, row[1], faults) end
  read_rest(c, given, faults)
  if #faults > 0 then return nil, table.concat(faults, "\n  ") end
  return c
end

-- ---- writing ------------------------------------------------------------------------------------

local FORM = [[
{
  "activation_function": "%s",
  "architectures": ["GPT2LMHeadModel"],
  "attn_pdrop": %.17g,
  "bos_token_id": %d,
  "embd_pdrop": %.17g,
  "eos_token_id": %d,
  "initializer_range": 0.02,
  "layer_norm_epsilon": %.17g,
  "model_type": "gpt2",
  "n_ctx": %d,
  "n_embd": %d,
  "n_head": %d,
  "n_inner": %s,
  "n_layer": %d,
  "n_positions": %d,
  "resid_pdrop": %.17g,
  "scale_attn_weights": true,
  "tie_word_embeddings": %s,
  "torch_dtype": "float32",
  "vocab_size": %d
}
]]

--- The text of a config.json.
---@param c table
---@return string
function config.text(c)
  local last, drop = c.vocabulary - 1, c.dropouts -- <|endoftext|> is the last token
  return FORM:format(c.activation == "tanh" and "gelu_new" or "gelu", drop.attention, last,
    drop.embedding, last, c.eps, c.context, c.width, c.heads,
    c.inner == 4 * c.width and "null" or c.inner, c.layers, c.context, drop.residual,
    tostring(c.tied), c.vocabulary)
end

return config
