/* tests/cuda/on_host.h - CUDA's language for the host's compiler: what device.cuh includes instead
 * of CUDA's.
 *
 * Only tests use it: every .cu of runtime/ is compiled a second time with it, so that a machine
 * without a GPU runs each kernel, sanitizers included. It provides what our kernels may use and no
 * more: what is missing here (atomics on floats, cooperative groups, textures) does not compile,
 * which is how the rules are kept. */
#ifndef GP_TESTS_CUDA_ON_HOST_H
#define GP_TESTS_CUDA_ON_HOST_H

#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <cuda_bf16.h> /* the toolkit's own headers work on the host */
#include <cuda_fp16.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fibers.h"

/* A thread of the host runs one block at a time, so its thread_local memory is shared by the block.
 * It begins with what the previous block left: as on a GPU, its first contents are undefined. */
#undef __shared__
#define __shared__ static thread_local

/* The compiler's hints about registers mean nothing here. */
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __maxnreg__
#define __maxnreg__(...)

#define threadIdx (gp_host_now->thread)
#define blockIdx  (gp_host_now->block)
#define blockDim  (gp_host_now->block_size)
#define gridDim   (gp_host_now->grid_size)
constexpr int warpSize = 32;

/* These are the macros of device.cuh for the host. */
#define GP_CALLED          inline
#define GP_SHARED(T, name) T *name = reinterpret_cast<T *>(gp_host_now->shared)

#include "on_host/arithmetic.h"
#include "on_host/launch.h"
#include "on_host/memory.h"
#include "on_host/warp.h"

#endif
