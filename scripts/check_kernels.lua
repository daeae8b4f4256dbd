-- scripts/check_kernels.lua - all kernels are launched in one way, GP_LAUNCH, which checks a launch
-- and which the host's build (tests/cuda) replaces.
--
-- Run from the root of the checkout; prints each fault, exits 1.

package.path = "./?.lua;" .. package.path
local judge = require "scripts.judge"

local LAUNCHER = "runtime/device/cuda/kernel/device.cuh" -- the one file that may launch

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

local list = "find runtime -name '*.cu' -o -name '*.cuh' | sort"
for _, path in ipairs(judge.lines_of(list)) do
  check_launches(path, code_of(path))
end
judge.finish()
