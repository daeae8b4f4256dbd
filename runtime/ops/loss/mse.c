/* ops/loss/mse.c - the sum of squared differences, and its gradient.
 *
 * The sum is one unit of work: it adds all elements in the fixed order of 64 lanes. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/infer.h"

#define GP_REAL_SOURCE "ops/loss/mse.inc"
#include "ops/math/real.h"

/* Input and target have one shape, without broadcasting: a [N] against [N, 1] is nearly always a
 * mistake. */
static gp_status check(const gp_sig *sig) {
  return gp_operand_shape(sig, GP_OP_mse_dx, 1, &sig->in[0]->shape, 0);
}

/* ---- forward ------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  GP_TRY(check(sig));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &(gp_shape){0});
}

/* The gradient of sum (a - b)^2 for a is 2 (a - b); for b it is the same with the
 * operands exchanged. */
static gp_status vjp(gp_vjp *v) {
  gp_ref a = v->in[0], b = v->in[1], dsum = v->dout[0];
  if (dsum == GP_NONE) return GP_OK;
  if (v->need[0])
    GP_TRY(gp_build(v->builder, GP_OP_mse_dx, v->attr, (gp_ref[]){a, b, dsum}, 3, &v->din[0]));
  if (v->need[1])
    GP_TRY(gp_build(v->builder, GP_OP_mse_dx, v->attr, (gp_ref[]){b, a, dsum}, 3, &v->din[1]));
  return GP_OK;
}

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 3 * (double)gp_meta_numel(sig->in[0]));
}

static gp_status run(const gp_call *call, gp_span span) {
  (void)span;
  GP_BY_REAL(call->in[0].meta->dtype, sum_squares)(call);
  return GP_OK;
}

const gp_op_def gp_def_mse = {GP_OP_ROW(mse), .infer = infer, .vjp = vjp, .cost = cost,
                              .cpu = {.cut = gp_cut_once, .run = run}};

/* ---- gradient ------------------------------------------------------------------------------ */

static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(check(sig));
  GP_TRY(gp_operand_shape(sig, GP_OP_mse_dx, 2, &(gp_shape){0}, -1));
  return gp_infer_out(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

GP_REAL_KERNEL(run_dx, differences)

const gp_op_def gp_def_mse_dx = {GP_OP_ROW(mse_dx), .row_inputs = 3, .infer = infer_dx,
                                 .cost = cost, .cpu = {.cut = gp_cut_rows, .run = run_dx}};
