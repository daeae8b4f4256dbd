/* base/numbers/half.c - the half-precision conversions as ordinary functions, for callers of
 * single values (and of tests); loops include base/numbers/half.h. */
#include "base/numbers/half.h"

#include "base/tensor.h"

float gp_bf16_to_float(uint16_t bits) { return gp_bf16_widen(bits); }

uint16_t gp_bf16_from_float(float value) { return gp_bf16_narrow(value); }

float gp_f16_to_float(uint16_t bits) { return gp_f16_widen(bits); }

uint16_t gp_f16_from_float(float value) { return gp_f16_narrow(value); }
