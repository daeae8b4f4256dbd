/* ops/shape/copy.cu - x (strided, broadcast) -> the same elements, contiguous, on a GPU.
 *
 * Splitting and joining attention heads is mostly this. */
#include "ops/shape/boxes.cuh"

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_move(gpu, &call->op.out[0], &call->op.in[0]);
}

const gp_gpu_kernel gp_gpu_copy = {run, NULL};
