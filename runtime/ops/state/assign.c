/* ops/state/assign.c - slot, value -> slot = value, in the slot's own memory; out[0] is the slot.
 *
 * `forward` writes a buffer by it. The value may be broadcast to the slot; dtypes are equal. */
#include "base/status.h"
#include "ops/infer.h"
#include "ops/cut.h"
#include "ops/shape/boxes.h"

/* The slot may not grow: value and slot must broadcast to the slot's shape. */
static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_infer_broadcast(sig, &shape));
  if (!gp_shape_equal(&shape, &sig->in[0]->shape)) {
    char slot[GP_SHAPE_TEXT], value[GP_SHAPE_TEXT];
    return gp_fail(GP_ESHAPE, "a value of shape %s does not fit into %s",
                   gp_shape_print(&sig->in[1]->shape, value, sizeof value),
                   gp_shape_print(&sig->in[0]->shape, slot, sizeof slot));
  }
  sig->out[0] = *sig->in[0];
  sig->n_out = 1;
  return GP_OK;
}

/* Write only the span's rows of the slot. */
static gp_status run(const gp_call *call, gp_span span) {
  gp_copy_units(call, span, &call->in[1]);
  return GP_OK;
}

const gp_op_def gp_def_assign = {
    GP_OP_ROW(assign),
    .row_inputs = 3,
    .infer = infer,
    .cost = gp_cost_copy,
    .cpu = {.cut = gp_cut_rows, .run = run},
};
