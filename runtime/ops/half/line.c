/* ops/half/line.c - lines of halves to floats and back; see half.h. */
#include "base/numbers/half.h"
#include "ops/half/half.h"

#define CONVERSIONS(name)                                                                          \
  static void widen_##name(const uint16_t *restrict from, int64_t step, int64_t n,                 \
                           float *restrict to) {                                                   \
    if (step == 1)                                                                                 \
      for (int64_t i = 0; i < n; i++) to[i] = gp_##name##_widen(from[i]);                          \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) to[i] = gp_##name##_widen(from[i * step]);                   \
  }                                                                                                \
  static void narrow_##name(const float *restrict from, int64_t n, int64_t step,                   \
                            uint16_t *restrict to) {                                               \
    if (step == 1)                                                                                 \
      for (int64_t i = 0; i < n; i++) to[i] = gp_##name##_narrow(from[i]);                         \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) to[i * step] = gp_##name##_narrow(from[i]);                  \
  }
CONVERSIONS(bf16)
CONVERSIONS(f16)

void gp_half_widen(gp_dtype half, const uint16_t *from, int64_t step, int64_t n, float *to) {
  (half == GP_BF16 ? widen_bf16 : widen_f16)(from, step, n, to);
}

void gp_half_narrow(gp_dtype half, const float *from, int64_t n, int64_t step, uint16_t *to) {
  (half == GP_BF16 ? narrow_bf16 : narrow_f16)(from, n, step, to);
}
