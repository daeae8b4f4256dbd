/* ops/falling_exp.h - exp for what softmax needs: arguments that are not above 0.
 *
 * gp_expf of ops/vmath.h without what such arguments never need: no overflow, no denormal results
 * (0 below -87 instead), so the power of two takes two operations. Half the time, the same
 * polynomial, and right for small positive arguments too, which rounding may leave. */
#ifndef GP_OPS_FALLING_EXP_H
#define GP_OPS_FALLING_EXP_H

#include "ops/vmath.h"

/* exp(x) for x <= 80 (NaN passes), 0 for x < -87. */
static inline float gp_falling_expf(float x) {
  float in = x < -87.0f ? -87.0f : x;
  float shifted = in * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: n = round(x / ln 2) lies in the */
  float whole = shifted - 12582912.0f;            /* low bits, and 2^n is those moved up */
  float r = (in - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float power = gp_float_of((gp_float_bits(shifted) + 127u) << 23);
  float y = (1.0f + (r + gp_exp_restf(r))) * power;
  return x < -87.0f ? 0.0f : y;
}

#endif
