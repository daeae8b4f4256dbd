-- tests/support/gpu.lua - specs that need a GPU: they say so where there is none.

local busted = require "busted.core"
local core = require "gpipe.core"

local gpu = {}

--- How many GPUs there are; on the host's form of the kernels (tests/cuda) as many as it claims.
function gpu.count() return #(core.gpus() or {}) end

--- An `it` for machines with so many GPUs (1 unless said), made of busted's own, which only specs
--- see. Inside a test busted's pending is another function than the global one outside, which would
--- be a silent pass.
--- ```lua
--- local on_gpu = gpu.spec(it)
--- on_gpu("adds", function() end)
--- ```
---@param it function
---@return fun(sentence: string, f: function, wanted?: integer)
function gpu.spec(it)
  return function(sentence, f, wanted)
    it(sentence, function()
      if gpu.count() >= (wanted or 1) then f() return end
      busted().pending(gpu.count() == 0 and "no CUDA device" or "too few CUDA devices")
    end)
  end
end

return gpu
