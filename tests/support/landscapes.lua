-- tests/support/landscapes.lua - functions to compare searches on, with their spaces and least
-- values.
--
-- Source of all but the last two: S. Surjanovic, D. Bingham, Virtual library of simulation
-- experiments, https://www.sfu.ca/~ssurjano/optimization.html. scripts/bench/sweep_optuna.py has
-- the same functions.
local sweep = require "gpipe".sweep

local landscapes = {}

local pi, cos, sin, exp, sqrt = math.pi, math.cos, math.sin, math.exp, math.sqrt

-- x1 ... xn, uniform between two ends.
local function box(n, low, high)
  local space = {}
  for i = 1, n do space["x" .. i] = sweep.uniform(low, high) end
  return space
end

local function list(p)
  local x = {}
  while p["x" .. #x + 1] do x[#x + 1] = p["x" .. #x + 1] end
  return x
end

local function add(name, least, space, f) landscapes[#landscapes + 1] = { name = name, least = least,
  space = space, f = f } end

add("branin", 0.397887, { x1 = sweep.uniform(-5, 10), x2 = sweep.uniform(0, 15) }, function(p)
  local a = p.x2 - 5.1 / (4 * pi ^ 2) * p.x1 ^ 2 + 5 / pi * p.x1 - 6
  return a ^ 2 + 10 * (1 - 1 / (8 * pi)) * cos(p.x1) + 10
end)

local ALPHA = { 1, 1.2, 3, 3.2 }

local function hartmann(scales, places)
  return function(p)
    local x, sum = list(p), 0
    for i = 1, 4 do
      local inner = 0
      for j = 1, #x do inner = inner + scales[i][j] * (x[j] - 1e-4 * places[i][j]) ^ 2 end
      sum = sum - ALPHA[i] * exp(-inner)
    end
    return sum
  end
end

add("hartmann3", -3.86278, box(3, 0, 1), hartmann(
  { { 3, 10, 30 }, { 0.1, 10, 35 }, { 3, 10, 30 }, { 0.1, 10, 35 } },
  { { 3689, 1170, 2673 }, { 4699, 4387, 7470 }, { 1091, 8732, 5547 }, { 381, 5743, 8828 } }))

add("hartmann6", -3.32237, box(6, 0, 1), hartmann(
  { { 10, 3, 17, 3.5, 1.7, 8 }, { 0.05, 10, 17, 0.1, 8, 14 }, { 3, 3.5, 1.7, 10, 17, 8 },
    { 17, 8, 0.05, 10, 0.1, 14 } },
  { { 1312, 1696, 5569, 124, 8283, 5886 }, { 2329, 4135, 8307, 3736, 1004, 9991 },
    { 2348, 1451, 3522, 2883, 3047, 6650 }, { 4047, 8828, 8732, 5743, 1091, 381 } }))

add("rosenbrock", 0, box(4, -5, 10), function(p)
  local x, sum = list(p), 0
  for i = 1, #x - 1 do sum = sum + 100 * (x[i + 1] - x[i] ^ 2) ^ 2 + (x[i] - 1) ^ 2 end
  return sum
end)

add("ackley", 0, box(5, -32.768, 32.768), function(p)
  local x, squares, waves = list(p), 0, 0
  for i = 1, #x do squares, waves = squares + x[i] ^ 2, waves + cos(2 * pi * x[i]) end
  return -20 * exp(-0.2 * sqrt(squares / #x)) - exp(waves / #x) + 20 + exp(1)
end)

add("rastrigin", 0, box(4, -5.12, 5.12), function(p)
  local x, sum = list(p), 0
  for i = 1, #x do sum = sum + x[i] ^ 2 - 10 * cos(2 * pi * x[i]) + 10 end
  return sum
end)

add("levy", 0, box(4, -10, 10), function(p)
  local w = list(p)
  for i = 1, #w do w[i] = 1 + (w[i] - 1) / 4 end
  local sum = sin(pi * w[1]) ^ 2 + (w[#w] - 1) ^ 2 * (1 + sin(2 * pi * w[#w]) ^ 2)
  for i = 1, #w - 1 do sum = sum + (w[i] - 1) ^ 2 * (1 + 10 * sin(pi * w[i] + 1) ^ 2) end
  return sum
end)

add("styblinski-tang", -39.16617 * 4, box(4, -5, 5), function(p)
  local x, sum = list(p), 0
  for i = 1, #x do sum = sum + (x[i] ^ 4 - 16 * x[i] ^ 2 + 5 * x[i]) / 2 end
  return sum
end)

-- A function like a training run: a learning rate with its valley, a width whose best value depends
-- on it, a choice that matters little, layers.
add("mixed", 0, { lr = sweep.log(1e-6, 1), width = sweep.int_log(8, 2048), layers = sweep.int(1, 12),
  kind = sweep.choice { "relu", "gelu", "tanh", "silu" }, dropout = sweep.uniform(0, 0.9) },
  function(p)
    local worth = { relu = 0.3, gelu = 0, tanh = 1, silu = 0.1 }
    local lr = math.log(p.lr, 10) + 3 + 0.2 * math.log(p.width / 128, 2)
    return lr ^ 2 + 0.1 * math.log(p.width / 256, 2) ^ 2 + 0.05 * (p.layers - 5) ^ 2 + worth[p.kind]
      + 4 * (p.dropout - 0.1) ^ 2
  end)

-- A space with branches that have parameters of their own.
add("conditional", 0, {
  optimizer = sweep.choice { "sgd", "adam", "lion" },
  lr = function(v)
    return v.optimizer == "sgd" and sweep.log(1e-3, 10) or sweep.log(1e-6, 1e-1)
  end,
  momentum = function(v) if v.optimizer == "sgd" then return sweep.uniform(0, 1) end end,
  beta = function(v) if v.optimizer ~= "sgd" then return sweep.uniform(0.5, 1) end end,
  decay = sweep.uniform(0, 1),
}, function(p)
  local value = 2 * (p.decay - 0.3) ^ 2
  if p.optimizer == "sgd" then
    return value + 0.3 + (math.log(p.lr, 10) + 1) ^ 2 + 3 * (p.momentum - 0.9) ^ 2
  end
  return value + (p.optimizer == "lion" and 0.5 or 0) + (math.log(p.lr, 10) + 3) ^ 2
    + 10 * (p.beta - 0.9) ^ 2
end)

-- ---- searching -----------------------------------------------------------------------------------

--- Return the least value that a sampler finds in so many trials, without a file.
---@param landscape table
---@param sampler table
---@param trials integer
---@return number
function landscapes.search(landscape, sampler, trials)
  local seen, least = {}, math.huge
  for number = 1, trials do
    local params = sampler:suggest(number, seen)
    local value = landscape.f(params)
    seen[number] = { number = number, params = params, state = "complete", value = value }
    least = math.min(least, value)
  end
  return least
end

function landscapes.median(values)
  table.sort(values)
  local n = #values
  return n % 2 == 1 and values[(n + 1) // 2] or (values[n // 2] + values[n // 2 + 1]) / 2
end

return landscapes
