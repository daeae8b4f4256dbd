/* ops/activation/hardswish.cu - x -> x min(max(x + 3, 0), 6) / 6 on a GPU, and its gradient. */
#include "ops/elementwise/map.cuh"

/* NaN stays NaN, as on the CPU. */
struct hardswish {
  template <typename C> __device__ C operator()(C x) const {
    return x <= C(-3) ? C(0) : x >= C(3) ? x : x * (x + C(3)) * (C(1) / C(6));
  }
};

struct hardswish_dx {
  template <typename C> __device__ C operator()(C dy, C x) const {
    return dy * (x <= C(-3) ? C(0) : x >= C(3) ? C(1) : x * (C(1) / C(3)) + C(0.5));
  }
};

const gp_gpu_kernel gp_gpu_hardswish = {gp_map_float<1, hardswish>, NULL};
const gp_gpu_kernel gp_gpu_hardswish_dx = {gp_map_float<2, hardswish_dx>, NULL};
