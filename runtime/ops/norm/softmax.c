/* ops/norm/softmax.c - softmax and log_softmax over the last dimension, and their gradients.
 *
 * They are row-wise. The largest value is subtracted first, so nothing overflows; entries of -inf
 * give 0, and a row of nothing but -inf gives NaN. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/infer.h"

enum { AHEAD = 4096 }; /* bytes between what is written and what is prefetched */

#define GP_REAL_SOURCE "ops/norm/softmax.inc"
#include "ops/math/real.h"

/* x [.., N] -> y like x; at least one dim, since a scalar has no row. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_softmax, 0, 1));
  return gp_infer_out(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

/* dy, y -> dx. Both gradients read the output: the input need not be kept. */
static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_softmax_dx, 0, 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_softmax_dx, 1, &sig->in[0]->shape, 0));
  return gp_infer_out(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

/* Count an exponential as ten operations. */
static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 13 * (double)gp_meta_numel(sig->in[0]));
}

static gp_cost cost_dx(const gp_sig *sig) {
  return gp_cost_of(sig, 4 * (double)gp_meta_numel(sig->in[0]));
}

/* ---- softmax ------------------------------------------------------------------------------- */

static gp_status vjp_softmax(gp_vjp *v) {
  if (v->dout[0] == GP_NONE) return GP_OK;
  return gp_vjp_op2(v, GP_OP_softmax_dx, v->dout[0], v->out[0], &v->din[0]);
}

GP_REAL_KERNEL(run_softmax, softmax)

GP_REAL_KERNEL(run_softmax_dx, softmax_dx)

const gp_op_def gp_def_softmax = {
    GP_OP_ROW(softmax), .row_inputs = 1, .infer = infer,
    .vjp = vjp_softmax, .cost = cost,    .cpu = {.cut = gp_cut_whole_rows, .run = run_softmax}};

const gp_op_def gp_def_softmax_dx = {GP_OP_ROW(softmax_dx), .row_inputs = 3, .infer = infer_dx,
                                     .cost = cost_dx,
                                     .cpu = {.cut = gp_cut_whole_rows, .run = run_softmax_dx}};

/* ---- log_softmax --------------------------------------------------------------------------- */

static gp_status vjp_log_softmax(gp_vjp *v) {
  if (v->dout[0] == GP_NONE) return GP_OK;
  return gp_vjp_op2(v, GP_OP_log_softmax_dx, v->dout[0], v->out[0], &v->din[0]);
}

GP_REAL_KERNEL(run_log_softmax, log_softmax)

GP_REAL_KERNEL(run_log_softmax_dx, log_softmax_dx)

const gp_op_def gp_def_log_softmax = {
    GP_OP_ROW(log_softmax), .row_inputs = 1,
    .infer = infer,         .vjp = vjp_log_softmax,
    .cost = cost,           .cpu = {.cut = gp_cut_whole_rows, .run = run_log_softmax}};

const gp_op_def gp_def_log_softmax_dx = {
    GP_OP_ROW(log_softmax_dx), .row_inputs = 3, .infer = infer_dx, .cost = cost,
    .cpu = {.cut = gp_cut_whole_rows, .run = run_log_softmax_dx}};
