-- tests/support/cuda_tolerance.lua - how far results of a GPU may be from those of the CPU in f64, and why.
--
-- By the names of tests/support/tolerance.lua, which rows use; a bound is relative plus absolute as there. It
-- holds for the kernels on a GPU and for the same kernels compiled for the host (tests/cuda), whose functions
-- are libm's.

return {
  exact = {
    f32 = 0, f64 = 0,
    why = "bits are moved, compared or counted: nothing is rounded",
  },
  rounded = {
    f32 = "rounded", f64 = 0,
    why = "one operation that IEEE 754 rounds correctly, on a GPU too (no fast division, no flush to zero)",
  },
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
    why = "an exponential (or erff, 2 units in the last place), a division and products, values up to 6",
  },
  sum = {
    f32 = 4e-6, f64 = 1e-14,
    why = "up to 700 terms of size 2 in an order of its own: a dozen roundings at partial sums below 100",
  },
  product = {
    f32 = 4e-6, f64 = 1e-14,
    why = "inner products of up to 150 terms of size 4, in whatever order the library adds",
  },
  norm = {
    f32 = 4e-6, f64 = 1e-13,
    why = "two sums over a row, a root and a division; rows are not constant, so nothing cancels",
  },
  softmax = {
    f32 = 2e-6, f64 = 1e-14,
    why = "exponentials, their sum over a row, a division or a logarithm",
  },
  layers = {
    f32 = 8e-6, f64 = 1e-13,
    why = "two products of up to 20 terms, or a norm and one, one behind the other",
  },
  attention = {
    f32 = 4e-6, f64 = 1e-13,
    why = "two products around a softmax that is rescaled block by block",
  },
  gradient = {
    f32 = 2e-5, f64 = 1e-12,
    why = "the forward tolerances with two more products",
  },
}
