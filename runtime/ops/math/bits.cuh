/* ops/math/bits.cuh - elements that are only moved: nothing but their size counts.
 *
 * Four kernels then serve eight dtypes, and bits (NaN payloads, bools) pass unchanged. */
#ifndef GP_OPS_MATH_BITS_CUH
#define GP_OPS_MATH_BITS_CUH

#include "device/cuda/kernel/meta.cuh"

/* Run the statement with T as the unsigned type of a dtype's size. */
/* clang-format off */
#define GP_BY_SIZE(dtype, statement)                                                               \
  switch (gp_item_of(dtype)) {                                                                     \
  case 1: { typedef uint8_t T; statement; } break;                                                 \
  case 2: { typedef uint16_t T; statement; } break;                                                \
  case 4: { typedef uint32_t T; statement; } break;                                                \
  default: { typedef uint64_t T; statement; } break;                                               \
  }
/* clang-format on */

#endif
