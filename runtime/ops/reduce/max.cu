/* ops/reduce/max.cu - see max.c and extreme.cuh: the largest elements along a dim and where they
 * are. */
#include "ops/reduce/extreme.cuh"

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_search_run(gpu, &call->op, call->op.out[0].data, call->op.out[1].data);
}

const gp_gpu_kernel gp_gpu_max = {run, NULL};
