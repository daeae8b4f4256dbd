-- tests/support/linear.lua - the reference of linear: a [.., K] times w [N, K] transposed, plus b
-- [N].

local array = require "tests.support.array"

return function(a, w, b)
  local shape = { table.unpack(a.shape) }
  shape[#shape] = w.shape[1]
  return array.build(shape, function(i)
    local from, sum = { table.unpack(i) }, b and b[i[#i]] or 0.0
    for k = 1, w.shape[2] do
      from[#from] = k
      sum = sum + array.at(a, from) * array.at(w, { i[#i], k })
    end
    return sum
  end)
end
