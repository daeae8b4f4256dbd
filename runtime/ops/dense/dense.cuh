/* ops/dense/dense.cuh - what the dense ops on a GPU share: addresses of contiguous values, steps of products. */
#ifndef GP_OPS_DENSE_DENSE_CUH
#define GP_OPS_DENSE_DENSE_CUH

#include "device/cuda/kernel/device.cuh"
#include "device/cuda/gemm/gemm.h"
#include "device/cuda/kernel/meta.cuh"

/* Address of an element. prepare has no addresses, but how far one lies from a multiple of 16 bytes is
 * known then too: hence numbers, not pointers. */
static inline void *address_of(const gp_arg *arg, int64_t index) {
  return (void *)((uintptr_t)arg->data + (size_t)index * gp_item_of(arg->meta->dtype));
}

/* The steps of prepare and run are the same, but for the last one. */
typedef gp_status (*gp_gemm_step)(gp_gpu *gpu, const gp_gemm *gemm);

#endif
