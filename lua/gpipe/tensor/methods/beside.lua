-- lua/gpipe/tensor/methods/beside.lua - constants that a method computes with lie where its tensor
-- does. In a trace they are constants of the plan, which takes them to each device.

---@param x gpipe.Tensor
---@param constant gpipe.Tensor on the host
---@return gpipe.Tensor
return function(x, constant)
  return x.device == "traced" and constant or constant:to(x.device)
end
