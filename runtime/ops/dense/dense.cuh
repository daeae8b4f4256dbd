/* ops/dense/dense.cuh - what the dense ops on a GPU share: sizes and addresses of contiguous values. */
#ifndef GP_OPS_DENSE_DENSE_CUH
#define GP_OPS_DENSE_DENSE_CUH

#include "device/cuda/device.cuh"
#include "device/cuda/gemm.h"

/* Last dim. */
static inline int64_t width_of(const gp_meta *meta) {
  return meta->shape.dim[meta->shape.rank - 1];
}

/* Product of the dims before the last. */
static inline int64_t rows_of(const gp_meta *meta) {
  int64_t rows = 1;
  for (int d = 0; d < meta->shape.rank - 1; d++) rows *= meta->shape.dim[d];
  return rows;
}

static inline size_t element_of(gp_dtype dtype) {
#define GP_BYTES(name, text, bytes, is_float) bytes,
  static const size_t sizes[] = {GP_DTYPE_LIST(GP_BYTES)};
#undef GP_BYTES
  return sizes[dtype];
}

/* Address of an element. prepare has no addresses, but how far one lies from a multiple of 16 bytes is
 * known then too: hence numbers, not pointers. */
static inline void *address_of(const gp_arg *arg, int64_t index) {
  return (void *)((uintptr_t)arg->data + (size_t)index * element_of(arg->meta->dtype));
}

/* The steps of prepare and run are the same, but for the last one. */
typedef gp_status (*gp_gemm_step)(gp_gpu *gpu, const gp_gemm *gemm);

#endif
