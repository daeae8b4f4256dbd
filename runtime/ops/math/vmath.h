/* ops/math/vmath.h - exp, expm1, tanh, sigmoid, erf, log and log1p for float, written so that loops
 * over them vectorise.
 *
 * libm's functions are calls, and a call per element is ten times slower than the arithmetic. These
 * are branch-free (selections only) and use no table. Where the instruction set has it, polynomials
 * use the fused multiply-add by name, so that vector loops and their scalar remainders of one build
 * give the same bits whatever the vector width. Errors stay below 3.1 units in the last place
 * (tests/c/ops/vmath_test.c walks the floats); 0, infinities, NaN, overflow and denormal results
 * are those of libm. Files that loop over them need -O3 (vectoriser with run-time checks).
 * Source: the polynomials are minimax fits (Remez) of the functions named. */
#ifndef GP_OPS_MATH_VMATH_H
#define GP_OPS_MATH_VMATH_H

#include <math.h>
#include <stdint.h>

#include "base/bits.h"

/* a * b + c, fused in builds for machines that fuse. */
#ifdef __FMA__
#define GP_MADDF(a, b, c) __builtin_fmaf(a, b, c)
#else
#define GP_MADDF(a, b, c) ((a) * (b) + (c))
#endif

/* Return 2^n for -126 <= n <= 127; other n (they come with a NaN only) give anything. */
static inline float gp_pow2f(int32_t n) { return gp_float_of((uint32_t)(n + 127) << 23); }

/* x = n ln 2 + r with |r| <= ln 2 / 2, for |x| <= 128. Adding 1.5 * 2^23 rounds to an integer that
 * then lies in the low bits of the sum. */
static inline float gp_split_ln2f(float x, int32_t *n) {
  float shifted = GP_MADDF(x, 1.44269504f, 12582912.0f);
  float whole = shifted - 12582912.0f;
  *n = (int32_t)(gp_float_bits(shifted) - gp_float_bits(12582912.0f));
  return GP_MADDF(whole, 2.12194440e-4f, GP_MADDF(whole, -0.693359375f, x));
}

/* (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2. */
static inline float gp_exp_curvef(float r) {
  float p = 1.394656374e-3f;
  p = GP_MADDF(p, r, 8.36664398e-3f);
  p = GP_MADDF(p, r, 4.166628047e-2f);
  p = GP_MADDF(p, r, 1.666654255e-1f);
  return GP_MADDF(p, r, 5.000000062e-1f);
}

/* exp(r) for |r| <= ln 2 / 2. */
static inline float gp_exp_nearf(float r) {
  return GP_MADDF(GP_MADDF(gp_exp_curvef(r), r, 1.0f), r, 1.0f);
}

/* Return exp(x) for x <= 89. Results outside the range of the arithmetic are corrected at the end:
 * one bound before it and one behind it cost gcc's vectors less than two before it. */
static inline float gp_exp_belowf(float x) {
  int32_t n;
  float r = gp_split_ln2f(x, &n);
  int32_t half = n >> 1; /* in two steps, so that 2^n may be denormal or infinite */
  float y = gp_exp_nearf(r) * gp_pow2f(half) * gp_pow2f(n - half);
  return x < -104.0f ? 0.0f : y;
}

static inline float gp_expf(float x) {
  float y = gp_exp_belowf(x);
  return x > 89.0f ? INFINITY : y;
}

/* Return exp(x) - 1 for |x| <= 40 (NaN is passed on), exact to the last places near 0 too. */
static inline float gp_expm1_smallf(float x) {
  int32_t n;
  float r = gp_split_ln2f(x, &n);
  float scale = gp_pow2f(n);
  return GP_MADDF(scale, r + gp_exp_curvef(r) * (r * r), scale - 1.0f);
}

/* Return exp(x) - 1, exact to the last places near 0, and keep the sign of zero. */
static inline float gp_expm1f(float x) {
  float small = x < -40.0f ? -40.0f : x; /* -1 from -17.4 on */
  float near = gp_expm1_smallf(small > 40.0f ? 40.0f : small);
  float y = x > 40.0f ? gp_expf(x) : near;
  return x == 0.0f ? x : y;
}

/* tanh = e / (e + 2) with e = exp(2|x|) - 1. */
static inline float gp_tanhf(float x) {
  float size = fabsf(x);
  size = size > 10.0f ? 10.0f : size; /* 1 from 9.02 on */
  float e = gp_expm1_smallf(size + size);
  return copysignf(e / (e + 2.0f), x);
}

/* Return 1 / (1 + exp(-x)), with exp of a negative number only: right down to the denormals. */
static inline float gp_sigmoidf(float x) {
  float e = gp_exp_belowf(-fabsf(x));
  float top = x < 0.0f ? e : 1.0f;
  return top / (1.0f + e);
}

/* The same for a double, with libm's exp. */
static inline double gp_sigmoid(double x) {
  double e = exp(-fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* erf(x) = 1 - exp(-q(x)) with the smooth q(x) = -log(erfc(x)), for 0 <= x <= 4. */
static inline float gp_erff(float x) {
  float size = fabsf(x);
  size = size > 4.0f ? 4.0f : size; /* 1 from 3.92 on */
  float q = -9.254888455e-6f;
  q = GP_MADDF(q, size, 1.176294304e-4f);
  q = GP_MADDF(q, size, -6.327961256e-4f);
  q = GP_MADDF(q, size, 1.666955176e-3f);
  q = GP_MADDF(q, size, -1.603250058e-4f);
  q = GP_MADDF(q, size, -1.915310235e-2f);
  q = GP_MADDF(q, size, 1.027778411e-1f);
  q = GP_MADDF(q, size, 6.366193807e-1f);
  q = GP_MADDF(q, size, 1.128379172f);
  return copysignf(gp_expm1_smallf(-(q * size)), x);
}

/* log(1 + f) - f + f f / 2 for sqrt(1/2) <= 1 + f <= sqrt(2). */
static inline float gp_log_restf(float f) {
  float p = -7.859609554e-2f;
  p = GP_MADDF(p, f, 1.288163185e-1f);
  p = GP_MADDF(p, f, -1.312874712e-1f);
  p = GP_MADDF(p, f, 1.41811942e-1f);
  p = GP_MADDF(p, f, -1.662455533e-1f);
  p = GP_MADDF(p, f, 2.000228618e-1f);
  p = GP_MADDF(p, f, -2.500081035e-1f);
  p = GP_MADDF(p, f, 3.333331673e-1f);
  return p * (f * (f * f));
}

/* Split x = 2^n (1 + f), with the exponent chosen so that 1 + f lies around 1. */
static inline float gp_logf(float x) {
  const uint32_t root = 0x3f3504f3u; /* sqrt(1/2) */
  float denormal = x < 1.17549435e-38f ? 23.0f : 0.0f;
  uint32_t bits = gp_float_bits(x < 1.17549435e-38f ? x * 8388608.0f : x);
  uint32_t above = bits - root;
  float n = (float)((int32_t)above >> 23) - denormal;
  float f = gp_float_of((above & 0x7fffffu) + root) - 1.0f;
  float y = GP_MADDF(n, -2.12194440e-4f, gp_log_restf(f));
  y = GP_MADDF(n, 0.693359375f, GP_MADDF(-0.5f * f, f, y) + f);
  y = x == 0.0f ? -INFINITY : y;
  y = x < 0.0f ? NAN : y;
  return x < INFINITY ? y : x; /* infinity and NaN */
}

/* Return log(1 + x) with the digits of a small x: u - 1 is x as the sum rounded it. Above 2^24 the
 * sum is the number next to x, and a product could overflow. Source: Goldberg, "What every computer
 * scientist should know about floating-point" (1991), theorem 4. */
static inline float gp_log1pf(float x) {
  const float u = 1.0f + x;
  const float y = gp_logf(u) * x / (u - 1.0f);
  return u == 1.0f ? x : u > 16777216.0f ? gp_logf(u) : y;
}

#endif
