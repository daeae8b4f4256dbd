-- lua/gpipe/nn/sequential.lua - `nn.Sequential`: layers one after the other, the list that a
-- pipeline cuts.
--
-- The layers are attributes with the keys 1, 2, ..., so `#model`, `model[i]` and `ipairs` are Lua's
-- own. A layer's name is the one it was given, else its position. Several values may pass between
-- layers.

local errors = require "gpipe.errors"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local Module = require "gpipe.nn.module"
local scope = require "gpipe.nn.scope"
local values = require "gpipe.nn.skip.values"

---@class nn.Sequential: nn.Module
local Sequential = class.new("Sequential", Module, true)

local WHO = "nn.Sequential"
local NAMES = {} -- private key: [i] = name, [name] = i; unnamed layers are not in it

-- ---- construction ----------------------------------------------------------------------------

-- The last position that is set. `{a, nil, c}` has a hole, which is an error, not an end.
local function last_position(layers)
  local last = 0
  for key in pairs(layers) do
    if math.type(key) ~= "integer" or key < 1 then
      errors.raise('%s: there is a key %s, expected a list (named layers are {"%s", layer})', WHO,
        errors.show(key), type(key) == "string" and key or "name")
    end
    last = math.max(last, key)
  end
  return last
end

local function check_layer(i, layer)
  check.module(WHO, "layer " .. i, layer)
end

local function check_name(self, i, name)
  if type(name) ~= "string" or name == "" or tonumber(name) then
    errors.raise("%s: the name of layer %d is %s, expected a word", WHO, i, errors.show(name))
  end
  if name:find(".", 1, true) then
    errors.raise("%s: the name of layer %d is '%s', expected one without a dot", WHO, i, name)
  end
  if Sequential[name] ~= nil or name == "training" then
    errors.raise("%s: the name of layer %d is '%s', which is a method: choose another", WHO, i,
      name)
  end
  if self[NAMES][name] then
    errors.raise("%s: layers %d and %d are both named '%s'", WHO, self[NAMES][name], i, name)
  end
end

local function check_next(self, i, layer)
  if i ~= #self + 1 then
    errors.raise("%s: there is no layer %s to set, the model has %d", WHO, errors.show(i), #self)
  end
  check_layer(i, layer)
end

-- Split `layer` or {"name", layer} into layer, name, and whether it was the second form.
local function split_entry(entry)
  if type(entry) == "table" and not class.of(entry) and not class.info(entry) then
    return entry[2], entry[1], true
  end
  return entry, nil, false
end

local function append(self, layer, name)
  local i = #self + 1
  for j = 1, #self do
    if self[j] == layer then
      errors.raise("%s: layer %d is the same object as layer %d, expected one of its own (to share "
        .. "weights assign the parameter: b.weight = a.weight)", WHO, i, j)
    end
  end
  self[i] = layer
  if name then self[NAMES][i], self[NAMES][name] = name, i end
end

--- Make a model from a list of layers; entries may be named: {"head", nn.Linear(8, 2)}.
---
--- Errors: an entry that is not a module, or a module that occurs twice.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.ReLU(), {"head", nn.Linear(8, 2)}}
--- assert(#model == 3 and model[3] == model.head)
--- local y = model(gp.ones {1, 4})
--- ```
---@param layers (nn.Module|{[1]: string, [2]: nn.Module})[]
function Sequential:init(layers)
  class.refuse(WHO, "the list of layers", layers)
  if type(layers) ~= "table" or class.of(layers) then
    errors.raise("%s: the layers are %s, expected a list: nn.Sequential {a, b}", WHO,
      errors.show(layers))
  end
  rawset(self, NAMES, {})
  for i = 1, last_position(layers) do
    local layer, name, named = split_entry(layers[i])
    check_layer(i, layer)
    if named then check_name(self, i, name) end
    append(self, layer, name)
  end
end

-- ---- layers ----------------------------------------------------------------------------------

function Sequential:attribute_name(key) return self[NAMES][key] or tostring(key) end

local inherited = class.info(Module).meta

-- model.head is the layer of that name.
local look_up = class.info(Sequential).meta.__index
function Sequential.__index(self, key)
  local named = key ~= NAMES and rawget(self, NAMES)
  if named and type(key) == "string" and named[key] then return rawget(self, named[key]) end
  return look_up(self, key)
end

-- The names that completion offers besides methods: those of the layers.
class.info(Sequential).meta.fields = function(self)
  local found = {}
  local named = rawget(self, NAMES) or {}
  for i = 1, #self do
    if named[i] then found[named[i]] = rawget(self, i) end
  end
  return found
end

-- model[#model + 1] = layer appends; model.head = layer replaces (as model[i] = layer does).
function Sequential.__newindex(self, key, value)
  local named = rawget(self, NAMES)
  if named and type(key) == "string" and named[key] then
    check_layer(named[key], value)
    self[named[key]] = value
  else
    if math.type(key) then check_next(self, key, value) end
    inherited.__newindex(self, key, value)
  end
end

--- A layer by position (negative: from the end) or name, or anything below by its path; nil if
--- there is none.
--- ```lua
--- local model = nn.Sequential {nn.ReLU(), {"head", nn.Linear(8, 2)}}
--- assert(model:get(-1) == model:get("head"))
--- ```
---@param key integer|string
---@return nn.Module?
function Sequential:get(key)
  local is_path = type(key) == "string" and (key == "" or key:find(".", 1, true))
  if is_path then return Module.get(self, key) end
  if type(key) == "string" then key = self[NAMES][key] or math.tointeger(tonumber(key)) end
  if math.type(key) == "integer" and key < 0 then key = #self + 1 + key end
  return rawget(self, key)
end

-- pairs(model) iterates over the layers, without our own fields.
function Sequential.__pairs(self) return ipairs(self) end

--- The same layers with nested Sequentials unpacked, under the same parameter names. For `balance`
--- a nested one is a single layer; unpacked, each of its parts is a layer. The layers are shared,
--- not copied.
--- ```lua
--- local block = nn.Sequential {nn.Linear(4, 4), nn.ReLU()}
--- local model = nn.Sequential {nn.Linear(4, 4), block}
--- assert(#model:flatten() == 3)
--- assert(model:flatten():parameters()[3].name == "2.1.weight")
--- ```
---@return nn.Sequential
function Sequential:flatten()
  local flat = Sequential {}
  flat.training = self[class.MODE] == "train"
  local path = {}
  local function unpack_into(model, depth)
    for i = 1, #model do
      path[depth] = model:attribute_name(i)
      if class.of(model[i]).class == Sequential then
        unpack_into(model[i], depth + 1)
      else
        append(flat, model[i], table.concat(path, ".", 1, depth))
      end
    end
  end
  unpack_into(self, 1)
  return flat
end

-- ---- running ---------------------------------------------------------------------------------

-- Check that a layer returned tensors, because its outputs go into the next layer.
local function check_outputs(layer, ...)
  local count = select("#", ...)
  for i = 1, math.max(count, 1) do
    local value = select(i, ...)
    if getmetatable(value) ~= "gpipe.Tensor" then
      local shown = count == 0 and "nothing" or errors.show(value)
      errors.raise("%s: forward returned %s, expected a tensor", scope.label(layer), shown)
    end
  end
  return ...
end

local function run_layer(layer, ...)
  local _frame <close> = scope.enter(layer)
  return check_outputs(layer, values.forward(layer, ...))
end

local function run_from(self, i, last, ...)
  if i > last then return ... end
  return run_from(self, i + 1, last, run_layer(self[i], ...))
end

local function check_range(self, first, last)
  if math.type(first) == "integer" and math.type(last) == "integer" and first >= 1
    and last <= #self then
    return
  end
  errors.raise("run_layers: the layers are %s to %s, expected two of 1 to %d", errors.show(first),
    errors.show(last), #self)
end

--- Run only the layers first..last, as a pipeline does to trace a stage. The layers' names in
--- messages and traces are those in the whole model. If last is below first, no layer runs.
--- Errors: layers that the model does not have.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)}
--- local hidden = model:run_layers(1, 2, gp.ones {1, 4})
--- ```
---@param first integer
---@param last integer
---@param ... gpipe.Tensor
---@return gpipe.Tensor ...
function Sequential:run_layers(first, last, ...)
  check_range(self, first, last)
  local _frame <close> = scope.enter(self)
  return run_from(self, first, last, ...)
end

function Sequential:forward(...) return self:run_layers(1, #self, ...) end

return Sequential
