-- gpipe/optim/state.lua - the state of an optimizer as tensors by name.
--
-- The names come from the parameters' paths, so a state fits every cut of the model into stages.
-- The number of steps is a scalar i64 tensor among them. If groups were added later, `since` has
-- the number of steps before each. So the table that `gp.save` takes is the whole state.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local grouping = require "gpipe.optim.group"
local is_tensor = require "gpipe.tensor.is"
local nn_state = require "gpipe.nn.state"
local create = require "gpipe.tensor.create"

local state = {}

-- The shape of moment k where it is not the parameter's; false if there is none.
local function other_shape(optimizer, param, k)
  local rule = optimizer.kind.rule
  if not rule then return nil end
  return rule.shape(param.shape, k) or false
end

--- The moments as entries {name, param, value}: value shares its memory with the moment; param is
--- the parameter's name.
---@param optimizer table handle, groups, moments, kind
---@return table[]
function state.entries(optimizer)
  local entries = {}
  for _, group in ipairs(optimizer.groups) do
    for _, entry in ipairs(group.params) do
      for k = 1, optimizer.moments(group) do
        local moment = optimizer.handle:moment(entry.param, k)
        local shape = other_shape(optimizer, entry.param, k)
        local away = core.param_away(entry.param) and shape ~= false -- another rank has its moments
        if moment or away then
          entries[#entries + 1] = {
            name = ("%s.moment%d"):format(entry.name, k), param = entry.name, value = moment,
            key = entry.param, box = entry.param, k = k, shape = shape,
          }
        end
      end
    end
  end
  return entries
end

local function step_tensor(n) return create.tensor(n, { dtype = "i64" }) end

---@param optimizer table handle, groups, moments
---@return table<string, gpipe.Tensor>
function state.get(optimizer)
  local copies = nn_state.copy(state.entries(optimizer))
  copies.step = step_tensor(optimizer.handle:steps())
  local since = grouping.since(optimizer.groups)
  if since then copies.since = create.tensor(since, { dtype = "i64" }) end
  return copies
end

-- Beyond 2^53 the powers of Adam's betas cannot tell one step from the next, and finally the
-- counter overflows.
local MOST_STEPS = 1 << 53

local function is_outside(step)
  return is_tensor(step) and step:numel() == 1
    and (step:item() < 0 or step:item() > MOST_STEPS)
end

---@param optimizer table
---@param given table<string, gpipe.Tensor>
function state.set(optimizer, given)
  local entries, step = state.entries(optimizer), step_tensor(0)
  entries[#entries + 1] = { name = "step", value = step }
  if type(given) == "table" and is_outside(given.step) then
    errors.raise("load_state_dict: step is %d, expected 0 to %d", given.step:item(), MOST_STEPS)
  end
  local since = type(given) == "table" and given.since
    and create.zeros({ #optimizer.groups }, { dtype = "i64" })
  if since then entries[#entries + 1] = { name = "since", value = since } end
  nn_state.load(entries, given)
  optimizer.handle:set_steps(step:item())
  grouping.set_since(optimizer.groups, since and since:totable() or {})
end

return state
