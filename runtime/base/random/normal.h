/* base/random/normal.h - standard normals from uniforms, by additions, multiplications, a division
 * and a square root only.
 *
 * A math library's log, sin and cos differ between versions and between machines (it picks other
 * code where there are fused operations). The initial values of a model should not, nor what a GPU
 * draws: IEEE 754 settles every operation below, so they are the same bits everywhere. Compile
 * files that include this header without contraction of products and sums.
 *
 * Source: Box and Muller 1958; the series are Taylor's, long enough for the reduced arguments. */
#ifndef GP_BASE_NORMAL_H
#define GP_BASE_NORMAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/on_device.h"

/* The natural logarithm of a normal number x > 0: x = m * 2^e with sqrt(1/2) <= m < sqrt(2), and
 * log m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172. */
static GP_ON_DEVICE inline double gp_natural_log(double x) {
  const uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  /* Move the exponent into the mantissa of 2^52 + 2^51: that makes a double of an integer. */
  uint64_t shifted = bits - sqrt_half + (UINT64_C(2048) << 52);
  uint64_t magic = (shifted >> 52) | 0x4338000000000000;
  uint64_t reduced = (shifted & 0x000fffffffffffff) + sqrt_half;
  double e, m;
  memcpy(&e, &magic, sizeof e);
  memcpy(&m, &reduced, sizeof m);
  e -= 0x1.8p52 + 2048;
  double s = (m - 1) / (m + 1), z = s * s, series = 1.0 / 21;
  series = series * z + 1.0 / 19;
  series = series * z + 1.0 / 17;
  series = series * z + 1.0 / 15;
  series = series * z + 1.0 / 13;
  series = series * z + 1.0 / 11;
  series = series * z + 1.0 / 9;
  series = series * z + 1.0 / 7;
  series = series * z + 1.0 / 5;
  series = series * z + 1.0 / 3;
  return e * 0.693147180559945309417 + (2 * s + 2 * s * (z * series));
}

/* sin a and cos a for |a| <= pi / 4. */
static GP_ON_DEVICE inline double gp_short_sin(double a) {
  double z = a * a, series = -1.0 / 1307674368000;
  series = series * z + 1.0 / 6227020800;
  series = series * z - 1.0 / 39916800;
  series = series * z + 1.0 / 362880;
  series = series * z - 1.0 / 5040;
  series = series * z + 1.0 / 120;
  series = series * z - 1.0 / 6;
  return a + a * (z * series);
}

static GP_ON_DEVICE inline double gp_short_cos(double a) {
  double z = a * a, series = 1.0 / 20922789888000;
  series = series * z - 1.0 / 87178291200;
  series = series * z + 1.0 / 479001600;
  series = series * z - 1.0 / 3628800;
  series = series * z + 1.0 / 40320;
  series = series * z - 1.0 / 720;
  series = series * z + 1.0 / 24;
  return 1 - 0.5 * z + z * z * series;
}

/* Compute two independent normals from two uniforms in [0, 1): u gives the radius, v the turn. */
static GP_ON_DEVICE inline void gp_normal_pair(double u, double v, double *even, double *odd) {
  double radius = sqrt(-2 * gp_natural_log(1 - u)); /* u < 1 */
  /* Quarter turns are exact: what remains is at most an eighth of a turn. */
  double quarter = (4 * v + 0x1.8p52) - 0x1.8p52;
  double angle = 6.28318530717958647693 * (v - 0.25 * quarter);
  double s = gp_short_sin(angle), c = gp_short_cos(angle);
  /* cos and sin of a whole turn, from those of the rest: quarter is 0 .. 4 */
  bool swapped = quarter == 1 || quarter == 3;
  double x = swapped ? s : c, y = swapped ? c : s;
  *even = radius * (quarter == 1 || quarter == 2 ? -x : x);
  *odd = radius * (quarter == 2 || quarter == 3 ? -y : y);
}

#endif
