-- tests/spec/ops/table.lua - the op conformance table: one row for each op of runtime/ops/ops.def.
--
-- A row says how a script calls the op, what the result must be (a reference in plain Lua), on
-- which inputs, and which calls must be refused. Rows stand in the file of their family, as the ops
-- do in runtime/ops:
--
--   op          name in ops.def
--   covers      ops that run only as parts of this one's gradient or plan, and that its row tests
--   call        function(o, ...) the public call; o are the options of the case, ... its tensors
--   reference   the same on arrays of tests/support/array.lua
--   tolerance   a name of tests/support/tolerance.lua
--   dtypes      of the runs; f32 and f64 by default
--   result      dtype of each output; "like" the run's by default
--   gradient    whether it has one: then every float input that is not fixed is differentiated
--   cases       lists of inputs (tests/support/inputs.lua), with o = options, dtypes = "f64 f32"
--   refuses     lists of inputs with `error`, a part of the text
--   also        tests that do not fit the columns above: {sentence, function}
--
-- tests/spec/ops/conformance_spec.lua expands the table, scripts/check_ops.lua checks that it is
-- complete.

local FAMILIES = {
  "arithmetic", "function", "activation", "choice", "dropout", "random", "shape", "reduce", "index", "dense",
  "norm", "channels", "fused", "attention", "loss", "state", "image",
}

local rows = {}
for _, family in ipairs(FAMILIES) do
  for _, row in ipairs(require("tests.spec.ops.table." .. family)) do rows[#rows + 1] = row end
end
return rows
