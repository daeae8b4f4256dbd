-- lua/gpipe/tensor/methods/init.lua - the methods of tensors that are composed of others.
--
-- They consist of ops, so they work on values of a trace, and gradients go through them. The
-- methods of bindings/ are documented in meta.lua, the rows of ops.def by stubs.lua.

local core = require "gpipe.core"

for _, part in ipairs { "shape", "reduce", "choose", "order", "pad", "matrix", "find", "arithmetic",
  "lines", "write", "arrange", "products", "special", "pieces", "overwrite", "bits",
  "statistics" } do
  for name, method in pairs(require("gpipe.tensor.methods." .. part)) do
    core.methods[name] = method
  end
end

require "gpipe.tensor.methods.index"
