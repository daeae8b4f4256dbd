-- tests/golden/inventory.lua CASES.lua IN.safetensors OUT.safetensors - run what inventory.py wrote:
-- a list of {code = Lua of a call, tensors = how many it is given, leaves = which want gradients}.
--
-- Outputs go to OUT as "case.output", gradients of their weighted sum as "case.grad.input"; a line of
-- text on standard output says what a case raised.

local gp = require "gpipe"

local cases = dofile(arg[1])
local given = assert(gp.load(arg[2]))
local results = {}

local function inputs_of(case, number)
  local list = {}
  for i = 1, case.tensors do
    list[i] = given[("%d.%d"):format(number, i)]
    if case.leaves[i] then list[i].requires_grad = true end
  end
  return list
end

-- The same on both sides: sin of the position, so that every element counts differently.
local function weigh(y)
  local n = y:numel()
  if n == 0 then return y:sum() end
  local weights = gp.arange(1, n, 1, { dtype = "f64" }):sin():reshape(y.shape)
  return (y * weights):sum()
end

local function note(name, value)
  if type(value) == "number" then value = gp.tensor(value, { dtype = "f64" }) end
  if type(value) == "boolean" then value = gp.tensor(value and 1 or 0, { dtype = "i64" }) end
  results[name] = value:detach():to("f64"):contiguous()
end

-- Give a layer of f64 the tensors of a sample: names of parameters -> numbers among the inputs, whose
-- gradients are those of the parameters.
local function holder(a)
  local held = {}
  return function(layer, names)
    local state = {}
    for name, i in pairs(names) do state[name] = a[i]:detach() end
    layer:load_state_dict(state, { strict = false })
    for _, p in ipairs(layer:parameters()) do
      if names[p.name] then held[names[p.name]] = p.param end
    end
    return layer
  end, held
end

local function run(case, number)
  local a = inputs_of(case, number)
  local hold, held = holder(a)
  local f = assert(load("local gp, nn, a, hold = ... return " .. case.code, "=" .. case.code))
  local outputs = table.pack(f(gp, gp.nn, a, hold))
  if type(outputs[1]) == "table" then outputs = outputs[1] end
  local total
  for k, y in ipairs(outputs) do
    note(("%d.%d"):format(number, k), y)
    if type(y) == "userdata" and y.requires_grad then
      total = total and total + weigh(y) or weigh(y)
    end
  end
  if not total or not next(case.leaves) then return end
  total:backward()
  for i in pairs(case.leaves) do
    local grad = (held[i] or a[i]).grad
    if grad then note(("%d.grad.%d"):format(number, i), grad) end
  end
end

for number, case in ipairs(cases) do
  local good, text = pcall(run, case, number)
  if not good then print(number, (tostring(text):gsub("%s+", " "))) end
end
assert(gp.save(arg[3], results))
