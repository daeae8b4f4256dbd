-- lua/gpipe/tensor/methods/beside.lua - moves a constant to the device of the tensor that a method
-- computes with. In a trace it is a constant of the plan, which copies it to each device.

---@param x gpipe.Tensor
---@param constant gpipe.Tensor on the host
---@return gpipe.Tensor
return function(x, constant)
  return x.device == "traced" and constant or constant:to(x.device)
end
