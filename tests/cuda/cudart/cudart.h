/* tests/cuda/cudart/cudart.h - a stand-in for the few functions of CUDA's runtime that the plugin
 * calls.
 *
 *   error.c    last errors, their names, failures on demand
 *   machine.c  GPUs that are said to be there
 *   memory.c   memory of "devices", which is the host's; copies
 *   stream.c   streams and events: what is enqueued has happened when the call returns
 *   graph.c    what was enqueued while a stream was captured, run when launched
 *
 * Strict where CUDA is: the wrong current device, memory of another GPU, a handle that was
 * destroyed. What a real GPU adds (work that happens later, memory that the host cannot read) it
 * does not show. The environment:
 *
 *   GPIPE_TEST_GPUS=2             how many there are; "none": no driver either
 *   GPIPE_TEST_GPU_MEMORY=BYTES   of each, 8 GiB unless said
 *   GPIPE_TEST_NOPEER=1           they do not reach each other
 *   GPIPE_TEST_CUDA_FAIL=NAME:N[:CODE]   the N-th call of a function fails ("cudaLaunchKernel" for
 *   kernels) GPIPE_TEST_REVERSE=1          kernels run their last block first (fibers.cpp)
 */
#ifndef GP_TESTS_CUDA_CUDART_H
#define GP_TESTS_CUDA_CUDART_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "../submit.h"

/* What runs a test needs to know of a stream. */
struct CUstream_st {
  int device;
  cudaGraph_t captured; /* NULL while it is not captured */
};

/* Work in order. Counted: a graph and what was instantiated from it share it. */
struct CUgraph_st {
  gp_host_work *first, **end;
  int uses, device;
  bool spoilt; /* something was called that a capture forbids */
};

/* ---- error.c ------------------------------------------------------------------------------- */

/* Keep it as the thread's last error and return it. */
cudaError_t gp_cudart_set(cudaError_t error);
/* The beginning of every function: the failure that the environment asks for, or cudaSuccess. */
cudaError_t gp_cudart_enter(const char *function);

#define GP_CUDART_ENTER()                                                                          \
  do {                                                                                             \
    cudaError_t gp_enter_ = gp_cudart_enter(__func__);                                             \
    if (gp_enter_ != cudaSuccess) return gp_enter_;                                                \
  } while (0)

/* ---- machine.c ----------------------------------------------------------------------------- */

int gp_cudart_device(void);                                /* current one of the thread */
size_t gp_cudart_capacity(void);                           /* bytes of memory of a GPU */
bool gp_cudart_allowed(const void *kernel, size_t shared); /* dynamic shared memory of this size */

/* ---- memory.c ------------------------------------------------------------------------------ */

/* The device whose memory holds all these bytes; -1: none, so the host's. */
int gp_cudart_owner(const void *memory, size_t bytes);

/* ---- graph.c ------------------------------------------------------------------------------- */

/* The calling thread is capturing: calls that a capture forbids fail and spoil it. */
bool gp_cudart_is_capturing(void);
void gp_cudart_spoil(void);

#endif
