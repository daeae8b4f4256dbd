-- gpipe/optim/lbfgs/init.lua - LBFGS: approximate Newton steps, from the last changes of gradients.
-- Source: Nocedal and Wright 2006, "Numerical Optimization", algorithms 7.4 and 7.5; formulas as in
-- PyTorch.
--
-- A vector holds all parameters one after the other, in f64 on the host. So the bits do not depend
-- on where a pipeline keeps its parameters. In a job every rank has the whole vectors, and writes
-- the parameters that it holds.

local common = require "gpipe.ranks.settings"
local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local line_search = require "gpipe.optim.lbfgs.line_search"
local options = require "gpipe.options"
local params = require "gpipe.optim.params"
local remark = require "gpipe.ranks.remark"
local rules = require "gpipe.optim.rules"
local shared = require "gpipe.ranks.state"
local state = require "gpipe.optim.lbfgs.state"

local WHO = "optim.LBFGS"
local RULES = {
  lr = rules.amount(1),
  max_iter = { type = "integer", min = 1, default = 20 },
  max_eval = { type = "integer", min = 1 },
  tolerance_grad = rules.amount(1e-7),
  tolerance_change = rules.amount(1e-9),
  history_size = { type = "integer", min = 1, default = 100 },
  line_search_fn = { choices = { "strong_wolfe" } },
}

---@class gpipe.LBFGSOptions
---@field lr? number 1: the length of steps without a search, and the first that a search tries
---@field max_iter? integer 20: iterations in a step
---@field max_eval? integer 5/4 of max_iter: after that many losses no further iteration begins
---@field tolerance_grad? number 1e-7: a step ends if no element of the gradient is larger
---@field tolerance_change? number 1e-9: or if the loss, or a value, changes by less
---@field history_size? integer 100: how many changes of gradients are kept, each as large as all
--- parameters
---@field line_search_fn? "strong_wolfe"

---@class gpipe.LBFGS
---@field skipped integer steps that ended because a loss or gradient was not finite
local LBFGS = {}
LBFGS.__index = LBFGS
LBFGS.__name = "gpipe.LBFGS"

-- ---- all parameters as a line ------------------------------------------------------------------

-- Copy a tensor into a vector, so that changes by the closure do not reach it.
local function flat(t) return t:detach():to("cpu"):to("f64"):clone():reshape { -1 } end

local function read(self, of)
  local parts = {}
  for i, entry in ipairs(self.entries) do parts[i] = of(entry.param) end
  return core.concat(parts, 1)
end

local function values(self)
  return read(self, function(param) return flat(shared.value(param)) end)
end

local function gradients(self)
  return read(self, function(param)
    local grad = shared.gradient(param)
    return grad and flat(grad) or create.zeros({ param:numel() }, { dtype = "f64" })
  end)
end

local function write(self, line)
  local at = 1
  for _, entry in ipairs(self.entries) do
    local param = entry.param
    local n = param:numel()
    if not core.param_away(param) then
      param:copy_(line:narrow(1, at, n):reshape(param.shape):to(param.dtype):to(param.device))
    end
    at = at + n
  end
end

local function evaluate(self, closure)
  local loss = closure()
  if math.type(loss) == nil then
    local good, number = pcall(function() return loss:item() end)
    if not good then
      errors.raise("%s: the closure returned %s, expected the loss", WHO, errors.show(loss))
    end
    loss = number
  end
  return loss + 0.0, gradients(self)
end

local function is_finite(loss, gradient)
  return loss - loss == 0 and gradient:isfinite():all():item()
end

local function say_skipped()
  remark("a loss or gradient of optim.LBFGS is not finite, so the parameters stay where they were; "
    .. "further such steps are not reported (opt.skipped counts them)")
end

-- Put the parameters back to the last finite point.
local function skip(self, back)
  if back then write(self, back) end
  if self.skipped == 0 then say_skipped() end
  self.skipped = self.skipped + 1
end

local function greatest(line) return line:abs():max():item() end

-- ---- directions --------------------------------------------------------------------------------

local function remember(self, change, moved)
  local curve = change:dot(moved):item()
  if curve <= 1e-10 then return end
  if #self.history == self.settings.history_size then table.remove(self.history, 1) end
  table.insert(self.history, { change = change, moved = moved, share = 1 / curve })
  self.scale = curve / change:dot(change):item()
end

-- Multiply a gradient by the approximate inverse of the second derivative.
local function direction(self, gradient)
  local q, parts = -gradient, {}
  for i = #self.history, 1, -1 do
    local h = self.history[i]
    parts[i] = h.moved:dot(q):item() * h.share
    q = q - h.change * parts[i]
  end
  q = q * self.scale
  for i, h in ipairs(self.history) do
    q = q + h.moved * (parts[i] - h.change:dot(q):item() * h.share)
  end
  return q
end

local function next_direction(self, gradient)
  if self.iterations == 1 then
    self.history, self.scale = {}, 1
    return -gradient
  end
  remember(self, gradient - self.gradient, self.direction * self.step_size)
  return direction(self, gradient)
end

-- ---- steps -------------------------------------------------------------------------------------

-- Move along the direction; return the loss and gradient at the new point, and how often they were
-- computed. The last iteration of a step without a search needs none.
local function move(self, closure, from, loss, gradient, t, slope, is_last)
  local along = self.direction
  if self.settings.line_search_fn then
    local point, tried = line_search({
      direction = along, size = greatest(along),
      at = function(step)
        write(self, from + along * step)
        return evaluate(self, closure)
      end,
    }, { t = 0, f = loss, g = gradient, slope = slope }, t, self.settings.tolerance_change)
    write(self, from + along * point.t)
    return point.f, point.g, point.t, tried
  end
  write(self, from + along * t)
  if is_last then return loss, gradient, t, 0 end
  loss, gradient = evaluate(self, closure)
  return loss, gradient, t, 1
end

-- Forget the history: it does not hold beyond this point, so the next step starts anew.
local function forget(self)
  self.iterations, self.history, self.scale = 0, {}, 1
end

local function is_over(self, before, loss, gradient, evaluations)
  local o = self.settings
  return evaluations >= (o.max_eval or o.max_iter * 5 // 4)
    or greatest(gradient) <= o.tolerance_grad
    or greatest(self.direction * self.step_size) <= o.tolerance_change
    or math.abs(loss - before) < o.tolerance_change
end

--- Make up to max_iter iterations. The closure computes the gradients (by `opt:zero_grad()` and
--- then `loss:backward()`, or by `pipe:step`) and returns the loss; it is called at several points.
---
--- If a loss or a gradient is not finite, the parameters go back to the last point at which both
--- were finite, the step ends, and `opt.skipped` counts it.
---@param closure fun(): number|gpipe.Tensor
---@return number loss at the start of the step
function LBFGS:step(closure)
  options.argument("opt:step", "closure", closure, { type = "callable", required = true })
  local o, all = self.settings, {}
  for i, entry in ipairs(self.entries) do all[i] = entry.param end
  common.agree("opt:step", all, self.iterations, { o })
  local loss, gradient = evaluate(self, closure)
  local first, evaluations = loss, 1
  if not is_finite(loss, gradient) then
    skip(self)
    return first
  end
  if greatest(gradient) <= o.tolerance_grad then return first end
  for i = 1, o.max_iter do
    self.iterations = self.iterations + 1
    self.direction = next_direction(self, gradient)
    self.gradient = gradient
    local t, slope = o.lr, gradient:dot(self.direction):item()
    if self.iterations == 1 then t = math.min(1, 1 / gradient:abs():sum():item()) * o.lr end
    self.step_size = t
    if slope > -o.tolerance_change then break end
    local before, from = loss, values(self)
    local tried
    loss, gradient, self.step_size, tried = move(self, closure, from, loss, gradient, t, slope,
      i == o.max_iter)
    evaluations = evaluations + tried
    if not is_finite(loss, gradient) then
      skip(self, from)
      forget(self)
      break
    end
    if is_over(self, before, loss, gradient, evaluations) then break end
  end
  return first
end

-- ---- state -------------------------------------------------------------------------------------

--- The memory of earlier steps, as numbers and f64 tensors, which gp.save takes: with it training
--- continues with the same bits. Pass the optimizer to gp.run as one of `state`.
--- ```lua
--- local line = nn.Linear(1, 1)
--- local opt = gp.optim.LBFGS(line:parameters())
--- opt:load_state_dict(opt:state_dict())
--- ```
---@return table
function LBFGS:state_dict() return state.get(self) end

--- Continue from a state.
--- Errors: the state belongs to other parameters.
--- ```lua
--- local line = nn.Linear(1, 1)
--- local opt = gp.optim.LBFGS(line:parameters())
--- opt:load_state_dict {iterations = 0, scale = 1, skipped = 0}
--- ```
---@param t table of state_dict()
function LBFGS:load_state_dict(t) state.set(self, t) end

LBFGS.state, LBFGS.restore = LBFGS.state_dict, LBFGS.load_state_dict

--- Set the gradients to zero.
function LBFGS:zero_grad()
  for _, entry in ipairs(self.entries) do
    local grad = entry.param.grad
    if grad then grad:copy_(0) end
  end
end

--- LBFGS over all parameters as one vector, in f64 on the host: for small problems with exact
--- gradients, whose losses are computed at several points in a step. With
--- `line_search_fn = "strong_wolfe"` the length of a step is searched along each direction;
--- otherwise it is lr.
--- Errors: a negative or NaN setting, groups of parameters, a closure that returns no loss.
--- ```lua
--- local line = nn.Linear(1, 1)
--- local x = gp.tensor {{0}, {1}, {2}}
--- local opt = gp.optim.LBFGS(line:parameters(), {line_search_fn = "strong_wolfe"})
--- opt:step(function()
---   opt:zero_grad()
---   local loss = (line(x) - (x * 2 + 1)):square():mean()
---   loss:backward()
---   return loss
--- end)
--- assert(math.abs(line.weight[1][1] - 2) < 1e-3)
--- ```
---@param list table `model:parameters()` or `pipe:parameters()`
---@param opts? gpipe.LBFGSOptions
---@return gpipe.LBFGS
return function(list, opts)
  local settings = options.check(WHO, opts, RULES)
  local groups = params.read(WHO, list, {})
  if #groups > 1 then
    errors.raise("%s: there are %d groups, expected one list of parameters", WHO, #groups)
  end
  local size = 0
  for _, entry in ipairs(groups[1].entries) do size = size + entry.param:numel() end
  return setmetatable({
    entries = groups[1].entries, settings = settings, iterations = 0, history = {}, scale = 1,
    skipped = 0, size = size,
  }, LBFGS)
end
