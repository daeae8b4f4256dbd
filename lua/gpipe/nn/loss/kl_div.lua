-- lua/gpipe/nn/loss/kl_div.lua - `nn.KLDivLoss`: the divergence of one distribution from another.
-- Source: Kullback and Leibler 1951.

local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local class = require "gpipe.nn.class"

---@class nn.KLDivLoss: nn.ElementwiseLoss
---@field log_target boolean
local KLDivLoss = class.new("KLDivLoss", ElementwiseLoss, true)

--- t (log(t) - output), where the output holds logarithms of probabilities and the target the
--- probabilities t. The terms are summed and divided by the number of elements ("mean", as in
--- PyTorch) or of rows ("batchmean", which is the divergence), summed ("sum"), or returned one by
--- one ("none", for eager use). With log_target the target holds logarithms too. A t of 0 adds
--- nothing.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Units: nats.
--- Errors: shapes or dtypes that differ.
--- ```lua
--- local loss = nn.KLDivLoss {reduction = "batchmean"}
--- local p = gp.full({3, 2}, 0.5)
--- assert(loss(p:log(), p):item() == 0)
--- ```
---@param opts? {log_target?: boolean, reduction?: "mean"|"batchmean"|"sum"|"none"}
function KLDivLoss:init(opts)
  ElementwiseLoss.init(self, opts, { log_target = { type = "boolean", default = false } },
    { "batchmean" })
end

function KLDivLoss:each(output, target)
  if self.log_target then return target:exp() * (target - output) end
  return (target * target:log()):masked_fill(target:eq(0), 0) - target * output
end

function KLDivLoss:count(output)
  if self.reduction == "batchmean" then return output.shape[1] or 1 end
  return ElementwiseLoss.count(self, output)
end

return KLDivLoss
