/* ops/norm/rms_norm.c - y = x / sqrt(mean of x x + eps) w over the last dimension, and its
 * gradients.
 *
 * Source: Zhang, Sennrich, "Root mean square layer normalization" (2019). Rows whose squares
 * overflow are scaled down first, as in layer_norm.c. dw is cut by columns, so that the sum over
 * rows keeps one order. */
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/gradient.h"
#include "ops/infer.h"

/* Factors after which the squares of any numbers can be added up. */
static const float shrink_f32 = 0x1p-96f;
static const double shrink_f64 = 0x1p-600;

#define GP_REAL_SOURCE "ops/norm/rms_norm.inc"
#include "ops/math/real.h"

/* ---- forward --------------------------------------------------------------------------------- */

/* x [.., C], w [C] -> y [.., C], rstd [..]. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_rms_norm, 0, 1));
  const gp_shape column = {1, {gp_meta_width(sig->in[0])}};
  const gp_shape rows = gp_shape_drop_last(&sig->in[0]->shape);
  GP_TRY(gp_operand_shape(sig, GP_OP_rms_norm, 1, &column, 0));
  GP_TRY(gp_infer_like(sig, 0));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &rows);
}

static gp_status vjp(gp_vjp *v) {
  const gp_attrs none = {0};
  GP_TRY(gp_vjp_first_output_only(v));
  const gp_ref dy = v->dout[0], x = v->in[0], w = v->in[1], rstd = v->out[1];
  if (dy == GP_NONE) return GP_OK;
  if (v->need[0])
    GP_TRY(
        gp_build(v->builder, GP_OP_rms_norm_dx, &none, (gp_ref[]){dy, x, w, rstd}, 4, &v->din[0]));
  if (!v->need[1]) return GP_OK;
  return gp_build(v->builder, GP_OP_rms_norm_dw, &none, (gp_ref[]){dy, x, rstd}, 3, &v->din[1]);
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 4 * (double)gp_meta_numel(sig->in[0]));
}

GP_REAL_KERNEL(run, normalise)

const gp_op_def gp_def_rms_norm = {
    GP_OP_ROW(rms_norm), .row_inputs = 1, .infer = infer,
    .vjp = vjp,          .cost = cost,    .cpu = {.cut = gp_cut_whole_rows, .run = run}};

/* ---- gradient of the input ------------------------------------------------------------------- */

/* dy [.., C], x [.., C], w [C], rstd [..] -> dx [.., C]. */
static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_rms_norm_dx, 0, 1));
  const gp_shape *dy = &sig->in[0]->shape, rows = gp_shape_drop_last(dy);
  const gp_shape column = {1, {gp_meta_width(sig->in[0])}};
  GP_TRY(gp_operand_shape(sig, GP_OP_rms_norm_dx, 1, dy, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_rms_norm_dx, 2, &column, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_rms_norm_dx, 3, &rows, 0));
  return gp_infer_out(sig, sig->in[0]->dtype, dy);
}

static gp_cost cost_dx(const gp_sig *sig) {
  return gp_cost_of(sig, 8 * (double)gp_meta_numel(sig->in[0]));
}

GP_REAL_KERNEL(run_dx, input_gradient)

const gp_op_def gp_def_rms_norm_dx = {GP_OP_ROW(rms_norm_dx), .row_inputs = 1 | 2 | 8,
                                      .infer = infer_dx, .cost = cost_dx,
                                      .cpu = {.cut = gp_cut_whole_rows, .run = run_dx}};

/* ---- gradient of the weight ------------------------------------------------------------------ */

/* dy [.., C], x [.., C], rstd [..] -> dw [C]. */
static gp_status infer_dw(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_rms_norm_dw, 0, 1));
  const gp_shape *dy = &sig->in[0]->shape, rows = gp_shape_drop_last(dy);
  const gp_shape column = {1, {gp_meta_width(sig->in[0])}};
  GP_TRY(gp_operand_shape(sig, GP_OP_rms_norm_dw, 1, dy, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_rms_norm_dw, 2, &rows, 0));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &column);
}

static gp_cost cost_dw(const gp_sig *sig) {
  return gp_cost_of(sig, 3 * (double)gp_meta_numel(sig->in[0]));
}

GP_REAL_KERNEL(run_dw, weight_gradient)

const gp_op_def gp_def_rms_norm_dw = {GP_OP_ROW(rms_norm_dw), .infer = infer_dw, .cost = cost_dw,
                                      .cpu = {.cut = gp_cut_columns, .run = run_dw}};
