-- lua/gpipe/nn/layer/embedding.lua - `nn.Embedding`: a table of vectors looked up by id.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"

---@class nn.Embedding: nn.Module
---@field weight gpipe.Tensor [n, dim]
local Embedding = class.new("Embedding", Module, true)

local OPTIONS = {
  init = { type = { "table", "number", "tensor" }, default = initial.normal(0, 1) },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- A table of n vectors; ids count from 0, as in data files.
---
--- Shapes: ids [..] (i64, i32 or u8) -> [.., dim].
--- Errors: sizes that are not positive integers; when called, an id outside 0 .. n - 1.
--- ```lua
--- local y = nn.Embedding(256, 16)(gp.tensor({{0, 255}}, {dtype = "i64"}))
--- assert(y.shape[3] == 16)
--- ```
---@param n integer
---@param dim integer
---@param opts? {init?: nn.Initializer, dtype?: "f32"|"f64"} init of the weight: normal(0, 1)
function Embedding:init(n, dim, opts)
  self.n = check.size("nn.Embedding", "n", n)
  self.dim = check.size("nn.Embedding", "dim", dim)
  opts = options.check("nn.Embedding", opts, OPTIONS)
  self.weight = parameter.Parameter({ self.n, self.dim }, opts.init, { dtype = opts.dtype })
end

function Embedding:forward(ids)
  return core.embedding(input.tensor(self, ids, "ids"), self.weight)
end

function Embedding:describe() return ("%d x %d"):format(self.n, self.dim) end

return Embedding
