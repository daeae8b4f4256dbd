/* ops/arithmetic/quotient.cu - floor_divide, remainder and fmod on a GPU; see quotient.c. */
#include "ops/elementwise/map.cuh"

/* The remainder of a division, with the sign of a. */
struct left {
  __device__ float operator()(float a, float b) const { return fmodf(a, b); }
  __device__ double operator()(double a, double b) const { return fmod(a, b); }
  __device__ int64_t operator()(int64_t a, int64_t b) const {
    return b == 0 || b == -1 ? 0 : a % b;
  }
  __device__ int32_t operator()(int32_t a, int32_t b) const {
    return b == 0 || b == -1 ? 0 : a % b;
  }
};

struct remain {
  template <typename C> __device__ C operator()(C a, C b) const {
    const C r = left()(a, b);
    return r != C(0) && (r < C(0)) != (b < C(0)) ? r + b : r;
  }
};

struct floored {
  template <typename C> __device__ C real(C a, C b) const {
    if (b == C(0)) return a / b;
    const C rest = left()(a, b);
    C whole = (a - rest) / b;
    if (rest != C(0) && (rest < C(0)) != (b < C(0))) whole -= C(1);
    if (whole == C(0)) return copysign(C(0), a / b);
    const C below = floor(whole);
    return whole - below > C(0.5) ? below + C(1) : below;
  }
  template <typename C> __device__ C whole(C a, C b) const {
    if (b == 0) return 0;
    if (b == -1) return C(0 - uint64_t(a));
    return a / b - C(a % b != 0 && (a < 0) != (b < 0));
  }
  __device__ float operator()(float a, float b) const { return real(a, b); }
  __device__ double operator()(double a, double b) const { return real(a, b); }
  __device__ int64_t operator()(int64_t a, int64_t b) const { return whole(a, b); }
  __device__ int32_t operator()(int32_t a, int32_t b) const { return whole(a, b); }
};

const gp_gpu_kernel gp_gpu_floor_divide = {gp_map_signed<2, floored>, NULL};
const gp_gpu_kernel gp_gpu_remainder = {gp_map_signed<2, remain>, NULL};
const gp_gpu_kernel gp_gpu_fmod = {gp_map_signed<2, left>, NULL};
