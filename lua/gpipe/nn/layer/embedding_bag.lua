-- lua/gpipe/nn/layer/embedding_bag.lua - `nn.EmbeddingBag`: one vector for several ids.

local core = require "gpipe.core"
local Embedding = require "gpipe.nn.layer.embedding"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"

---@class nn.EmbeddingBag: nn.Module
---@field weight gpipe.Tensor [n, dim]
local EmbeddingBag = class.new("EmbeddingBag", Module, true)

--- The mean (or sum, or maximum) of the vectors of the ids of each row.
---
--- Shapes: ids [B, L] (i64, i32 or u8, from 0) -> [B, dim].
--- Errors: those of nn.Embedding; when called, ids of another rank.
--- ```lua
--- local ids = gp.tensor({{0, 3}}, {dtype = "i64"})
--- assert(nn.EmbeddingBag(4, 2, {mode = "sum"})(ids).shape[2] == 2)
--- ```
---@param n integer
---@param dim integer
---@param opts? {mode?: "mean"|"sum"|"max"}
function EmbeddingBag:init(n, dim, opts)
  opts = options.check("nn.EmbeddingBag", opts, {
    mode = { choices = { "mean", "sum", "max" }, default = "mean" },
  })
  self.n = check.size("nn.EmbeddingBag", "n", n)
  self.dim = check.size("nn.EmbeddingBag", "dim", dim)
  self.mode = opts.mode
  self.weight = parameter.Parameter({ self.n, self.dim }, initial.normal(0, 1))
end

function EmbeddingBag:forward(ids)
  if #input.tensor(self, ids, "ids").shape ~= 2 then
    errors.raise("%s: ids are %s, expected ?x?", scope.label(self), check.shape_text(ids.shape))
  end
  local vectors = core.embedding(ids, self.weight)
  return (vectors[self.mode](vectors, 2))
end

function EmbeddingBag:describe() return Embedding.describe(self) .. ", " .. self.mode end

return EmbeddingBag
