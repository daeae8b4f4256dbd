-- lua/gpipe/optim/whole/muon.lua - Muon: orthogonalizes the momentum of matrices.
-- Source: Jordan et al. 2024 (kellerjordan.github.io/posts/muon); the rate by Liu et al. 2025;
-- formulas as in PyTorch, which rounds the orthogonal factor to bf16; here it is in f32.

local errors = require "gpipe.errors"
local new = require("gpipe.optim.optimizer").new
local rules = require "gpipe.optim.rules"

local MOST_STEPS = 99 -- of the iteration; five are enough

-- The factor of the rate for a matrix of m rows and n columns.
local FACTORS = {
  original = function(m, n) return math.sqrt(math.max(1, m / n)) end,
  match_rms_adamw = function(m, n) return 0.2 * math.sqrt(math.max(m, n)) end,
}

-- Approximate U V^T of g = U S V^T, by the Newton-Schulz iteration of the odd polynomial with these
-- three coefficients.
local function orthogonal(g, o)
  local a, b, c = table.unpack(o.ns_coefficients)
  local tall = g:size(1) > g:size(2)
  local x = tall and g:t() or g
  x = x / x:norm():clamp { min = o.eps }
  for _ = 1, o.ns_steps do
    local gram = x:matmul(x:t())
    x = x * a + (gram * b + gram:matmul(gram) * c):matmul(x)
  end
  return tall and x:t() or x
end

local rule = { moments = 1 }

function rule.shape(shape) return shape end

function rule.update(value, gradient, moments, o)
  local momentum = moments[1]
  momentum:copy_(momentum + (gradient - momentum) * (1 - o.momentum))
  local along = o.nesterov and gradient + (momentum - gradient) * o.momentum or momentum
  local rate = o.lr * FACTORS[o.adjust_lr_fn](value:size(1), value:size(2))
  return value * (1 - o.lr * o.weight_decay) - orthogonal(along, o) * rate
end

local function check_coefficients(value)
  for i = 1, 3 do
    local c = value[i]
    if not math.type(c) or c - c ~= 0 then return "three numbers" end
  end
  if #value ~= 3 then return "three numbers" end
end

local kind = {
  who = "optim.Muon",
  rule = rule,
  spec = {
    lr = rules.amount(1e-3), weight_decay = rules.amount(0.1), momentum = rules.weight(0.95),
    nesterov = { type = "boolean", default = true },
    ns_coefficients = {
      type = "table", check = check_coefficients, default = { 3.4445, -4.775, 2.0315 },
    },
    ns_steps = { type = "integer", min = 1, max = MOST_STEPS, default = 5 },
    eps = { type = "number", above = 0, default = 1e-7 },
    adjust_lr_fn = { choices = { "original", "match_rms_adamw" }, default = "original" },
  },
  moments = function() return 1 end,
}

-- Accept only matrices: biases, embeddings and tensors of more dimensions belong to another
-- optimizer.
function kind.check(who, group)
  for _, entry in ipairs(group.params) do
    if #entry.param.shape ~= 2 then
      errors.raise("%s: parameter '%s' has %d dimensions, expected matrices alone (give the others "
        .. "to optim.AdamW)", who, entry.name, #entry.param.shape)
    end
  end
end

---@class gpipe.MuonOptions
---@field lr? number 1e-3
---@field weight_decay? number 0.1, decoupled
---@field momentum? number 0.95
---@field nesterov? boolean true
---@field ns_coefficients? number[] {3.4445, -4.775, 2.0315}: the polynomial of the iteration
---@field ns_steps? integer 5
---@field eps? number 1e-7: the smallest length that a matrix is divided by
---@field adjust_lr_fn? "original"|"match_rms_adamw" multiplies lr by sqrt(max(1, rows / columns)),
--- or by 0.2 sqrt(max(rows, columns)), which suits the rates of AdamW

--- Muon: the momentum of each matrix is made nearly orthogonal before it is subtracted, so that all
--- directions move by the same amount. It is for the matrices inside a network; give embeddings,
--- the last layer, biases and norms to AdamW. It updates in opt:step(), not by pipe:use.
--- Errors: a parameter that is not a matrix; a negative or NaN setting.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.Linear(8, 2)}
--- local matrices = {}
--- for _, p in ipairs(model:parameters()) do
---   if #p.value.shape == 2 then matrices[#matrices + 1] = p end
--- end
--- local opt = gp.optim.Muon(matrices, {lr = 0.02})
--- ```
---@param params table `pipe:parameters()` of matrices, or groups {params = ..., lr = ...}
---@param opts? gpipe.MuonOptions
---@return gpipe.Optimizer
return function(params, opts) return new(kind, params, opts) end
