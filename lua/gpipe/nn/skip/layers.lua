-- lua/gpipe/nn/skip/layers.lua - `nn.Stash` and `nn.Pop`: the two ends of a skip connection as
-- layers. A skip goes directly from stage to stage, whatever lies between.
-- Source: the idea is torchgpipe's.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local declare = require "gpipe.nn.skip.declare"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

-- Declare a skip for one instance, in the namespace that the options name.
local function begin(self, who, role, name, opts)
  declare.check_name(who, "name", name)
  local checked = options.check(who, opts, { namespace = { type = "table" } })
  self.name = name
  self[class.SKIPS] = { stash = {}, pop = {}, [role] = { name } }
  if checked.namespace then declare.isolate(self, checked.namespace) end
end

---@class nn.Stash: nn.Module
---@field name string
local Stash = class.new("Stash", Module, true)

--- Keep the input for the nn.Pop of the same name in a later layer, and pass it on.
---
--- Shapes: any -> the same. Every name is stashed once and popped once in a model; blocks that
--- occur several times need a namespace each (isolate).
--- Errors: a name that is not a word. gp.pipeline reports all stashes and pops that do not match.
--- ```lua
--- local model = nn.Sequential {
---   nn.Stash("x"), nn.Linear(4, 4), nn.ReLU(), nn.Pop("x", "add"),
--- }
--- local y = model(gp.ones {2, 4})
--- ```
---@param name string
---@param opts? {namespace?: nn.Namespace}
function Stash:init(name, opts) begin(self, "nn.Stash", "stash", name, opts) end

function Stash:forward(x, ...)
  if select("#", ...) > 0 then
    errors.raise("%s: there are %d inputs, expected one tensor (a class may stash each under a "
      .. "name of its own)", scope.label(self), 1 + select("#", ...))
  end
  self:stash(self.name, input.tensor(self, x))
  return x
end

function Stash:describe() return self.name end

---@class nn.Pop: nn.Module
---@field name string
---@field how "add"|"concat"|function
local Pop = class.new("Pop", Module, true)

local JOIN = {
  add = function(x, skip) return x + skip end,
  concat = function(x, skip) return core.concat({ x, skip }, 2) end,
}

--- Join the value that an earlier layer stashed under this name with the input.
---
--- Shapes: "add": both have one shape, or shapes that broadcast; "concat": along dimension 2, the
--- channels, the input first: [N, A, ..], [N, B, ..] -> [N, A + B, ..]; a function gets both. If a
--- skip carries nil in a run (a class may stash nil), the input passes unchanged; a function is
--- called with nil.
--- Errors: a name that is not a word; another way to join; nothing was stashed.
--- ```lua
--- local model = nn.Sequential {
---   nn.Stash("x"), nn.ReLU(), nn.Pop("x", function(x, skip) return x - skip end),
--- }
--- assert(model(gp.tensor {-1, 2}):totable()[1] == 1)
--- ```
---@param name string
---@param how? "add"|"concat"|fun(x: gpipe.Tensor, skip: gpipe.Tensor?): gpipe.Tensor "add"
---@param opts? {namespace?: nn.Namespace}
function Pop:init(name, how, opts)
  if how == nil then how = "add" end
  if not JOIN[how] and type(how) ~= "function" then
    errors.raise('nn.Pop: how is %s, expected "add", "concat" or a function(x, skip)',
      errors.show(how))
  end
  self.how = how
  begin(self, "nn.Pop", "pop", name, opts)
end

function Pop:forward(x, ...)
  local skip = self:pop(self.name)
  if not JOIN[self.how] then return self.how(x, skip, ...) end
  input.tensor(self, x)
  if skip == nil then return x end
  return JOIN[self.how](x, skip)
end

function Pop:describe()
  return JOIN[self.how] and ("%s, %s"):format(self.name, self.how) or self.name
end

return { Stash = Stash, Pop = Pop }
