/* ops/math/lanes.h - sums of a contiguous run in the one order that every build and device uses.
 *
 * Lane j of 64 adds x[j], x[j + 64], ...; the lanes are then added as a tree (32, 16, .. 1). The
 * bits are the same with AVX-512, AVX2, SSE2 and on a GPU (a warp with two lanes a thread), and the
 * loop runs at memory speed. A term is an expression in the loop variable i, so that sums of
 * products or of squares need no temporary. */
#ifndef GP_OPS_MATH_LANES_H
#define GP_OPS_MATH_LANES_H

#include <stdint.h>

#include "base/loop.h"

enum { GP_LANES = 64 };

/* Set result to the 64 lanes folded by op as a tree: 32, 16, .. 1. It is written level by level, so
 * that it stays in registers. */
#define GP_LANE_FOLD(T, result, lane, op)                                                          \
  do {                                                                                             \
    T gp_fold16[16], gp_fold8[8], gp_fold4[4];                                                     \
    GP_UNROLL(1)                                                                                   \
    for (int gp_j = 0; gp_j < 16; gp_j++)                                                          \
      gp_fold16[gp_j] =                                                                            \
          op(op((lane)[gp_j], (lane)[gp_j + 32]), op((lane)[gp_j + 16], (lane)[gp_j + 48]));       \
    for (int gp_j = 0; gp_j < 8; gp_j++)                                                           \
      gp_fold8[gp_j] = op(gp_fold16[gp_j], gp_fold16[gp_j + 8]);                                   \
    for (int gp_j = 0; gp_j < 4; gp_j++) gp_fold4[gp_j] = op(gp_fold8[gp_j], gp_fold8[gp_j + 4]);  \
    const T gp_even = op(gp_fold4[0], gp_fold4[2]), gp_odd = op(gp_fold4[1], gp_fold4[3]);         \
    (result) = op(gp_even, gp_odd);                                                                \
  } while (0)
#define GP_LANE_PLUS(a, b) ((a) + (b))
#define GP_LANE_MAX(a, b)  ((b) > (a) ? (b) : (a))

/* Set result (a variable of type T) to the sum of term(i) for i = 0 .. n - 1. The lanes are four
 * unrolled rows of 16, which the compiler keeps in registers (2 to 3 times faster at -O2); "unroll
 * 1" keeps -O3 from splitting such a row, which is one vector instruction. */
#define GP_LANE_SUM(T, result, n, i, term)                                                         \
  do {                                                                                             \
    T gp_lane_part[4][16] = {{0}};                                                                 \
    T *const gp_lane_flat = &gp_lane_part[0][0];                                                   \
    const int64_t gp_lane_n = (n);                                                                 \
    int64_t gp_lane_at = 0;                                                                        \
    for (; gp_lane_at + GP_LANES <= gp_lane_n; gp_lane_at += GP_LANES)                             \
      GP_UNROLL(4) for (int gp_lane_v = 0; gp_lane_v < 4; gp_lane_v++) {                           \
        GP_UNROLL(1) for (int gp_lane_j = 0; gp_lane_j < 16; gp_lane_j++) {                        \
          const int64_t i = gp_lane_at + 16 * gp_lane_v + gp_lane_j;                               \
          gp_lane_part[gp_lane_v][gp_lane_j] += (term);                                            \
        }                                                                                          \
      }                                                                                            \
    for (int gp_lane_j = 0; gp_lane_j < GP_LANES && gp_lane_at + gp_lane_j < gp_lane_n;            \
         gp_lane_j++) {                                                                            \
      const int64_t i = gp_lane_at + gp_lane_j;                                                    \
      gp_lane_flat[gp_lane_j] += (term);                                                           \
    }                                                                                              \
    GP_LANE_FOLD(T, result, gp_lane_flat, GP_LANE_PLUS);                                           \
  } while (0)

static inline float gp_lane_sum_f32(const float *x, int64_t n) {
  float sum;
  GP_LANE_SUM(float, sum, n, i, x[i]);
  return sum;
}

static inline double gp_lane_sum_f64(const double *x, int64_t n) {
  double sum;
  GP_LANE_SUM(double, sum, n, i, x[i]);
  return sum;
}

#endif
