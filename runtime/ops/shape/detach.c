/* ops/shape/detach.c - the same elements, through which no gradient flows; a view of any dtype.
 *
 * It serves straight-through estimators, and targets that are taken as given. Eagerly a tensor
 * without a history does that; a trace needs a node at which gradients end. */
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  return gp_infer_view(sig, &sig->in[0]->shape, sig->in[0]->stride);
}

const gp_op_def gp_def_detach = {
    GP_OP_ROW(detach),
    .infer = infer,
    .cost = gp_cost_none,
};
