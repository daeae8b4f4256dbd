/* ops/loss/cross_entropy.c - negative log likelihood of class ids under a softmax, row by row.
 *
 * The loss stays one value a row: summing and the count of rows are the caller's, so that a
 * mini-batch in pieces gives the same result as a whole one. With label smoothing e a row costs (1
 * - e) nll(id) + e mean of nll over the classes; an ignored row costs 0 and has gradient 0. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/loss/targets.h"

/* The attributes and operands, read once a piece. */
typedef struct targets {
  gp_targets ids;
  int64_t classes;
  double smoothing;
} targets;

/* The ops of this file begin with the same attributes. */
static targets describe(const gp_call *call) {
  return (targets){.ids = gp_targets_of(call, call->attr->cross_entropy.ignore),
                   .classes = gp_meta_width(call->in[0].meta),
                   .smoothing = call->attr->cross_entropy.smoothing};
}

/* ---- forward ------------------------------------------------------------------------------- */

/* Return the shape of what the gradient needs of a row: see row_loss. */
static gp_shape stats_of(const gp_shape *logits) { return gp_shape_with_last(logits, 2); }

/* logits [.., V], ids [..] -> losses [..] and stats [.., 2]. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_cross_entropy, 0, 1));
  gp_shape rows = gp_shape_drop_last(&sig->in[0]->shape);
  GP_TRY(gp_operand_shape(sig, GP_OP_cross_entropy, 1, &rows, 0));
  const gp_dtype wide = gp_infer_wide(sig->in[0]->dtype);
  const gp_shape stats = stats_of(&sig->in[0]->shape);
  GP_TRY(gp_infer_out(sig, wide, &rows));
  return gp_infer_out(sig, wide, &stats);
}

/* Stats are kept instead of the softmax: two values a row instead of V. */
static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_first_output_only(v));
  if (!v->need[0] || v->dout[0] == GP_NONE) return GP_OK;
  const gp_attr_cross_entropy *a = &v->attr->cross_entropy;
  const gp_attrs attrs = {.cross_entropy_dx = {.ignore = a->ignore, .smoothing = a->smoothing}};
  return gp_build(v->builder, GP_OP_cross_entropy_dx, &attrs,
                  (gp_ref[]){v->in[0], v->in[1], v->out[1], v->dout[0]}, 4, &v->din[0]);
}

/* Count an exponential as ten operations, and three more with it. */
static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 13 * (double)gp_meta_numel(sig->in[0]));
}

/* The scratch holds one row: the exponentials, or logits that are not adjacent in memory. */
static size_t scratch(const gp_call *call) {
  return (size_t)gp_meta_width(call->in[0].meta) * gp_dtype_size(call->in[0].meta->dtype);
}

#define GP_REAL_SOURCE "ops/loss/cross_entropy.inc"
#include "ops/math/real.h"

static gp_status run(const gp_call *call, gp_span span) {
  return GP_BY_REAL(call->in[0].meta->dtype, row_losses)(call, span);
}

const gp_op_def gp_def_cross_entropy = {
    GP_OP_ROW(cross_entropy),
    .row_inputs = 3,
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .cpu = {.cut = gp_cut_whole_rows, .run = run, .scratch = scratch},
    .ids = gp_targets_role};

/* ---- gradient of the logits ---------------------------------------------------------------- */

/* Append the gradient of the logits, whose rows may be padded to `wide` columns. */
static gp_status infer_dlogits(gp_sig *sig, int64_t wide) {
  const int64_t classes = gp_meta_width(sig->in[0]);
  GP_TRY(gp_infer_wide_rows(wide, classes));
  const gp_shape out = gp_shape_with_last(&sig->in[0]->shape, wide ? wide : classes);
  return gp_infer_out(sig, sig->in[0]->dtype, &out);
}

/* logits, ids, stats, gradient of each row's loss -> gradient of the logits [.., V]. */
static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_cross_entropy_dx, 0, 1));
  gp_shape rows = gp_shape_drop_last(&sig->in[0]->shape);
  const gp_shape stats = stats_of(&sig->in[0]->shape);
  for (int i = 1; i < 4; i++)
    GP_TRY(gp_operand_shape(sig, GP_OP_cross_entropy_dx, i, i == 2 ? &stats : &rows, 0));
  return infer_dlogits(sig, sig->attr->cross_entropy_dx.wide);
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  return GP_BY_REAL(call->in[0].meta->dtype, row_gradients)(call, span);
}

const gp_op_def gp_def_cross_entropy_dx = {
    GP_OP_ROW(cross_entropy_dx),
    .row_inputs = 15,
    .infer = infer_dx,
    .cost = cost,
    .cpu = {.cut = gp_cut_whole_rows, .run = run_dx, .scratch = scratch},
    .ids = gp_targets_role};

/* ---- both ---------------------------------------------------------------------------------- */

/* logits, ids, gradient of each row's loss -> gradient of the logits [.., V], losses [..]. */
static gp_status infer_both(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_cross_entropy_both, 0, 1));
  gp_shape rows = gp_shape_drop_last(&sig->in[0]->shape);
  for (int i = 1; i < 3; i++) GP_TRY(gp_operand_shape(sig, GP_OP_cross_entropy_both, i, &rows, 0));
  GP_TRY(infer_dlogits(sig, sig->attr->cross_entropy_both.wide));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &rows);
}

static gp_cost cost_both(const gp_sig *sig) {
  return gp_cost_of(sig, 26 * (double)gp_meta_numel(sig->in[0]));
}

/* A row of exponentials, and one of logits that are not adjacent in memory. */
static size_t scratch_both(const gp_call *call) { return 2 * scratch(call); }

static gp_status run_both(const gp_call *call, gp_span span) {
  return GP_BY_REAL(call->in[0].meta->dtype, row_both)(call, span);
}

const gp_op_def gp_def_cross_entropy_both = {
    GP_OP_ROW(cross_entropy_both),
    .row_inputs = 7,
    .infer = infer_both,
    .cost = cost_both,
    .cpu = {.cut = gp_cut_whole_rows, .run = run_both, .scratch = scratch_both},
    .ids = gp_targets_role};

/* ---- count --------------------------------------------------------------------------------- */

/* Count the ids that are not ignored. The count depends on the targets alone, so it is known before
 * the forward pass: every micro-batch is scaled by the whole mini-batch's count. */
static gp_status infer_count(gp_sig *sig) { return gp_infer_out(sig, GP_I64, &(gp_shape){0}); }

static gp_status run_count(const gp_call *call, gp_span span) {
  (void)span;
  int64_t n = gp_meta_numel(call->in[0].meta), count = n;
  const gp_maybe ignore = call->attr->cross_entropy_count.ignore;
  if (ignore.given)
    for (int64_t i = 0; i < n; i++) count -= gp_id_at(&call->in[0], i) == ignore.value;
  *(int64_t *)call->out[0].data = count;
  return GP_OK;
}

const gp_op_def gp_def_cross_entropy_count = {GP_OP_ROW(cross_entropy_count), .infer = infer_count,
                                              .cost = gp_cost_copy,
                                              .cpu = {.cut = gp_cut_once, .run = run_count}};
