/* base/numbers/half.h - bf16 and f16 bits <-> float, inline: the loops of convert.c and of kernels
 * must vectorise over them. base/tensor.h declares the same as ordinary functions.
 *
 * Denormals are computed with integers only, so the result does not depend on the mode of the
 * thread; rounding is to nearest even; a NaN keeps its sign and leading payload and becomes
 * quiet. */
#ifndef GP_BASE_NUMBERS_HALF_H
#define GP_BASE_NUMBERS_HALF_H

#include <stdint.h>

#include "base/bits.h"

static inline float gp_bf16_widen(uint16_t bits) { return gp_float_of((uint32_t)bits << 16); }

static inline uint16_t gp_bf16_narrow(float value) {
  uint32_t bits = gp_float_bits(value);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  uint32_t quiet_nan = bits >> 16 | 0x40u; /* rounding could carry a NaN into infinity */
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

/* f16 has 5 exponent bits (bias 15) and 10 of mantissa: 13 fewer than a float. */
static inline float gp_f16_widen(uint16_t bits) {
  const uint32_t rebias = 112u << 23; /* 127 - 15 */
  uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
  uint32_t body = (uint32_t)(bits & 0x7fffu) << 13;
  uint32_t normal = body + rebias;
  /* Exponent 31 means infinity or NaN: the float's exponent must become 255. */
  uint32_t special = (body + 2 * rebias) | ((body & 0x007fffffu) ? 0x00400000u : 0);
  /* Exponent 0 is mantissa * 2^-24: put an implicit one before the mantissa and subtract it. */
  float small = gp_float_of(body + rebias + (1u << 23)) - gp_float_of(113u << 23);
  uint32_t result = body >= (31u << 23) ? special
                    : body < (1u << 23) ? gp_float_bits(small)
                                        : normal;
  return gp_float_of(result | sign);
}

static inline uint16_t gp_f16_narrow(float value) {
  const uint32_t infinity = 255u << 23, too_large = 143u << 23, smallest_normal = 113u << 23;
  uint32_t bits = gp_float_bits(value), sign = bits & 0x80000000u, body = bits ^ sign;
  uint32_t normal = (body - (112u << 23) + 0xfffu + (body >> 13 & 1u)) >> 13;
  uint32_t special = body > infinity ? 0x7e00u | (body >> 13 & 0x1ffu) : 0x7c00u;
  /* Adding 0.5 leaves multiples of 2^-24 in the mantissa: the addition rounds to the denormals. */
  uint32_t denormal = gp_float_bits(gp_float_of(body) + 0.5f) - gp_float_bits(0.5f);
  uint32_t result = body >= too_large ? special : body < smallest_normal ? denormal : normal;
  return (uint16_t)(result | sign >> 16);
}

#endif
