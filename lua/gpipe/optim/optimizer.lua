-- gpipe/optim/optimizer.lua - the object that all optimizers share: groups, settings, steps.
--
-- A setting is looked up in the group, then in the optimizer: `opt.lr = x` changes every group that
-- has no learning rate of its own. Settings are checked when they are set, so that a step cannot
-- fail because of them. The object behind the optimizer (core.optimizer_new) holds the moments and
-- the number of steps.

local call = require "gpipe.ranks.call"
local core = require "gpipe.core"
local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local grouping = require "gpipe.optim.group"
local in_use = require "gpipe.optim.in_use"
local lazy = require "gpipe.optim.lazy"
local options = require "gpipe.options"
local params = require "gpipe.optim.params"
local remark = require "gpipe.ranks.remark"
local rules = require "gpipe.optim.rules"
local state = require "gpipe.optim.state"
local whole = require "gpipe.optim.whole.handle"

---@class gpipe.Optimizer
---@field lr number may be set at any time
---@field weight_decay number may be set at any time
---@field groups table[] with the same settings
local methods = {}

local fields = grouping.fields

-- ---- the object ------------------------------------------------------------------------------

local Optimizer = { __name = "gpipe.Optimizer", methods = methods }

function Optimizer.__index(opt, key)
  local f = fields[opt]
  if methods[key] then return methods[key] end
  if key == "groups" then return f.groups end
  if f.defaults[key] ~= nil or f.spec[key] then return f.defaults[key] end
  local names = { "groups" }
  for name in pairs(methods) do names[#names + 1] = name end
  return grouping.missing(f, key, names)
end

-- The names that completion offers: the settings.
function Optimizer.fields(opt)
  local f = fields[opt]
  local found = { groups = f.groups }
  for name in pairs(f.spec) do found[name] = f.defaults[name] end
  return found
end

function Optimizer.__newindex(opt, key, value)
  local f = fields[opt]
  grouping.set(f.who, f.defaults, f.spec, key, value)
end

function Optimizer.__tostring(opt)
  local f = fields[opt]
  local count = 0
  for _, group in ipairs(f.groups) do count = count + #group.params end
  return ("%s(%s in %s, lr %s, step %d)"):format(f.who:match("[^.]+$"),
    counted(count, "parameter"), counted(#f.groups, "group"),
    tostring(f.defaults.lr or "per group"), f.handle:steps())
end

local function hypers_of(f)
  local hypers = {}
  for i, group in ipairs(f.groups) do hypers[i] = grouping.hyper(group) end
  return hypers
end

-- Wait for a pipeline that makes the updates and may be in the middle of them.
local function settle(f)
  if f.settle then f.settle() end
end

local optimizer = {}

--- Say that an update was skipped; the caller sees to it that this is said once.
function optimizer.say_skipped()
  remark("the gradients of this step are not finite, so nothing was updated (reported once; "
    .. "pipe.stats.skipped counts such steps, finite = true names the layer)")
end

--- Update all parameters from their gradients. If these are not finite, nothing is updated, which
--- is said once and counted in `pipe.stats.skipped`; twenty such steps in a row raise an error
--- (option `finite` of gp.pipeline).
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- local pipe <close> = gp.pipeline(model, {loss = nn.MSELoss()})
--- local opt = gp.optim.SGD(pipe:parameters(), {lr = 0.1})
--- pipe:step(gp.ones{8, 4}, gp.ones{8, 2})
--- opt:step()
--- ```
function methods:step()
  local f = fields[self]
  local _ <close> = call.enter "opt:step"
  if not f.handle:step(hypers_of(f)) or f.skip_said then return end
  f.skip_said = true
  optimizer.say_skipped()
end

--- Set the gradients to zero. `pipe:step` starts from zero by itself, unless it accumulates.
function methods:zero_grad()
  settle(fields[self])
  for _, group in ipairs(fields[self].groups) do
    for _, entry in ipairs(group.params) do
      local grad = entry.param.grad
      if grad then grad:copy_(0) end
    end
  end
end

--- Copy the state: the moments as `NAME.moment1`, `NAME.moment2` and so on, as many as the rule
--- keeps, and `step`; all are tensors, ready for `gp.save`. The settings are not included, because
--- they belong to the script.
--- ```lua
--- local opt = gp.optim.Adam(nn.Linear(4, 2):parameters(), {lr = 0.1})
--- assert(gp.save(os.tmpname(), opt:state_dict()))
--- ```
---@return table<string, gpipe.Tensor>
function methods:state_dict()
  local _ <close> = call.enter "opt:state_dict"
  settle(fields[self])
  return state.get(fields[self])
end

--- Restore a state, which may come from any cut of the model into stages.
--- Errors: one text names all faults (missing, unexpected, wrong shape or dtype); nothing is
--- changed.
--- ```lua
--- local opt = gp.optim.Adam(nn.Linear(4, 2):parameters(), {lr = 0.1})
--- opt:load_state_dict(opt:state_dict())
--- ```
---@param given table<string, gpipe.Tensor>
function methods:load_state_dict(given)
  local _ <close> = call.enter "opt:load_state_dict"
  settle(fields[self])
  state.set(fields[self], given)
end

-- ---- making ----------------------------------------------------------------------------------

local function boxes_of(groups)
  local boxes = {}
  for i, group in ipairs(groups) do
    boxes[i] = {}
    for j, entry in ipairs(group.params) do boxes[i][j] = entry.param end
  end
  return boxes
end

-- Make the object behind the optimizer, with as many moments as any group needs.
local function make_object(kind, groups)
  local moments = 0
  if kind.rule then return whole.new(kind.who, kind.rule, groups) end
  for _, group in ipairs(groups) do moments = math.max(moments, kind.moments(group)) end
  local handle = core.optimizer_new(kind.kind, boxes_of(groups), moments)
  for _, group in ipairs(kind.first and groups or {}) do
    local first = kind.first(group)
    for _, entry in ipairs(first ~= 0 and group.params or {}) do
      local moment = handle:moment(entry.param, 1)
      if moment then moment:copy_(first) end
    end
  end
  return handle
end

-- Copy the moments of the previous object into the new one.
local function take_over(f, before)
  if not lazy.is_there(before) then return end
  local held = { groups = f.groups, moments = f.moments, kind = f.kind, handle = before }
  for _, entry in ipairs(state.entries(held)) do
    if entry.value then f.handle:moment(entry.key, entry.k):copy_(entry.value) end
  end
  f.handle:set_steps(before:steps())
end

--- Train more parameters from the next step on, as a new group: parameters that were frozen before,
--- or a part that was added. Their moments and their count of steps begin at 0.
--- Errors: a parameter that is in a group already; an optimizer that pipe:use has (add the group,
--- then call it again).
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2), nn.Linear(2, 1)}
--- local opt = gp.optim.Adam(model[2]:parameters(), {lr = 1e-3})
--- opt:add_param_group {params = model[1]:parameters(), lr = 1e-4}
--- assert(#opt.groups == 2)
--- ```
---@param given {params: table, lr?: number, weight_decay?: number} like a group of the constructor
function methods:add_param_group(given)
  local f = fields[self]
  if f.settle then
    errors.raise("%s: add_param_group comes too late, as the pipeline updates by it, expected it "
      .. "before pipe:use", f.who)
  end
  local read = params.read_more(f.who, f.groups, given, rules.of_group(f.spec))
  local before, number = f.handle, #f.groups + 1
  local group = grouping.make(f.who, number, read, f.defaults, f.spec, before:steps())
  if f.kind.check then f.kind.check(f.who, group) end
  local groups = table.move(f.groups, 1, #f.groups, 1, {})
  groups[number] = group
  local handle = lazy.make(make_object, f.kind, groups)
  f.handle = handle
  take_over(f, before)
  f.groups[number] = group
end

---@class gpipe.OptimizerKind
---@field who string "optim.AdamW"
---@field kind? string "sgd", "adam" and so on, as core.optimizer_new has them
---@field spec table<string, gpipe.OptionRule>
---@field check? fun(who: string, group: table) for settings that depend on one another
---@field rule? gpipe.WholeRule a rule in tensor operations, in place of `kind` of the runtime
---@field moments fun(group: table): integer how many the rule keeps with the group's settings
---@field first? fun(group: table): number the initial value of the first moment; 0

--- Return what pipe:use needs: the object behind an optimizer, and a function that returns its
--- current settings.
--- Errors: an optimizer that works on whole matrices, which no stage can do alone.
---@param opt any
---@return table? handle nil if opt is not an optimizer
---@return function? hypers
function optimizer.open(opt)
  local f = getmetatable(opt) == Optimizer and fields[opt]
  if not f then return nil end
  if f.kind.rule then
    errors.raise_as("unsupported", "use: %s looks at whole matrices, expected opt:step() behind "
      .. "pipe:step(), or an optimizer that goes by elements", f.who)
  end
  return f.handle, function() return hypers_of(f) end
end

--- Return how many moments an optimizer keeps for each element, the most of any group.
---@param opt any
---@return integer? count nil if opt is not an optimizer
function optimizer.moments(opt)
  local f = getmetatable(opt) == Optimizer and fields[opt]
  if not f then return nil end
  local most = 0
  for _, group in ipairs(f.groups) do most = math.max(most, f.moments(group)) end
  return most
end

--- The moments of an optimizer as entries {name, param, value}, after running updates have
--- finished. value shares its memory with the moment; param is the parameter's name.
---@return table[]
function optimizer.entries(opt)
  settle(fields[opt])
  return state.entries(fields[opt])
end

--- Register `settle_it`, which is called before the state is read or set.
function optimizer.attach(opt, settle_it) fields[opt].settle = settle_it end

--- Make an optimizer of a kind.
---@param kind gpipe.OptimizerKind
---@param given table the first argument: parameters or groups
---@param opts table? the second one
---@return gpipe.Optimizer
function optimizer.new(kind, given, opts)
  local who, spec = kind.who, kind.spec
  local defaults = options.check(who, opts, spec)
  local groups = {}
  for i, read in ipairs(params.read(who, given, rules.of_group(spec))) do
    groups[i] = grouping.make(who, i, read, defaults, spec, 0)
  end
  for _, group in ipairs(groups) do
    if kind.check then kind.check(who, group) end
  end
  local opt = {}
  in_use.note(opt)
  fields[opt] = {
    who = who, spec = spec, defaults = defaults, groups = groups, moments = kind.moments,
    handle = lazy.make(make_object, kind, groups), kind = kind,
  }
  return setmetatable(opt, Optimizer)
end

return optimizer
