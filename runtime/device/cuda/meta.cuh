/* device/cuda/meta.cuh - what launchers ask of dtypes and shapes.
 *
 * The core's functions for it (base/dtype.c, base/tensor.c) are not linked into this library. Metas that
 * arrive here were checked: nothing overflows. */
#ifndef GP_DEVICE_CUDA_META_CUH
#define GP_DEVICE_CUDA_META_CUH

#include "device/cuda/device.cuh"

/* Run the statement with T as the unsigned type of a dtype's size: for elements that are moved and not
 * looked at, whose bits (NaN payloads, bools) pass unchanged. */
/* clang-format off */
#define GP_BY_SIZE(dtype, statement)                                                               \
  switch (gp_item_bytes(dtype)) {                                                                  \
  case 1: { typedef uint8_t T; statement; } break;                                                 \
  case 2: { typedef uint16_t T; statement; } break;                                                \
  case 4: { typedef uint32_t T; statement; } break;                                                \
  default: { typedef uint64_t T; statement; } break;                                               \
  }
/* clang-format on */

/* Bytes of an element. */
static inline int gp_item_bytes(gp_dtype dtype) {
#define GP_ITEM_BYTES(name, text, bytes, is_float) bytes,
  static const int sizes[] = {GP_DTYPE_LIST(GP_ITEM_BYTES)};
#undef GP_ITEM_BYTES
  return sizes[dtype];
}

static inline int64_t gp_numel(const gp_shape *shape) {
  int64_t n = 1;
  for (int d = 0; d < shape->rank; d++) n *= shape->dim[d];
  return n;
}

static inline bool gp_is_contiguous(const gp_meta *meta) {
  int64_t step = 1;
  for (int d = meta->shape.rank - 1; d >= 0; d--) {
    if (meta->shape.dim[d] != 1 && meta->stride[d] != step) return false;
    step *= meta->shape.dim[d];
  }
  return true;
}

#endif
