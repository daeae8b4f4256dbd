/* ops/lanes.h - sums of a contiguous run in the one order that every build and device uses.
 *
 * Lane j of 64 adds x[j], x[j + 64], ...; the lanes are then added as a tree (32, 16, .. 1). The
 * bits are the same with AVX-512, AVX2, SSE2 and on a GPU (a warp with two lanes a thread), and the
 * loop runs at memory speed. A term is an expression in the loop variable i, so that sums of
 * products or of squares need no temporary. */
#ifndef GP_OPS_LANES_H
#define GP_OPS_LANES_H

#include <stdint.h>

enum { GP_LANES = 64 };

/* Set result (a variable of type T) to the sum of term(i) for i = 0 .. n - 1. The lanes are four
 * unrolled rows of 16, which the compiler keeps in registers (2 to 3 times faster at -O2). */
#define GP_LANE_SUM(T, result, n, i, term)                                                         \
  do {                                                                                             \
    T gp_lane[4][16] = {{0}};                                                                      \
    T *const gp_lane_flat = &gp_lane[0][0];                                                        \
    const int64_t gp_lane_n = (n);                                                                 \
    int64_t gp_lane_at = 0;                                                                        \
    for (; gp_lane_at + GP_LANES <= gp_lane_n; gp_lane_at += GP_LANES)                             \
      _Pragma("GCC unroll 4") for (int gp_lane_v = 0; gp_lane_v < 4; gp_lane_v++)                  \
        for (int gp_lane_j = 0; gp_lane_j < 16; gp_lane_j++) {                                     \
          const int64_t i = gp_lane_at + 16 * gp_lane_v + gp_lane_j;                               \
          gp_lane[gp_lane_v][gp_lane_j] += (term);                                                 \
        }                                                                                          \
    for (int gp_lane_j = 0; gp_lane_j < GP_LANES && gp_lane_at + gp_lane_j < gp_lane_n;            \
         gp_lane_j++) {                                                                            \
      const int64_t i = gp_lane_at + gp_lane_j;                                                    \
      gp_lane_flat[gp_lane_j] += (term);                                                           \
    }                                                                                              \
    for (int gp_lane_w = GP_LANES / 2; gp_lane_w > 0; gp_lane_w /= 2)                              \
      for (int gp_lane_j = 0; gp_lane_j < gp_lane_w; gp_lane_j++)                                  \
        gp_lane_flat[gp_lane_j] += gp_lane_flat[gp_lane_j + gp_lane_w];                            \
    (result) = gp_lane_flat[0];                                                                    \
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
