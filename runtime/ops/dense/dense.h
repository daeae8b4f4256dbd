/* ops/dense/dense.h - what the ops made of matrix products share. */
#ifndef GP_OPS_DENSE_DENSE_H
#define GP_OPS_DENSE_DENSE_H

#include "base/status.h"
#include "base/tensor.h"
#include "device/cpu/gemm.h"
#include "ops/cut.h"
#include "ops/dense/packed.h"
#include "ops/half/product.h"
#include "ops/infer.h"

static inline int64_t gp_at_least_one(int64_t stride) { return stride > 0 ? stride : 1; }

/* Multiply in either dtype. An empty result needs no product, and rows without elements still
 * need a distance. */
static inline gp_status gp_multiply(gp_dtype dtype, gp_gemm g, const void *a, const void *b,
                                    void *c) {
  if (g.m == 0 || g.n == 0) return GP_OK;
  g.lda = gp_at_least_one(g.lda);
  g.ldb = gp_at_least_one(g.ldb);
  return dtype == GP_F32 ? gp_gemm_f32(&g, a, b, c) : gp_gemm_f64(&g, a, b, c);
}

/* Return the piece of `grain` units that starts at first. One product covers it, however many
 * pieces the caller runs at once, so that the bits are those of the pieces. */
static inline gp_span gp_piece_at(gp_span span, int64_t first, int64_t grain) {
  int64_t last = span.last - first < grain ? span.last : first + grain;
  return gp_span_part(span, first, last);
}

/* Return the address of element `index` of a contiguous argument. */
static inline void *gp_arg_at(const gp_arg *arg, int64_t index) {
  return (char *)arg->data + (size_t)index * gp_dtype_size(arg->meta->dtype);
}

/* Run an elementwise op on rows of contiguous values of one shape: its units are those of the
 * product that made them, even if they have one dimension. */
static inline gp_status gp_follow_rows(const gp_op_def *op, gp_call call, gp_span span) {
  const gp_meta *meta = call.out[0].meta;
  int64_t rows = gp_meta_rows(meta), n = gp_meta_width(meta);
  gp_meta flat = {meta->dtype, {2, {rows, n}}, {n, 1}, 0};
  for (int i = 0; i < call.n_in; i++) call.in[i].meta = &flat;
  call.out[0].meta = &flat;
  return op->cpu.run(&call, span);
}

#endif
