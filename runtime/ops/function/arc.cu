/* ops/function/arc.cu - angles of sines, cosines, tangents and points on a GPU; see arc.c. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(asin, asin(a))
GP_GPU_SLOPE(asin, a / sqrt((C(1) - b) * (C(1) + b)))

GP_GPU_UNARY(acos, acos(a))
GP_GPU_SLOPE(acos, -a / sqrt((C(1) - b) * (C(1) + b)))

GP_GPU_UNARY(atan, atan(a))
GP_GPU_SLOPE(atan, a / (C(1) + b * b))

struct angle {
  template <typename C> __device__ C operator()(C a, C b) const { return atan2(a, b); }
};

/* The part of the gradient that `mine` gets, one coordinate of the point. */
struct angle_dx {
  template <typename C> __device__ C operator()(C dy, C mine, C other) const {
    return dy * (other / (mine * mine + other * other));
  }
};

const gp_gpu_kernel gp_gpu_atan2 = {gp_map_float<2, angle>, NULL};
const gp_gpu_kernel gp_gpu_atan2_dx = {gp_map_float<3, angle_dx>, NULL};
