/* ops/activation/piecewise.cu - leaky_relu elu relu6 hardsigmoid hardswish on a GPU, and their
 * gradients; see piecewise.c. NaN stays NaN, as on the CPU. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY_WITH(leaky_relu, slope, a > C(0) ? a : a * p)
GP_GPU_SLOPE_WITH(leaky_relu, slope, b > C(0) ? a : a * p)

GP_GPU_UNARY_WITH(elu, alpha, a <= C(0) ? p * expm1(a) : a)
GP_GPU_SLOPE_WITH(elu, alpha, b <= C(0) ? a * p * exp(b) : a)

/* x between 0 and 6. */
template <typename C> static __device__ inline C between_0_and_6(C x) {
  return x <= C(0) ? C(0) : x >= C(6) ? C(6) : x;
}

GP_GPU_UNARY(relu6, between_0_and_6(a))
GP_GPU_SLOPE(relu6, b <= C(0) || b >= C(6) ? C(0) : a)

GP_GPU_UNARY(hardsigmoid, between_0_and_6(a + C(3)) / C(6))
GP_GPU_SLOPE(hardsigmoid, b > C(-3) && b < C(3) ? a * (C(1) / C(6)) : C(0))

GP_GPU_UNARY(hardswish, a <= C(-3) ? C(0) : a >= C(3) ? a : a * (a + C(3)) * (C(1) / C(6)))
GP_GPU_SLOPE(hardswish, a *(b <= C(-3) ? C(0) : b >= C(3) ? C(1) : b * (C(1) / C(3)) + C(0.5)))
