/* ops/shape/copy.c - x (strided, broadcast) -> the same elements, contiguous; any dtype.
 *
 * Eager ops and traces put it in front of ops that read contiguous values only; a script's clone()
 * and contiguous() call it too. */
#include "base/status.h"
#include "ops/infer.h"
#include "ops/cut.h"
#include "ops/shape/boxes.h"

static gp_status infer(gp_sig *sig) { return gp_infer_like(sig, 0); }

/* dx = dy: the elements are the same. */
static gp_status vjp(gp_vjp *v) {
  v->din[0] = v->dout[0];
  return GP_OK;
}

const gp_op_def gp_def_copy = {
    GP_OP_ROW(copy), .row_inputs = 1,      .infer = infer,
    .vjp = vjp,      .cost = gp_cost_copy, .cpu = {.cut = gp_copy_cut, .run = gp_copy_run},
};
