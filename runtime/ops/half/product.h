/* ops/half/product.h - the products of linear layers on bf16 operands; see device/cpu/bf16/bf16.h.
 *
 * Sums are f32 and every result is rounded once, with the bias in it. An element's bits depend on
 * no cut: each row and column has its own sum, and rows that are added up (dw) are added in
 * ascending order. */
#ifndef GP_OPS_HALF_PRODUCT_H
#define GP_OPS_HALF_PRODUCT_H

#include "ops/op.h"

/* The dtypes that the kernels below take, for gp_cpu_kernel.halves. */
enum { GP_HALF_PRODUCTS = 1u << GP_BF16 };

/* Tell whether the call multiplies bf16. */
static inline bool gp_half_multiplies(const gp_call *call) {
  return call->in[0].meta->dtype == GP_BF16;
}

/* linear: x [.., K], w [N, K] or packed, b [N] -> y [.., N]. */
gp_status gp_half_linear(const gp_call *call, gp_span span);
size_t gp_half_linear_scratch(const gp_call *call);
/* linear_dx: dy [.., N], w [N, K] or packed -> dx [.., K]. */
gp_status gp_half_linear_dx(const gp_call *call, gp_span span);
size_t gp_half_linear_dx_scratch(const gp_call *call);
/* linear_dw: dy [.., N], x [.., K] -> dw [N, K], in f32. Units are rows of dw. */
gp_cut gp_half_linear_dw_cut(const gp_call *call);
gp_status gp_half_linear_dw(const gp_call *call, gp_span span);
size_t gp_half_linear_dw_scratch(const gp_call *call);

/* matmul: rows [first, last), 512 at most, of one a b, both of bf16 and dense; ta, tb: stored
 * transposed. */
typedef struct gp_half_matrices {
  const uint16_t *a, *b;
  uint16_t *out;
  bool ta, tb;
  int64_t m, n, k;
} gp_half_matrices;
enum { GP_HALF_MATRIX_ROWS = 512 };
void gp_half_multiply(const gp_half_matrices *x, int64_t first, int64_t last, void *scratch);
size_t gp_half_multiply_scratch(const gp_half_matrices *x);

/* pack_linear: w [N, K] of f32 or bf16 -> panels, those of w^T for linear, those of w for
 * linear_dx. Units are panels. */
size_t gp_half_packed_bytes(const gp_shape *weight, bool transposed);
gp_cut gp_half_pack_cut(const gp_call *call);
gp_status gp_half_pack(const gp_call *call, gp_span span);

#endif
