-- tests/support/gpu.lua - makes specs that need a GPU pending where there is none.

local busted = require "busted.core"
local core = require "gpipe.core"

local gpu = {}

--- Count the GPUs; the kernels compiled for the host (tests/cuda) claim some.
function gpu.count() return #(core.gpus() or {}) end

--- Return an `it` for machines with so many GPUs (1 by default), made from busted's own, which only
--- specs see. It calls busted's pending of the running test: the global pending would pass silently
--- there.
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
