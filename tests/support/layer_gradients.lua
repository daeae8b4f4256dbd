-- tests/support/layer_gradients.lua - gp.gradcheck of an f64 layer, by its inputs and parameters.

local gp = require "gpipe"

-- Lists { module, key } of every parameter, in the order of layer:parameters().
local function places(layer)
  local found = {}
  for _, module in layer:modules() do
    for key, value in next, module do
      if type(key) == "string" and getmetatable(value) == "gpipe.Tensor" then
        found[value] = { module, key }
      end
    end
  end
  local list = {}
  for i, p in ipairs(layer:parameters()) do list[i] = assert(found[p.param], p.name) end
  return list
end

--- Check that the gradients of a layer agree with differences.
---@param layer nn.Module of f64
---@param inputs gpipe.Tensor[]
return function(layer, inputs)
  local owners, all = places(layer), { table.unpack(inputs) }
  for _, p in ipairs(layer:parameters()) do all[#all + 1] = p.value:clone() end
  local function compute(...)
    for i, owner in ipairs(owners) do owner[1][owner[2]] = (select(#inputs + i, ...)) end
    return layer(table.unpack({ ... }, 1, #inputs))
  end
  local good, report = gp.gradcheck(compute, all)
  assert(good, report)
end
