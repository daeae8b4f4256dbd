/* ops/state/assign.cu - slot, value -> slot = value, on a GPU; out[0] is the slot.
 *
 * The value may be broadcast to the slot, and the slot need not be contiguous. */
#include "ops/shape/boxes.cuh"

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_move(gpu, &call->op.out[0], &call->op.in[1]);
}

const gp_gpu_kernel gp_gpu_assign = {run, NULL};
