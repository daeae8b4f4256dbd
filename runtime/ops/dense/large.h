/* ops/dense/large.h - the products of linear layers in f32 whose weight is large, on processors
 * where tiles of our own are faster than the library's; see device/cpu/panels.h.
 *
 * Which weights these are depends on their shape and the processor alone, for all three products:
 * so a layer has the same bits for every cut, packed or not. */
#ifndef GP_OPS_DENSE_LARGE_H
#define GP_OPS_DENSE_LARGE_H

#include "device/cpu/panels.h"
#include "ops/op.h"

/* Are the products of a weight [n, k] of this dtype computed here? */
static inline bool gp_large_is(gp_dtype dtype, int64_t n, int64_t k) {
  return dtype == GP_F32 && gp_panels_serve(n, k);
}

/* linear: x [.., K], w [N, K] or packed, b [N] -> y [.., N]. */
gp_status gp_large_linear(const gp_call *call, gp_span span);
size_t gp_large_linear_scratch(const gp_call *call);
/* linear_dx: dy [.., N], w [N, K] or packed -> dx [.., K]. */
gp_status gp_large_linear_dx(const gp_call *call, gp_span span);
size_t gp_large_linear_dx_scratch(const gp_call *call);
/* linear_dw: dy [.., N], x [.., K] -> dw [N, K]. Units are blocks of dw. */
gp_cut gp_large_linear_dw_cut(const gp_call *call);
gp_status gp_large_linear_dw(const gp_call *call, gp_span span);
size_t gp_large_linear_dw_scratch(const gp_call *call);
/* pack_linear: w [N, K] -> panels of w^T for linear, of w for linear_dx. Units are panels. */
gp_cut gp_large_pack_cut(const gp_call *call);
gp_status gp_large_pack(const gp_call *call, gp_span span);

#endif
