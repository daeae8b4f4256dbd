-- lua/gpipe/tensor/methods/init.lua - the methods of tensors that are put together from others.
--
-- They are made of ops, so they work on values of a trace, and gradients go through them. Those of
-- bindings/ and the rows of ops.def are documented in meta.lua and by stubs.lua.

local core = require "gpipe.core"

for _, part in ipairs { "shape", "reduce", "choose", "order", "pad", "matrix", "find", "arithmetic",
  "lines", "write", "arrange", "products", "special", "pieces", "bits",
  "statistics" } do
  for name, method in pairs(require("gpipe.tensor.methods." .. part)) do
    core.methods[name] = method
  end
end

require "gpipe.tensor.methods.index"
