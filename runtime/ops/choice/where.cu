/* ops/choice/where.cu - c ? a : b on a GPU, for a and b of any one dtype.
 *
 * It only moves bits, so there is a kernel for each size of an element, not for each dtype. */
#include "ops/math/bits.cuh"
#include "ops/elementwise/map.cuh"

struct choose {
  template <typename T> __device__ T operator()(uint8_t c, T a, T b) const { return c ? a : b; }
};

template <typename T> static gp_status choose_as(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_map<T, uint8_t, T, T>(gpu, choose(), &call->op.out[0], call->op.in);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_SIZE(call->op.out[0].meta->dtype, return choose_as<T>(gpu, call))
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_where = {run, NULL};
