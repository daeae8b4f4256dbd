-- scripts/check_kernels.lua - all kernels are launched in one way, GP_LAUNCH, which checks a launch
-- and which the host's build (tests/cuda) replaces. Types of kernels have names of their own. With
-- --machine-code, what the compiler makes of the kernels that move most bytes keeps to the limits
-- below.
--
-- Run from the root of the checkout; prints each fault, exits 1. --machine-code [BUILD] compiles
-- files for sm_90, by way of the PTX of sm_80 as the plugin does, which takes a minute, and needs
-- the generated headers of a build folder, by default build.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

local LAUNCHER = "runtime/device/cuda/kernel/device.cuh" -- the one file that may launch

-- ---- launches -----------------------------------------------------------------------------------

-- Code without its comments, line for line.
local function code_of(path)
  return (judge.read(path):gsub("/%*.-%*/",
    function(comment) return (comment:gsub("[^\n]", "")) end):gsub("//[^\n]*", ""))
end

local function line_of(code, at)
  return select(2, code:sub(1, at):gsub("\n", "")) + 1
end

local function check_launches(path, code)
  for _, launch in ipairs { "<<<", "cudaLaunchKernel", "cudaLaunchCooperativeKernel" } do
    local at = code:find(launch, 1, true)
    if at and path ~= LAUNCHER then
      judge.complain("%s:%d: %s, expected GP_LAUNCH", path, line_of(code, at), launch)
    end
  end
end

-- ---- names of types ------------------------------------------------------------------------------

-- What a template makes of two types of one name is one function to the linker, which takes either,
-- though they may differ: a launch then copies too much or too little.
local type_at = {}

local function check_types(path, code)
  for head, name in code:gmatch "\n([^\n]-)struct ([%w_]+) {" do
    if head == "" or head:find "^template <[^>]*> $" then
      local other = type_at[name]
      if other then judge.complain("%s: struct %s stands in %s, too", path, name, other) end
      type_at[name] = path
    end
  end
end

-- ---- machine code -------------------------------------------------------------------------------

-- For each file: kernels by a pattern of their mangled names, the most registers of a thread, bytes
-- of spills, and 64-bit divisions, each of which is a call of a hundred instructions. More registers
-- leave a multiprocessor fewer threads, so that fewer reads are under way.
local LIMITS = {
  ["runtime/ops/channels/channel_stats.cu"] = {
    { kernel = "warp_stats_kernel", registers = 100, spills = 8, divisions = 0 },
  },
  ["runtime/ops/channels/channel_norm.cu"] = {
    { kernel = "warp_sums_kernel", registers = 100, spills = 0, divisions = 0 },
    { kernel = "normalise_kernelI[%w_]+Lb1E", registers = 80, spills = 0, divisions = 0 },
    { kernel = "input_gradient_kernelI[^d][%w_]+Lb1E", registers = 88, spills = 0, divisions = 0 },
  },
  ["runtime/ops/channels/channel_norm_relu.cu"] = {
    { kernel = "warp_relu_sums_kernel", registers = 88, spills = 0, divisions = 0 },
    { kernel = "warp_gate_%w+_kernelI[^d]", registers = 108, spills = 0, divisions = 0 },
    { kernel = "normalise_kernelI[^d][%w_]+Lb1E", registers = 80, spills = 0, divisions = 0 },
    { kernel = "input_gradient_kernelI[^d][%w_]+Lb1E", registers = 104, spills = 0, divisions = 0 },
  },
  ["runtime/ops/image/max_pool2d.cu"] = {
    { kernel = "gp_pixels_kernelILi%d+E%d+max_pool2d_element.*hE", registers = 40, spills = 0,
      divisions = 0 },
    { kernel = "gp_pixels_kernelILi%d+E%d+max_pool2d_dx_element.*hE", registers = 48, spills = 0,
      divisions = 0 },
  },
  ["runtime/ops/image/resample2d.cu"] = {
    { kernel = "gp_pixels_kernelILi%d+E%d+resample2d_element.*Lb1E", registers = 56, spills = 0,
      divisions = 0 },
    { kernel = "gp_pixels_kernelILi%d+E%d+resample2d_dx_element.*Lb1E", registers = 64, spills = 0,
      divisions = 0 },
  },
  ["runtime/ops/channels/running_stats.cu"] = {
    { kernel = "move_kernel", registers = 32, spills = 0, divisions = 0 },
    { kernel = "merge_kernel", registers = 64, spills = 0, divisions = 0 },
  },
  ["runtime/ops/loss/cross_entropy.cu"] = {
    { kernel = "both_shortI[^d][%w_]*Li8E", registers = 48, spills = 0, divisions = 0 },
    { kernel = "both_shortI[^d]", registers = 96, spills = 0, divisions = 0 },
    { kernel = "both_longI", registers = 56, spills = 0, divisions = 0 },
    { kernel = "losses_longI", registers = 40, spills = 0, divisions = 0 },
    { kernel = "gradients_kernelI", registers = 64, spills = 0, divisions = 0 },
  },
  ["runtime/ops/norm/layer_norm_parts.cu"] = {
    { kernel = "gradients_kernelI[^d][%w_]*Lb1E", registers = 128, spills = 16, divisions = 0 },
    { kernel = "gp_columns_kernelI[%w_]+Lb1E", registers = 128, spills = 0, divisions = 0 },
  },
  ["runtime/ops/reduce/sum.cu"] = {
    { kernel = "gp_plain_columnsI13__nv_bfloat16ELb1E", registers = 96, spills = 0, divisions = 0 },
  },
  -- a thread keeps up to 64 blocks of replicas on its stack, which are no spills
  ["runtime/ops/replicas/replica_stats.cu"] = {
    { kernel = "join_kernel", registers = 48, spills = 0, divisions = 0 },
  },
  ["runtime/ops/replicas/replica_sums.cu"] = {
    { kernel = "join_kernel", registers = 32, spills = 0, divisions = 0 },
  },
  ["runtime/ops/dense/product.cu"] = {
    { kernel = "gp_realign_kernel", registers = 64, spills = 0, divisions = 0 },
  },
}

-- The count of 64-bit divisions and remainders in each kernel of a PTX file.
local function divisions_of(ptx)
  local found, kernel = {}, nil
  for line in ptx:gmatch "[^\n]+" do
    local entry = line:match "%.entry ([%w_]+)"
    kernel = entry or line:match "^%.func" and "" or kernel
    if entry then found[entry] = 0 end
    local division = line:match "%sdiv%.[su]64%s" or line:match "%srem%.[su]64%s"
    if division and found[kernel] then found[kernel] = found[kernel] + 1 end
  end
  return found
end

-- Registers and bytes of spills of each kernel, from what ptxas -v prints.
local function usage_of(lines)
  local found, kernel = {}, nil
  for _, line in ipairs(lines) do
    kernel = line:match "Compiling entry function '([%w_]+)'" or kernel
    local spills = line:match "(%d+) bytes spill stores"
    local registers = line:match "Used (%d+) registers"
    if kernel and (spills or registers) then
      found[kernel] = found[kernel] or {}
      found[kernel].spills = tonumber(spills) or found[kernel].spills
      found[kernel].registers = tonumber(registers) or found[kernel].registers
    end
  end
  return found
end

local function check_limit(path, kernel, what, is, limit)
  if is > limit then
    judge.complain("%s: %s: %d %s, expected at most %d", path, kernel, is, what, limit)
  end
end

-- Compile one file and hold its kernels against their limits; each limit must meet a kernel.
local function check_machine_code(path, limits, build, cuda)
  local ptx = os.tmpname()
  local made = os.execute(("%s/nvcc -std=c++17 -O3 -fmad=false -arch=compute_80 -ptx -Iruntime "
    .. "-I%s/generated -o %s %s"):format(cuda, build, ptx, path))
  if not made then return judge.complain("%s: nvcc refuses it", path) end
  local divisions = divisions_of(judge.read(ptx))
  local usage = usage_of(judge.lines_of(("%s/ptxas -v -arch=sm_90 -o /dev/null %s 2>&1")
    :format(cuda, ptx)))
  os.remove(ptx)
  for _, limit in ipairs(limits) do
    local met = 0
    for kernel, used in pairs(usage) do
      if kernel:find(limit.kernel) then
        met = met + 1
        check_limit(path, kernel, "registers", used.registers, limit.registers)
        check_limit(path, kernel, "bytes of spills", used.spills, limit.spills)
        check_limit(path, kernel, "64-bit divisions", divisions[kernel], limit.divisions)
      end
    end
    if met == 0 then judge.complain("%s: no kernel %s, expected one", path, limit.kernel) end
  end
end

-- Where nvcc is: in the PATH, or in the toolkit's usual place.
local function cuda_of()
  local found = judge.lines_of "command -v nvcc"[1] or "/usr/local/cuda/bin/nvcc"
  return found:match "^(.*)/"
end

-- ---- both ---------------------------------------------------------------------------------------

local list = "find runtime -name '*.cu' -o -name '*.cuh' | sort"
for _, path in ipairs(judge.lines_of(list)) do
  local code = code_of(path)
  check_launches(path, code)
  check_types(path, code)
end
if arg[1] == "--machine-code" then
  local paths = {}
  for path in pairs(LIMITS) do paths[#paths + 1] = path end
  table.sort(paths)
  for _, path in ipairs(paths) do
    check_machine_code(path, LIMITS[path], arg[2] or "build", cuda_of())
  end
end
judge.finish()
