-- scripts/bench/gpu_attention.lua - how far attention in halves is from attention in f64, on the
-- same GPU and the same inputs.
--
-- Inputs are numbers that halves hold exactly, so that the difference is what the computation adds:
-- cuDNN's where the library takes it, else our own kernels. NaN is never within a bound.
local gp = require "gpipe"
local figure = require "figure"
local nn = gp.nn

local attention = {}

-- keys: heads of keys and values. 12 heads of 64 channels are GPT-2's.
local CASES = {
  { name = "d64", heads = 12, keys = 12, width = 64 },
  { name = "d128", heads = 8, keys = 8, width = 128 },
  { name = "grouped", heads = 12, keys = 4, width = 64 },
  { name = "own", heads = 12, keys = 12, width = 60 }, -- 60 is no multiple of 8: our own kernels
}
-- Halves keep 8 or 11 bits; sums of products cancel in gradients.
local BOUND = { bf16 = 1.5e-2, f16 = 2e-3 }

local Attend = nn.class("Attend")
function Attend:init(values, dtype)
  for name, value in pairs(values) do
    self[name] = nn.Parameter(value.shape, value:to(dtype), { dtype = dtype })
  end
end

function Attend:forward(x)
  return gp.attention(self.q * x, self.k * x, self.v * x, { causal = true })
end

-- Returns the output and the gradients of q, k and v as f64 on the host. With precision nil all of
-- it is computed in f64.
local function results_of(values, target, precision)
  local dtype = precision and "f32" or "f64"
  local model = Attend(values, dtype)
  local pipe <close> = gp.pipeline(nn.Sequential { model }, {
    devices = { "cuda:0" }, precision = precision,
    loss_scale = precision == "f16" and { initial = 1 } or nil,
    loss = function(output, wanted) return (output * wanted:to(output.dtype)):sum(), 1 end,
  })
  local one, results = gp.ones({ 1, 1, 1, 1 }, { dtype = dtype }), {}
  pipe:step(one, target:to(dtype))
  for i, name in ipairs { "q", "k", "v" } do
    results[i + 1] = model[name].grad:to "cpu":to "f64"
  end
  results[1] = pipe:eval():forward(one):to "cpu":to "f64"
  return results
end

local function norm(t) return math.sqrt((t * t):sum():item()) end

-- Numbers that halves of this kind hold exactly.
local function draw(shape, seed, dtype)
  return gp.randn(shape, { seed = seed }):to(dtype):to "f64"
end

local function print_case(case, tokens, dtype)
  local queries, keys = { 1, case.heads, tokens, case.width }, { 1, case.keys, tokens, case.width }
  local values = {
    q = draw(queries, 1, dtype), k = draw(keys, 2, dtype), v = draw(keys, 3, dtype),
  }
  local target = draw(queries, 4, dtype)
  local got, want = results_of(values, target, dtype), results_of(values, target)
  for i, name in ipairs { "out", "dq", "dk", "dv" } do
    figure.print(("gpu.attention.%s.%s.%s"):format(case.name, dtype, name),
      norm(got[i] - want[i]) / norm(want[i]), "relative error", "<=", BOUND[dtype])
  end
end

--- Print the relative errors of output and gradients.
---@param tokens integer
function attention.run(tokens)
  for _, case in ipairs(CASES) do
    for _, dtype in ipairs { "bf16", "f16" } do print_case(case, tokens, dtype) end
  end
end

return attention
