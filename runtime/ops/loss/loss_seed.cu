/* ops/loss/loss_seed.cu - see loss_seed.c: the gradient that a backward pass starts from.
 *
 * The kernel reads the step block, in the GPU's memory: the host does not know what it will hold
 * when a captured step is replayed. */
#include "device/cuda/kernel/meta.cuh"

static __global__ void seed_kernel(const gp_step_block *step, bool counted, double value,
                                   gp_sink out) {
  gp_sink_put(out, 0, step->scale * (counted ? step->inverse_count : value));
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_attrs *attr = call->op.attr;
  return GP_LAUNCH(gpu, seed_kernel, 1, 1, 0, call->op.step, attr->loss_seed.counted,
                   attr->loss_seed.value, gp_sink_of(&call->op, 0));
}

const gp_gpu_kernel gp_gpu_loss_seed = {run, NULL};
