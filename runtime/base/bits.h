/* base/bits.h - the bits of a float and back, without breaking C's aliasing rules.
 *
 * It copies four bytes by memcpy, of which compilers make one register move, also
 * inside vector loops. */
#ifndef GP_BASE_BITS_H
#define GP_BASE_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t gp_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float gp_float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
