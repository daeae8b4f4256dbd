/* ops/loss/nll.c - negative log likelihood of class ids, from logarithms of probabilities, by row.
 *
 * The loss stays one value a row: summing and the count of rows are the caller's, as with
 * cross_entropy. An ignored row costs 0 and has gradient 0. */
#include <string.h>

#include "ops/cut.h"
#include "ops/loss/targets.h"

/* ---- forward ------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  gp_shape rows;
  GP_TRY(gp_targets_infer(sig, GP_OP_nll, &rows));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &rows);
}

static gp_status vjp(gp_vjp *v) {
  if (!v->need[0]) return GP_OK;
  const gp_ref in[] = {v->in[0], v->in[1], v->dout[0]};
  return gp_build(v->builder, GP_OP_nll_dx, v->attr, in, 3, &v->din[0]);
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, (double)gp_meta_numel(&sig->out[0]));
}

/* Return element `i` of an operand of floats, strided or broadcast. */
static double element(const gp_arg *arg, int64_t i) {
  const int64_t at = gp_meta_offset(arg->meta, i);
  return arg->meta->dtype == GP_F32 ? (double)((const float *)arg->data)[at]
                                    : ((const double *)arg->data)[at];
}

static void put(const gp_arg *arg, int64_t i, double value) {
  if (arg->meta->dtype == GP_F32)
    ((float *)arg->data)[i] = (float)value;
  else
    ((double *)arg->data)[i] = value;
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_targets t = gp_targets_of(call, call->attr->nll.ignore);
  for (int64_t r = span.first; r < span.last; r++) {
    int64_t class;
    GP_TRY(gp_target_class(&t, r, &class));
    put(&call->out[0], r, class < 0 ? 0 : -element(&call->in[0], r * t.classes + class));
  }
  return GP_OK;
}

const gp_op_def gp_def_nll = {GP_OP_ROW(nll),        .row_inputs = 3,
                              .infer = infer,        .vjp = vjp,
                              .cost = cost,          .cpu = {.cut = gp_cut_whole_rows, .run = run},
                              .ids = gp_targets_role};

/* ---- gradient ------------------------------------------------------------------------------ */

static gp_status infer_dx(gp_sig *sig) {
  gp_shape rows;
  GP_TRY(gp_targets_infer(sig, GP_OP_nll_dx, &rows));
  GP_TRY(gp_operand_shape(sig, GP_OP_nll_dx, 2, &rows, 0));
  return gp_infer_out(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

/* Write zeros, and minus the gradient of the row's loss at its class. */
static gp_status run_dx(const gp_call *call, gp_span span) {
  const gp_targets t = gp_targets_of(call, call->attr->nll_dx.ignore);
  const size_t row = (size_t)t.classes * gp_dtype_size(call->out[0].meta->dtype);
  for (int64_t r = span.first; r < span.last; r++) {
    int64_t class;
    GP_TRY(gp_target_class(&t, r, &class));
    if (row > 0) memset((char *)call->out[0].data + (size_t)r * row, 0, row);
    if (class >= 0) put(&call->out[0], r * t.classes + class, -element(&call->in[2], r));
  }
  return GP_OK;
}

const gp_op_def gp_def_nll_dx = {GP_OP_ROW(nll_dx),
                                 .row_inputs = 7,
                                 .infer = infer_dx,
                                 .cost = cost,
                                 .cpu = {.cut = gp_cut_whole_rows, .run = run_dx},
                                 .ids = gp_targets_role};
