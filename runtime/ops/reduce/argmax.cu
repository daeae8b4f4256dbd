/* ops/reduce/argmax.cu - see argmax.c and extreme.cuh: where the largest elements along a dim
 * are. */
#include "ops/reduce/extreme.cuh"

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_search_run(gpu, &call->op, NULL, call->op.out[0].data);
}

const gp_gpu_kernel gp_gpu_argmax = {run, NULL};
