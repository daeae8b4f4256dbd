-- scripts/check_kernels.lua - every kernel waits for the one before it, and all are launched in one
-- way.
--
-- A kernel may begin while the one before it ends (runtime/device/cuda/kernel/overlap.cu), which is
-- right only as long as the first statement of each is gp_kernel_begin(). Run from the root of the
-- checkout; prints each fault, exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

local BEGIN = "^%s*gp_kernel_begin%(%);"
local LAUNCHER = "runtime/device/cuda/kernel/device.cuh" -- the one file that may launch

-- Code without its comments, line for line.
local function code_of(path)
  return (judge.read(path):gsub("/%*.-%*/",
    function(comment) return (comment:gsub("[^\n]", "")) end):gsub("//[^\n]*", ""))
end

local function line_of(code, at)
  return select(2, code:sub(1, at):gsub("\n", "")) + 1
end

-- Returns the position of the brace that opens the body of what is declared at `at`, or nil.
local function body_of(code, at)
  local depth = 0
  for place, sign in code:gmatch("()([(){};])", at) do
    if sign == "(" then
      depth = depth + 1
    elseif sign == ")" then
      depth = depth - 1
    elseif depth == 0 then
      return sign == "{" and place or nil
    end
  end
end

local function check_kernels(path, code)
  local at = code:find("__global__", 1, true)
  while at do
    local body = body_of(code, at)
    if body and not code:find(BEGIN, body + 1) then
      judge.complain("%s:%d: a kernel does not wait for the one before it, expected "
        .. "gp_kernel_begin(); as its first statement", path, line_of(code, at))
    end
    at = code:find("__global__", at + 1, true)
  end
end

local function check_launches(path, code)
  for _, launch in ipairs { "<<<", "cudaLaunchKernel", "cudaLaunchCooperativeKernel" } do
    local at = code:find(launch, 1, true)
    if at and path ~= LAUNCHER then
      judge.complain("%s:%d: %s, expected GP_LAUNCH", path, line_of(code, at), launch)
    end
  end
end

local list = "find runtime -name '*.cu' -o -name '*.cuh' | sort"
for _, path in ipairs(judge.lines_of(list)) do
  local code = code_of(path)
  check_kernels(path, code)
  check_launches(path, code)
end
judge.finish()
