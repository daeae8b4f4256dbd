/* ops/dense/dense.h - what the ops made of matrix products share. */
#ifndef GP_OPS_DENSE_DENSE_H
#define GP_OPS_DENSE_DENSE_H

#include "device/cpu/gemm.h"
#include "ops/operands.h"

/* A product in either dtype; an empty result needs none. */
static inline gp_status gp_multiply(gp_dtype dtype, const gp_gemm *g, const void *a, const void *b,
                                    void *c) {
  if (g->m == 0 || g->n == 0) return GP_OK;
  return dtype == GP_F32 ? gp_gemm_f32(g, a, b, c) : gp_gemm_f64(g, a, b, c);
}

/* Address of element `index` of a contiguous argument. */
static inline void *gp_arg_at(const gp_arg *arg, int64_t index) {
  return (char *)arg->data + (size_t)index * gp_dtype_size(arg->meta->dtype);
}

#endif
