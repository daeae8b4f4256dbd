/* ops/dense/dense.cuh - what the dense ops on a GPU share: addresses of contiguous values, the
 * products of a linear layer. */
#ifndef GP_OPS_DENSE_DENSE_CUH
#define GP_OPS_DENSE_DENSE_CUH

#include "device/cuda/kernel/device.cuh"
#include "device/cuda/gemm/gemm.h"
#include "device/cuda/kernel/meta.cuh"

/* Return the address of an element. prepare has no addresses, but it knows how far one lies from a
 * multiple of 16 bytes: hence numbers, not pointers. */
static inline void *address_of(const gp_arg *arg, int64_t index) {
  return (void *)((uintptr_t)arg->data + (size_t)index * gp_item_of(arg->meta->dtype));
}

/* A step of prepare or of run: all but the last ones are the same. */
typedef gp_status (*gp_gemm_step)(gp_gpu *gpu, const gp_gpu_gemm *gemm);

/* Work as gp_gemm_prepare and gp_gemm_run do, by way of padded copies where that is faster or the
 * only way (product.cu). prepare raises *scratch to the bytes that run wants there. */
gp_status gp_product_prepare(gp_gpu *gpu, const gp_gpu_gemm *gemm, size_t *scratch);
gp_status gp_product_run(gp_gpu *gpu, const gp_gpu_gemm *gemm, void *scratch);

/* Work as gp_gemm_prepare and gp_gemm_run do, but in whole groups of elements and what is left over
 * where that is faster (tails.cu). */
gp_status gp_tails_prepare(gp_gpu *gpu, const gp_gpu_gemm *gemm);
gp_status gp_tails_run(gp_gpu *gpu, const gp_gpu_gemm *gemm);

/* While it lives, prepare another way than the first, which returned this status. If that was fine,
 * the other way is a spare for a run that is refused, and no report names it. */
struct gp_other_way {
  gp_gpu *gpu;
  bool was;
  gp_other_way(gp_gpu *of, gp_status first) : gpu(of), was(of->spare) {
    gpu->spare = was || first == GP_OK;
  }
  ~gp_other_way() { gpu->spare = was; }
};

/* ---- products of a linear layer ------------------------------------------------------------- */

/* The products of the next three functions take logits and gradients whose rows are padded
 * (graph/pad.c). x [.., K], w [N, K] (packed: [K, N]), b [N] -> y [.., N]. */
static inline gp_gpu_gemm gp_linear_product(const gp_call *call) {
  const gp_arg *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
  gp_gpu_gemm g = {};
  g.type = x->meta->dtype, g.d_type = y->meta->dtype;
  const int64_t packed = call->attr->linear.packed;
  g.transpose_b = !packed;
  g.m = gp_rows_of(x->meta), g.n = packed ? packed : gp_rows_of(w->meta);
  g.k = gp_width_of(x->meta);
  g.lda = g.k, g.ldb = g.transpose_b ? g.k : g.n, g.ldd = gp_width_of(y->meta);
  g.a = x->data, g.b = w->data, g.d = y->data;
  g.biased = call->n_in == 3;
  g.bias = g.biased ? call->in[2].data : NULL;
  return g;
}

/* dy [.., N], w [N, K] -> dx [.., K] = dy w. */
static inline gp_gpu_gemm gp_linear_dx_product(const gp_call *call) {
  const gp_arg *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
  gp_gpu_gemm g = {};
  g.type = dy->meta->dtype, g.d_type = dx->meta->dtype;
  g.m = gp_rows_of(dy->meta), g.n = gp_width_of(w->meta), g.k = gp_width_of(dy->meta);
  g.lda = gp_row_distance(dy->meta), g.ldb = g.n, g.ldd = g.n;
  g.a = dy->data, g.b = w->data, g.d = dx->data;
  return g;
}

/* dy [.., N], x [.., K] -> dw [N, K] = dy^T x, all rows in one product; f32 for halves. */
static inline gp_gpu_gemm gp_linear_dw_product(const gp_call *call) {
  const gp_arg *dy = &call->in[0], *x = &call->in[1], *dw = &call->out[0];
  gp_gpu_gemm g = {};
  g.type = dy->meta->dtype, g.d_type = dw->meta->dtype;
  g.transpose_a = true;
  g.m = gp_width_of(dy->meta), g.n = gp_width_of(x->meta), g.k = gp_rows_of(dy->meta);
  g.lda = gp_row_distance(dy->meta), g.ldb = g.n, g.ldd = g.n;
  g.a = dy->data, g.b = x->data, g.d = dw->data;
  g.accumulate = call->accumulate;
  return g;
}

#endif
