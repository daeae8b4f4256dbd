-- tests/gpu/documentation_spec.lua - the examples of docs/cuda.md run.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local on_gpu = gpu.spec(it, pending)

local GUIDE = "docs/cuda.md"

local function blocks_of(path)
  local file <close> = assert(io.open(path))
  local found = {}
  for code in file:read("a"):gmatch "```lua\n(.-\n)```\n" do found[#found + 1] = code end
  return found
end

-- The examples' print does nothing.
local environment = setmetatable({ gp = gp, nn = gp.nn, optim = gp.optim, print = function() end },
  { __index = _G })

describe(GUIDE, function()
  for i, code in ipairs(blocks_of(GUIDE)) do
    on_gpu("has a block that runs, number " .. i, function()
      assert(load(code, "=" .. GUIDE, "t", environment))()
    end)
  end
end)
