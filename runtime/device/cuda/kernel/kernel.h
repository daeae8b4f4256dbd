/* device/cuda/kernel/kernel.h - what a .cu beside an op's .c defines, and what it may use.
 *
 *   static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
 *     ...
 *     return GP_LAUNCH(gpu, kernel, grid, block, shared_bytes, arguments...);
 *   }
 *   const gp_gpu_kernel gp_gpu_exp = {run, NULL};
 *
 * A launcher computes the grid, launches on the compute stream through GP_LAUNCH
 * (scripts/check_kernels.lua) and returns its status: no allocation, no synchronisation, no other
 * stream. Sums have a fixed order that depends on the shapes only, never on the number of SMs; no
 * floating-point atomics. The same source is compiled a second time for the host (tests/cuda),
 * where GP_LAUNCH runs the threads of each block as fibers: so it has no inline PTX (tensor cores
 * are in mma.cuh), no dynamic parallelism, and shared memory only as `__shared__` arrays or
 * GP_SHARED. */
#ifndef GP_DEVICE_CUDA_KERNEL_H
#define GP_DEVICE_CUDA_KERNEL_H

#include "device/cuda/gpu.h"

/* One op on a GPU. Views need none: {NULL, NULL}. */
typedef struct gp_gpu_kernel {
  gp_status (*run)(gp_gpu *gpu, const gp_gpu_call *call);
  /* Optional: find plans of libraries, and the bytes of scratch; see gp_gpu_api.prepare. */
  gp_status (*prepare)(gp_gpu *gpu, const gp_call *call, size_t *scratch);
} gp_gpu_kernel;

#ifdef __cplusplus
extern "C" {
#endif

/* One `const gp_gpu_kernel gp_gpu_<op>` for each op: if one is forgotten, a link error names it. */
#define GP_OP(name, ...) extern const gp_gpu_kernel gp_gpu_##name;
#include "ops/rows.def"
#undef GP_OP

/* Return the status of this thread's last launch; the text names the kernel. */
gp_status gp_gpu_launched(const gp_gpu *gpu, const char *kernel);
/* Let a kernel use more than 48 KiB of shared memory, if it asks for that. */
gp_status gp_gpu_allow_shared(gp_gpu *gpu, const void *kernel, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
