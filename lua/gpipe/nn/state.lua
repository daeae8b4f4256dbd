-- lua/gpipe/nn/state.lua - `state_dict` and `load_state_dict`: a model's values by name.
--
-- Loading first compares everything and then copies, so a wrong file changes nothing, and the error
-- names all faults at once. The functions work on any list of entries {name, value}, so pipelines
-- use them too.

local call = require "gpipe.ranks.call"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local check = require "gpipe.nn.check"
local io = require "gpipe.io"
local is_tensor = require "gpipe.tensor.is"
local names = require "gpipe.nn.names"
local options = require "gpipe.options"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"
local shared = require "gpipe.ranks.state"

local state = {}

-- The entries of a model: parameters, then buffers.
local function entries_of(model)
  local entries, buffers = names.parameters(model), names.buffers(model)
  return table.move(buffers, 1, #buffers, #entries + 1, entries)
end

--- Copy the values of a list of entries. In a pipeline over ranks all of them make the call, and
--- all get all values.
---@param entries {name: string, value: gpipe.Tensor, box: gpipe.Tensor?}[]
---@return table<string, gpipe.Tensor>
function state.copy(entries)
  local copies = {}
  for _, entry in ipairs(shared.collect(entries)) do copies[entry.name] = entry.value:clone() end
  return copies
end

local function type_text(tensor) return tensor.dtype .. " " .. check.shape_text(tensor.shape) end

-- Say what is wrong with one given value; nil if nothing is.
local function fault_of(entry, given)
  if not is_tensor(given) then
    return ("wrong: %s is %s, expected a tensor"):format(entry.name, errors.show(given))
  end
  local have, want = type_text(given), type_text(shared.like(entry))
  if have ~= want then
    return ("wrong: %s is %s, expected %s"):format(entry.name, have, want)
  end
end

local function add_unexpected(faults, known, given)
  local unexpected = {}
  for name in pairs(given) do
    if not known[name] then unexpected[#unexpected + 1] = tostring(name) end
  end
  table.sort(unexpected)
  for _, name in ipairs(unexpected) do faults[#faults + 1] = "unexpected: " .. name end
end

local function faults_of(entries, given, strict)
  local faults, known = {}, {}
  for _, entry in ipairs(entries) do
    known[entry.name] = true
    local value = given[entry.name]
    if value ~= nil then
      faults[#faults + 1] = fault_of(entry, value)
    elseif strict then
      faults[#faults + 1] = ("missing: %s (%s)"):format(entry.name, type_text(shared.like(entry)))
    end
  end
  if strict then add_unexpected(faults, known, given) end
  return faults
end

--- Raise if named tensors do not fit the entries with these names; one text names all faults.
---@param entries {name: string, value: gpipe.Tensor}[]
---@param given table<string, gpipe.Tensor>
---@param opts? {strict?: boolean} false: names that only one side has are skipped
function state.check(entries, given, opts)
  if opts ~= nil and io.is_metadata(opts) then opts = nil end
  opts = options.check("load_state_dict", opts, { strict = { type = "boolean", default = true } })
  if type(given) ~= "table" then
    check.fail("load_state_dict", "the state", given, "a table of tensors by name")
  end
  local faults = faults_of(entries, given, opts.strict)
  if #faults > 0 then
    errors.raise("load_state_dict: the state does not fit the model (%d %s)\n  %s", #faults,
      #faults == 1 and "fault" or "faults", table.concat(faults, "\n  "))
  end
end

-- How ranks load together: "same" values, each its "own" ones, or "apart": they do not meet.
local way = "same"

--- Load in another way until the result is closed: "own" where each rank gives what it holds,
--- "apart" where it is known that all ranks load.
---@param other "own"|"apart"
---@return any
function state.load_in(other)
  local before = way
  way = before == "apart" and before or other
  return setmetatable({}, { __close = function() way = before end })
end

-- What is loaded, a line for each tensor.
local function describe(given)
  local lines = {}
  for name, value in pairs(given) do
    lines[#lines + 1] = ("%s: %s %s, values with hash %x"):format(name, value.dtype,
      table.concat(value.shape, "x"), core.hash(value))
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end

-- Each rank copies what it holds: half a model would be loaded if one of them did not.
local function compare(entries, given, opts)
  if way == "apart" or not shared.are_shared(entries) then
    state.check(entries, given, opts)
    return
  end
  share.together("load_state_dict", function() state.check(entries, given, opts) end)
  ranks.agree("load_state_dict", way == "own" and "" or describe(given))
end

--- Copy named tensors into the entries with these names. Where several ranks hold them, all of
--- these make the call, with the same values.
--- Errors: one text names all faults, and nothing is changed.
---@param entries {name: string, value: gpipe.Tensor}[]
---@param given table<string, gpipe.Tensor>
---@param opts? {strict?: boolean} false: names that only one side has are skipped
function state.load(entries, given, opts)
  compare(entries, given, opts)
  for _, entry in ipairs(entries) do
    local value = given[entry.name]
    if value ~= nil and not shared.is_away(entry) then entry.value:copy_(value) end
  end
end

--- Copy all parameters and buffers.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2)}
--- gp.save(os.tmpname(), model:state_dict())
--- ```
---@return table<string, gpipe.Tensor> by name
function state.get(model)
  local _ <close> = call.enter "model:state_dict"
  return state.copy(entries_of(model))
end

--- Copy named tensors into the parameters and buffers with these names.
--- Errors: one text names all faults (missing, unexpected, wrong shape or dtype); nothing is
--- changed.
--- ```lua
--- local a, b = nn.Linear(4, 2), nn.Linear(4, 2)
--- b:load_state_dict(a:state_dict())
--- local path = os.tmpname()
--- assert(gp.save(path, a:state_dict(), {epoch = "3"}))
--- b:load_state_dict(assert(gp.load(path))) -- also of a file with metadata
--- ```
---@param given table<string, gpipe.Tensor>
---@param opts? {strict?: boolean} false: names that only one side has are skipped; default true
---@return nn.Module self
function state.set(model, given, opts)
  local _ <close> = call.enter "model:load_state_dict"
  state.load(entries_of(model), given, opts)
  return model
end

return state
