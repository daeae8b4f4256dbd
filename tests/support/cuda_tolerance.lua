-- tests/support/cuda_tolerance.lua - how far results of a GPU may be from those of the CPU in f64,
-- and why.
--
-- This is the table of tests/support/tolerance.lua, with the rows in which a GPU differs: CUDA's
-- functions have bounds of their own. It holds for the kernels on a GPU and for the same kernels
-- compiled for the host (tests/cuda), whose functions are libm's.

local tolerance = require "tests.support.tolerance"

return setmetatable({
  twice = {
    f32 = 2 ^ -22, f64 = 2 ^ -51,
    why = "CUDA's rsqrt is good to 2 units in the last place, or two roundings in a row",
  },
  power = {
    f32 = 6e-7, f64 = 1e-14,
    why = "CUDA bounds powf by 4 units in the last place, pow by 2",
  },
  exponential = {
    f32 = 6e-7, f64 = 1e-14,
    why = "CUDA bounds expf, logf and tanhf by 2 units in the last place; a quotient around them",
  },
  activation = {
    f32 = 1.5e-6, f64 = 1e-13,
    why = "an exponential (or erff, 2 units in the last place), a division and products, values up "
      .. "to 6",
  },
  gradient = {
    f32 = 2e-5, f64 = 1e-12,
    why = "the forward tolerances with two more products; against the CPU's gradient, not "
      .. "differences",
  },
}, { __index = tolerance })
