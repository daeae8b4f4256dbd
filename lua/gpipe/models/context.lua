-- lua/gpipe/models/context.lua - how many ids a language model takes: its own `context` field, or
-- the number of rows in its table of positions.

local attributes = require "gpipe.nn.attributes"

-- Usual names of tables of positions, or of the embeddings that hold them.
local POSITIONS = {}
for name in ([[pos wpe position positions positional pos_emb pos_embed pos_embedding
  pos_embeddings position_embedding position_embeddings positional_embedding
  positional_embeddings]]):gmatch "%S+" do
  POSITIONS[name] = true
end

local function is_place(path)
  for word in path:gmatch "[^.]+" do
    if POSITIONS[word:lower()] then return true end
  end
  return false
end

-- Rows of [T, C] or [1, T, C].
local function rows_of(shape)
  if #shape == 2 then return shape[1] end
  return #shape == 3 and shape[1] == 1 and shape[2] or nil
end

local function stated(module)
  local context = rawget(module, "context")
  return math.type(context) == "integer" and context > 0 and context or nil
end

--- The most ids that a model takes, the least if several parts tell; nil if nothing in it tells.
---@param model nn.Module
---@return integer?
return function(model)
  local least = stated(model)
  local function lower(rows)
    if rows and (not least or rows < least) then least = rows end
  end
  attributes.walk(model, function(name_of, value, kind)
    if kind == "module" then
      lower(stated(value))
    elseif is_place(name_of()) then
      lower(rows_of(value.shape))
    end
  end)
  return least
end
