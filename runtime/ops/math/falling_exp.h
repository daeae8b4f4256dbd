/* ops/math/falling_exp.h - exp and 2^x for what softmax and gelu need: arguments not above 0.
 *
 * It is gp_expf of ops/math/vmath.h without what such arguments never need: no overflow, no
 * denormal results (0 instead), so the power of two takes two operations at most. */
#ifndef GP_OPS_MATH_FALLING_EXP_H
#define GP_OPS_MATH_FALLING_EXP_H

#include "ops/math/vmath.h"

/* Return exp(x) for x <= 80 (NaN is passed on), 0 for x < -87. It is right for small positive
 * arguments too, which rounding may leave. It takes 0.75 of gp_expf's time. */
static inline float gp_falling_expf(float x) {
  /* Add 1.5 * 2^23: n = round(x / ln 2) then lies in the low bits, and 2^n is those moved up. */
  float shifted = GP_MADDF(x, 1.44269504f, 12582912.0f);
  float whole = shifted - 12582912.0f;
  float r = GP_MADDF(whole, 2.12194440e-4f, GP_MADDF(whole, -0.693359375f, x));
  float power = gp_float_of((gp_float_bits(shifted) + 127u) << 23);
  float y = gp_exp_nearf(r) * power;
  return x < -87.0f ? 0.0f : y;
}

/* Return 2^x for x <= 0, 0 for x < -126, anything for a NaN. It takes half of gp_expf's time. */
static inline float gp_falling_exp2f(float x) {
  float shifted = x + 12582912.0f;
  float r = x - (shifted - 12582912.0f);
  float p = 1.535336206e-4f;
  p = GP_MADDF(p, r, 1.339887456e-3f);
  p = GP_MADDF(p, r, 9.618437358e-3f);
  p = GP_MADDF(p, r, 5.550332471e-2f);
  p = GP_MADDF(p, r, 2.402264791e-1f);
  p = GP_MADDF(p, r, 6.931472029e-1f);
  p = GP_MADDF(p, r, 1.0f);
  float y = gp_float_of(gp_float_bits(p) + (gp_float_bits(shifted) << 23));
  return x < -126.0f ? 0.0f : y;
}

#endif
