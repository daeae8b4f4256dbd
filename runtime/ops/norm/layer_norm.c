/* ops/norm/layer_norm.c - y = (x - mean) * rstd * w + b over the last dimension, and its gradients.
 *
 * Mean and variance take two passes over a row that is in the cache: exact, and in the fixed lane
 * order. A row whose sum or squares overflow is scaled down first, so that every finite row is
 * normalised (gradients need that its differences do not overflow). dx is row-wise; dw is cut by
 * columns, so the sum over rows keeps one order whatever the number of threads. The gradient of b
 * is sum_rows_dw. */
#include <string.h>

#include "base/numbers/half.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/norm/parts.h"

/* Factors for rows whose squares overflow: after them any squares can be added up, and numbers that
 * they turn into 0 do not count beside such squares. */
static const float shrink_f32 = 0x1p-96f;
static const double shrink_f64 = 0x1p-600;

#define GP_REAL_SOURCE "ops/norm/layer_norm.inc"
#include "ops/math/real.h"

/* ---- forward ------------------------------------------------------------------------------- */

/* x [.., C], w [C], b [C] -> y [.., C], mean [..], rstd [..]; the gradient reads mean and rstd. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_layer_norm, 0, 1));
  gp_shape column = {1, {gp_meta_width(sig->in[0])}};
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm, 1, &column, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm, 2, &column, 0));
  gp_dtype dtype = gp_infer_wide(sig->in[0]->dtype);
  gp_shape rows = gp_shape_drop_last(&sig->in[0]->shape);
  GP_TRY(gp_infer_like(sig, 0));
  GP_TRY(gp_infer_out(sig, dtype, &rows));
  return gp_infer_out(sig, dtype, &rows);
}

/* Three nodes, so that dw and db fall into W and dx into I. */
static gp_status vjp(gp_vjp *v) {
  const gp_attrs none = {0};
  GP_TRY(gp_vjp_first_output_only(v));
  gp_ref dy = v->dout[0], x = v->in[0], w = v->in[1], mean = v->out[1], rstd = v->out[2];
  if (dy == GP_NONE) return GP_OK;
  if (v->need[0])
    GP_TRY(gp_build(v->builder, GP_OP_layer_norm_dx, &none, (gp_ref[]){dy, x, w, mean, rstd}, 5,
                    &v->din[0]));
  if (v->need[1])
    GP_TRY(gp_build(v->builder, GP_OP_layer_norm_dw, &none, (gp_ref[]){dy, x, mean, rstd}, 4,
                    &v->din[1]));
  return v->need[2] ? gp_vjp_op1(v, GP_OP_sum_rows_dw, dy, &v->din[2]) : GP_OK;
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 8 * (double)gp_meta_numel(sig->in[0]));
}

GP_REAL_KERNEL(run, normalise)

const gp_op_def gp_def_layer_norm = {
    GP_OP_ROW(layer_norm), .row_inputs = 1,
    .infer = infer,        .vjp = vjp,
    .cost = cost,          .cpu = {.cut = gp_cut_whole_rows, .run = run}};

/* ---- gradient of the input ----------------------------------------------------------------- */

/* dy [.., C], x [.., C], w [C], mean [..], rstd [..], optional a [.., C] -> dx [.., C], plus a: the
 * gradient that bypasses the layer (graph/fuse.c). */
static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_layer_norm_dx, 0, 1));
  const gp_shape *dy = &sig->in[0]->shape;
  gp_shape column = {1, {gp_meta_width(sig->in[0])}}, rows = gp_shape_drop_last(dy);
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dx, 1, dy, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dx, 2, &column, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dx, 3, &rows, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dx, 4, &rows, 0));
  if (sig->n_in == 6) GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dx, 5, dy, 0));
  return gp_infer_out(sig, sig->in[0]->dtype, dy);
}

static gp_cost cost_dx(const gp_sig *sig) {
  return gp_cost_of(sig, 11 * (double)gp_meta_numel(sig->in[0]));
}

GP_REAL_KERNEL(run_dx, input_gradient)

const gp_op_def gp_def_layer_norm_dx = {GP_OP_ROW(layer_norm_dx), .row_inputs = 1 | 2 | 8 | 16 | 32,
                                        .infer = infer_dx, .cost = cost_dx,
                                        .cpu = {.cut = gp_cut_whole_rows, .run = run_dx}};

/* ---- gradient of the weight ---------------------------------------------------------------- */

/* dy [.., C], x [.., C], mean [..], rstd [..] -> dw [C]. */
static gp_status infer_dw(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_layer_norm_dw, 0, 1));
  const gp_shape *dy = &sig->in[0]->shape;
  gp_shape column = {1, {gp_meta_width(sig->in[0])}}, rows = gp_shape_drop_last(dy);
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dw, 1, dy, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dw, 2, &rows, 0));
  GP_TRY(gp_operand_shape(sig, GP_OP_layer_norm_dw, 3, &rows, 0));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &column);
}

static gp_cost cost_dw(const gp_sig *sig) {
  return gp_cost_of(sig, 4 * (double)gp_meta_numel(sig->in[0]));
}

/* Add dw[j] += dy h over rows of halves, in the order of weight_gradient. */
#define HALF_WEIGHT_GRADIENT(half)                                                                 \
  static void weight_gradient_##half(const gp_call *call, gp_span span) {                          \
    const int64_t c = gp_meta_width(call->in[0].meta), rows = gp_meta_rows(call->in[0].meta);      \
    const float *means = call->in[2].data, *rstds = call->in[3].data;                              \
    const uint16_t *dy = (const uint16_t *)call->in[0].data + span.first;                          \
    const uint16_t *x = (const uint16_t *)call->in[1].data + span.first;                           \
    float *restrict dw = (float *)call->out[0].data + span.first;                                  \
    const int64_t width = span.last - span.first;                                                  \
    if (!call->accumulate) memset(dw, 0, (size_t)width * sizeof *dw);                              \
    for (int64_t r = 0; r < rows; r++, dy += c, x += c) {                                          \
      const float mean = means[r], rstd = rstds[r];                                                \
      for (int64_t j = 0; j < width; j++)                                                          \
        dw[j] += gp_##half##_widen(dy[j]) * ((gp_##half##_widen(x[j]) - mean) * rstd);             \
    }                                                                                              \
  }
HALF_WEIGHT_GRADIENT(bf16)
HALF_WEIGHT_GRADIENT(f16)

static gp_status run_dw(const gp_call *call, gp_span span) {
  static void (*const gradients[GP_DTYPE_COUNT])(const gp_call *,
                                                 gp_span) = {[GP_F32] = weight_gradient_f32,
                                                             [GP_F64] = weight_gradient_f64,
                                                             [GP_BF16] = weight_gradient_bf16,
                                                             [GP_F16] = weight_gradient_f16};
  gradients[call->in[0].meta->dtype](call, span);
  return GP_OK;
}

const gp_op_def gp_def_layer_norm_dw = {
    GP_OP_ROW(layer_norm_dw), .infer = infer_dw, .cost = cost_dw,
    .cpu = {.cut = gp_cut_columns, .run = run_dw, .halves = GP_ALL_HALVES}};

/* ---- gradients of weight and bias ------------------------------------------------------------ */

/* dy, x, mean, rstd as above -> dw [C], db [C]: dy is read once for both (graph/fuse.c). */
static gp_status infer_bias_dw(gp_sig *sig) {
  GP_TRY(infer_dw(sig));
  sig->out[sig->n_out++] = sig->out[0];
  return GP_OK;
}

static gp_cost cost_bias_dw(const gp_sig *sig) {
  return gp_cost_of(sig, 5 * (double)gp_meta_numel(sig->in[0]));
}

/* Sum both over the columns of the span, while they are in the cache. f32 and f64 go row by row for
 * both, unless one parameter is weight and bias: its sum has the weight's rows first. */
static gp_status run_bias_dw(const gp_call *call, gp_span span) {
  const gp_dtype dtype = call->in[0].meta->dtype;
  const bool apart = call->out[0].data != call->out[1].data;
  if (apart && (dtype == GP_F32 || dtype == GP_F64)) {
    GP_BY_REAL(dtype, column_gradients)(call, span);
    return GP_OK;
  }
  gp_call weight = *call, bias = *call;
  weight.n_out = 1;
  bias.n_in = bias.n_out = 1, bias.out[0] = call->out[1];
  GP_TRY(run_dw(&weight, span));
  return gp_def_sum_rows_dw.cpu.run(&bias, span);
}

const gp_op_def gp_def_layer_norm_bias_dw = {
    GP_OP_ROW(layer_norm_bias_dw), .infer = infer_bias_dw, .cost = cost_bias_dw,
    .cpu = {.cut = gp_cut_columns, .run = run_bias_dw, .halves = GP_ALL_HALVES}};

/* ---- all gradients, in one pass over dy and x ---------------------------------------------- */

/* dy, x, w, mean, rstd, optional a as for layer_norm_dx -> dx [.., C], parts [2, P, C]. */
static gp_status infer_parts(gp_sig *sig) {
  GP_TRY(infer_dx(sig));
  const gp_shape parts = {3,
                          {2, gp_norm_parts(gp_meta_rows(sig->in[0])), gp_meta_width(sig->in[0])}};
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &parts);
}

static gp_cost cost_parts(const gp_sig *sig) {
  return gp_cost_of(sig, 16 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut_parts(const gp_call *call) {
  return (gp_cut){.units = gp_norm_parts(gp_meta_rows(call->in[0].meta)), .grain = 1};
}

GP_REAL_KERNEL(run_parts, part_gradients)

const gp_op_def gp_def_layer_norm_parts_dx = {GP_OP_ROW(layer_norm_parts_dx), .infer = infer_parts,
                                              .cost = cost_parts,
                                              .cpu = {.cut = cut_parts, .run = run_parts}};

/* parts -> dw [C], db [C]. */
static gp_status infer_join(gp_sig *sig) {
  const gp_shape *parts = &sig->in[0]->shape;
  if (parts->rank != 3 || parts->dim[0] != 2)
    return gp_fail(GP_ESHAPE, "parts is %s, expected 2 lists of rows",
                   gp_shape_print(parts, (char[64]){0}, 64));
  const gp_shape column = {1, {parts->dim[2]}};
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &column));
  return gp_infer_out(sig, sig->in[0]->dtype, &column);
}

static gp_cost cost_join(const gp_sig *sig) {
  return gp_cost_of(sig, (double)gp_meta_numel(sig->in[0]));
}

GP_REAL_KERNEL(run_join, join_parts)

const gp_op_def gp_def_layer_norm_parts_dw = {GP_OP_ROW(layer_norm_parts_dw), .infer = infer_join,
                                              .cost = cost_join,
                                              .cpu = {.cut = gp_cut_columns, .run = run_join}};
