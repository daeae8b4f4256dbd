-- tests/spec/cuda/contraction_spec.lua - the compiler fuses no product with a sum where kernels
-- have two paths.
--
-- If it fused them in a vector loop and not in its remainder, the bits of a parameter would depend
-- on where it ends, and so on the cut. PTX shows it: a fused product is fma, and mul.f32 instead of
-- mul.rn.f32 is a product that may still be fused later.

local child = require "tests.child"

local build = child.program:match "^(.*)/" or "build"

-- Returns the build's command for a kernel, or nil where it has no plugin.
local function command_of(kernel)
  local object = ("CMakeFiles/gpipe_cuda.dir/%s.o"):format(kernel)
  local out = child.shell(("ninja -C %s -t commands %s"):format(child.quote(build), object))
  local line = out:match "([^\n]*nvcc[^\n]*)\n?$"
  return line and line:gsub("%-%-generate%-code=%S+", ""):gsub('"%-%-generate%-code=[^"]+"', "")
    :gsub("%-M[DTF]+ +%S*%.o%S*", ""):gsub("%-MD", ""):gsub(" %-o +%S+", ""):gsub(" %-c ", " -ptx ")
end

-- Returns the PTX of a kernel, compiled as the build does.
local function ptx_of(command)
  local path = os.tmpname()
  local _, err, code = child.shell(("cd %s && %s -arch=compute_90 -o %s"):format(
    child.quote(build), command, path))
  assert(code == 0, err)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  os.remove(path)
  return text
end

describe("kernels with two paths", function()
  it("round every product and every sum", function()
    local command = command_of "runtime/optim/update.cu"
    if not command then
      pending "no CUDA plugin in this build"
      return
    end
    local text = ptx_of(command)
    assert.truthy(text:find("mul.rn.f32", 1, true))
    for _, fused in ipairs { "fma.rn.f", "\tmul.f32", "\tmul.f64", "\tadd.f32", "\tadd.f64" } do
      assert.is_nil(text:find(fused, 1, true))
    end
  end)
end)
