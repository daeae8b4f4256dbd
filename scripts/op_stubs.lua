-- scripts/op_stubs.lua FILE - write the stubs for editors of the tensor's methods that are ops.
--
-- The build runs it (cmake --build build --target stubs writes build/generated/meta/ops.lua, which
-- is installed beside the documentation); what it writes comes from the rows of
-- runtime/ops/ops.def.

local path = assert(arg[1], "op_stubs.lua: the file to write is missing")
local file <close> = assert(io.open(path, "w"))
assert(file:write(require "gpipe.tensor.stubs"()))
