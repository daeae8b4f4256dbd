-- tests/support/tolerance.lua - how far results may be from their reference, and why.
--
-- This is the one table of tolerances of the op conformance tests. A bound is relative plus
-- absolute: |got - want| <= bound * (1 + |want|). What DESIGN §8 promises is tested with ==,
-- without a tolerance.

return {
  exact = {
    f32 = 0, f64 = 0,
    why = "bits are moved, compared or counted: nothing is rounded",
  },
  rounded = {
    f32 = "rounded", f64 = 0,
    why = "one operation that IEEE 754 rounds correctly: the reference, rounded to the dtype once, "
      .. "is it",
  },
  twice = {
    f32 = 2 ^ -23, f64 = 2 ^ -52,
    why = "two roundings in a row",
  },
  power = {
    f32 = 3e-7, f64 = 1e-14,
    why = "libm's powf is good to one unit in the last place",
  },
  exponential = {
    f32 = 4e-7, f64 = 1e-14,
    why = "vmath.h bounds its functions by 2 units in the last place; the reference is libm's",
  },
  activation = {
    f32 = 1e-6, f64 = 1e-13,
    why = "an exponential (or erf), a division and products around it, values up to 4",
  },
  sum = {
    f32 = 4e-6, f64 = 1e-14,
    why = "up to 700 terms of size 2 in lanes of 64: a dozen roundings at partial sums below 100",
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
    why = "two products around a softmax (rescaled block by block on a GPU)",
  },
  gradient = {
    f64 = 1e-6,
    why = "central differences with a step of 2^-17 in f64: the issue's bound",
  },
  gradient_f32 = {
    f32 = 2e-5,
    why = "the f32 backward pass against the f64 one: the forward tolerances with two more "
      .. "products",
  },
}
