/* device/cuda/kernel/device.cuh - what kernels share: launching, element types, 16-byte accesses.
 *
 * Half-precision elements are stored as halves and computed in f32. Launches are written in one
 * place, so that the same kernels can be compiled for the host (tests/cuda). */
#ifndef GP_DEVICE_CUDA_DEVICE_CUH
#define GP_DEVICE_CUDA_DEVICE_CUH

#ifdef GP_CUDA_ON_HOST
#include "on_host.h" /* tests/cuda: threadIdx and so on, GP_LAUNCH, GP_SHARED */
#else
#include <cuda_runtime.h>
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device/cuda/kernel/kernel.h"

/* ---- launching ----------------------------------------------------------------------------- */

#ifndef GP_CUDA_ON_HOST
template <typename T> struct gp_launch_given { typedef T type; };

/* Only the kernel determines the types of its parameters; arguments are converted as in a call. */
template <typename... P>
static inline void gp_launch(const gp_gpu *gpu, void (*kernel)(P...), dim3 grid, dim3 block,
                             size_t shared, typename gp_launch_given<P>::type... arguments) {
  void *pointers[] = {&arguments...};
  (void)cudaLaunchKernel((const void *)kernel, grid, block, pointers, shared,
                         gp_gpu_stream(gpu)); /* gp_gpu_launched asks */
}

/* GP_LAUNCH(gpu, kernel, grid, block, shared bytes, arguments...) launches on the compute
 * stream, and returns a gp_status. Put a kernel with two template arguments in parentheses. */
#define GP_LAUNCH(gpu, kernel, grid, block, shared, ...)                                           \
  ([&]() -> gp_status {                                                                            \
    auto *gp_kernel = kernel;                                                                      \
    GP_GPU_TRY(gp_gpu_allow_shared(gpu, (const void *)gp_kernel, shared));                         \
    gp_launch(gpu, gp_kernel, grid, block, shared, __VA_ARGS__);                                   \
    return gp_gpu_launched(gpu, #kernel);                                                          \
  }())

/* A function of a kernel that is called and not copied into its callers. */
#define GP_CALLED inline __device__ __noinline__

/* Shared memory whose size the launch sets: `T *name`, aligned to 16 bytes. */
#define GP_SHARED(T, name)                                                                         \
  extern __shared__ __align__(16) unsigned char gp_shared_bytes[];                                 \
  T *name = reinterpret_cast<T *>(gp_shared_bytes)
#endif

/* Blocks of `block` threads for n units of work: at least one, at most what a grid-stride loop
 * needs to fill the largest GPU several times. Results never depend on it. */
static inline unsigned gp_blocks(int64_t n, int block) {
  const int64_t most = 1 << 14, blocks = (n + block - 1) / block;
  return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* ---- element types ------------------------------------------------------------------------- */

typedef __nv_bfloat16 gp_bf16;
typedef __half gp_f16;

/* The type in which elements of type T are computed. */
template <typename T> struct gp_compute_of { typedef float type; };
template <> struct gp_compute_of<double> { typedef double type; };
template <typename T> using gp_compute = typename gp_compute_of<T>::type;

static __device__ inline float gp_load(float x) { return x; }
static __device__ inline double gp_load(double x) { return x; }
static __device__ inline float gp_load(gp_bf16 x) { return __bfloat162float(x); }
static __device__ inline float gp_load(gp_f16 x) { return __half2float(x); }

/* Round to nearest even. */
template <typename T> static __device__ inline T gp_store(gp_compute<T> x);
template <> __device__ inline float gp_store<float>(float x) { return x; }
template <> __device__ inline double gp_store<double>(double x) { return x; }
template <> __device__ inline gp_bf16 gp_store<gp_bf16>(float x) { return __float2bfloat16_rn(x); }
template <> __device__ inline gp_f16 gp_store<gp_f16>(float x) { return __float2half_rn(x); }

/* Run the statement with T as the C type of a float dtype. */
/* clang-format off */
#define GP_BY_FLOAT(dtype, statement)                                                              \
  switch (dtype) {                                                                                 \
  case GP_F32: { typedef float T; statement; } break;                                              \
  case GP_F64: { typedef double T; statement; } break;                                             \
  case GP_BF16: { typedef gp_bf16 T; statement; } break;                                           \
  default: { typedef gp_f16 T; statement; } break;                                                 \
  }
/* clang-format on */

/* ---- 16 bytes at a time -------------------------------------------------------------------- */

/* The elements that one access moves. */
template <typename T> struct alignas(16) gp_pack {
  static const int count = 16 / sizeof(T);
  T at[count];
};

/* Can p be accessed in packs? */
static inline bool gp_is_packed(const void *p) { return ((uintptr_t)p & 15) == 0; }

#endif
