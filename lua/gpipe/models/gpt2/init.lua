-- lua/gpipe/models/gpt2/init.lua - `gp.models.gpt2`: GPT-2 in its four sizes or any other, and its
-- files in Hugging Face's layout.

local errors = require "gpipe.errors"
local files = require "gpipe.models.gpt2.files"
local layers = require "gpipe.models.gpt2.layers"
local options = require "gpipe.options"

local WHO = "gp.models.gpt2"

-- Source: Radford et al. 2019, table 2.
local SIZES = {
  small = { layers = 12, width = 768, heads = 12 },
  medium = { layers = 24, width = 1024, heads = 16 },
  large = { layers = 36, width = 1280, heads = 20 },
  xl = { layers = 48, width = 1600, heads = 25 },
}

local function count(default) return { type = "integer", min = 1, default = default } end
local OPTIONS = {
  layers = count(12), width = count(768), heads = count(12), context = count(1024),
  vocabulary = count(50257), dropout = { type = "number", min = 0, max = 1, default = 0.1 },
}

local function choose(given)
  if type(given) ~= "string" then return given end
  if not SIZES[given] then
    errors.raise('%s: size is "%s", expected "small", "medium", "large", "xl" or options', WHO,
      given)
  end
  return SIZES[given]
end

local function merge(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return b == nil and a or b end
  local both = {}
  for key, value in pairs(a) do both[key] = value end
  for key, value in pairs(b) do both[key] = value end
  return both
end

local models = {} -- so that the function has the name that users call

--- GPT-2: an embedding with learned positions, `layers` blocks and a head whose matrix is the
--- embedding's table, as an nn.Sequential of layers + 2 entries that can be cut between any two.
---
--- Shapes: ids [B, T] -> scores [B, T, vocabulary], T up to `context`. With the shared table
--- counted once, "small" has 124,439,808 parameters, "medium" 354,823,168, "large" 774,030,080 and
--- "xl" 1,557,611,200. Weights start as in the paper.
--- Errors: another size, heads that do not divide width, an unknown option.
--- ```lua
--- local model = gp.models.gpt2 {layers = 2, width = 16, heads = 2, context = 8, vocabulary = 100}
--- assert(#model == 4)
--- local scores = model(gp.tensor({{1, 2, 3}}, {dtype = "i64"}))
--- assert(scores.shape[3] == 100)
--- ```
---@param size? "small"|"medium"|"large"|"xl"|table or the options alone; "small"
---@param opts? {layers?: integer, width?: integer, heads?: integer, context?: integer,
---  vocabulary?: integer, dropout?: number} dropout: 0.1, of embedding, attention and residuals
---@return nn.Sequential
function models.gpt2(size, opts)
  local o = options.check(WHO, merge(choose(size), opts), OPTIONS)
  if o.width % o.heads ~= 0 then
    errors.raise("%s: width is %d and heads is %d, expected heads to divide width", WHO, o.width,
      o.heads)
  end
  return layers.build {
    layers = o.layers, width = o.width, heads = o.heads, context = o.context,
    vocabulary = o.vocabulary, inner = 4 * o.width, eps = 1e-5, activation = "tanh", tied = true,
    dropouts = { embedding = o.dropout, attention = o.dropout, residual = o.dropout },
  }
end

-- What scripts see: a table that is called to make a model; `call` is for the documentation.
return setmetatable({ load = files.load, save = files.save }, {
  __name = WHO, call = models.gpt2, __call = function(_, ...) return models.gpt2(...) end,
  __index = function(_, key)
    if type(key) ~= "string" then return nil end
    errors.raise("%s: there is no '%s'%s", WHO, key, errors.hint(key, { "load", "save" }, "names"))
  end,
})
