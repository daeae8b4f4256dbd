/* ops/math/falling_exp.h - exp for what softmax needs: arguments that are not above 0.
 *
 * gp_expf of ops/math/vmath.h without what such arguments never need: no overflow, no denormal
 * results (0 below -87 instead), so the power of two takes two operations. 0.6 of the time, the
 * same polynomial and error, and right for small positive arguments too, which rounding may
 * leave. */
#ifndef GP_OPS_MATH_FALLING_EXP_H
#define GP_OPS_MATH_FALLING_EXP_H

#include "ops/math/vmath.h"

/* exp(x) for x <= 80 (NaN passes), 0 for x < -87. */
static inline float gp_falling_expf(float x) {
  float in = x < -87.0f ? -87.0f : x;
  /* 1.5 * 2^23 more: n = round(x / ln 2) lies in the low bits, and 2^n is those moved up. */
  float shifted = GP_MADDF(in, 1.44269504f, 12582912.0f);
  float whole = shifted - 12582912.0f;
  float r = GP_MADDF(whole, 2.12194440e-4f, GP_MADDF(whole, -0.693359375f, in));
  float power = gp_float_of((gp_float_bits(shifted) + 127u) << 23);
  float y = (1.0f + (r + gp_exp_restf(r))) * power;
  return x < -87.0f ? 0.0f : y;
}

#endif
