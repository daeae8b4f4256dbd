/* tests/cuda/cudart/cudart.h - a stand-in for the few functions of CUDA's runtime that the plugin
 * calls.
 *
 *   error.c    last errors, their names, failures on demand
 *   machine.c  the GPUs that it claims to have
 *   green.c    the driver's functions that split a GPU
 *   memory.c   memory of "devices", which is the host's; copies
 *   ipc.c      memory that other processes open
 *   stream.c   streams and events
 *   queue.c    work of the streams: it runs when it is given, or as late as possible
 *   graph.c    what was enqueued while a stream was captured, run when launched
 *
 * It is strict where CUDA is: it refuses the wrong current device, memory of another GPU, a handle
 * that was destroyed. Two things of a real GPU it does not show: memory that the host cannot read,
 * and, unless asked to, work that happens later. The environment:
 *
 *   GPIPE_TEST_GPUS=2             how many there are; "none": no driver either; "old": an old one
 *   GPIPE_TEST_GREEN=1            they can be split into parts with multiprocessors of their own
 *   GPIPE_TEST_GPU_MEMORY=BYTES   of each, 8 GiB unless said
 *   GPIPE_TEST_NOPEER=1           they do not reach each other
 *   GPIPE_TEST_BAD_PEER=1         they do, and copies arrive without their last byte
 *   GPIPE_TEST_IPC=1              other processes can open their memory
 *   GPIPE_TEST_CUDA_FAIL=NAME:N[+][:CODE],..   the N-th call of a function fails, with + every one
 *   from there on ("cudaLaunchKernel" for kernels)
 *   GPIPE_TEST_CUDA_SLOW=NAME:US  every call of a function begins with a pause of so many
 *   microseconds
 *   GPIPE_TEST_LAZY=1             work runs when the host waits for it, and no earlier (queue.c)
 *   GPIPE_TEST_REVERSE=1          kernels run their last block first (fibers.cpp)
 */
#ifndef GP_TESTS_CUDA_CUDART_H
#define GP_TESTS_CUDA_CUDART_H

#ifndef __cplusplus
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "../submit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gp_host_queue gp_host_queue;

/* What runs a test needs to know of a stream. */
struct CUstream_st {
  int device;
  cudaGraph_t captured; /* NULL while it is not captured */
  gp_host_queue *queue;
};

#ifndef __cplusplus
/* Work in order. Counted: a graph and what was instantiated from it share it. */
struct CUgraph_st {
  gp_host_work *first, **end;
  atomic_int uses;
  int device;
  bool spoilt; /* something was called that a capture forbids */
};
#endif

/* ---- error.c ------------------------------------------------------------------------------- */

/* Keep it as the thread's last error and return it. */
cudaError_t gp_cudart_set(cudaError_t error);
/* The code with which the environment wants this call to fail, after the pause; 0: none. */
int gp_cudart_wanted(const char *function);
/* The beginning of every function: the pause and the failure that the environment asks for, or
 * cudaSuccess. */
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

/* ---- green.c ------------------------------------------------------------------------------- */

/* The driver's function of that name; NULL: it has none. */
void *gp_cudart_driver(const char *name);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* The device whose memory holds all these bytes; -1: none, so the host's. */
int gp_cudart_owner(const void *memory, size_t bytes);

/* The allocation that holds an address, and its size; NULL: none does. */
void *gp_cudart_allocation(const void *memory, size_t *bytes);
/* The file that the address's allocation is; false: it is none. */
bool gp_cudart_file(const void *memory, int *file, size_t *bytes);
/* Take in what another process owns as memory of the current device; false: no memory. Forget it
 * again; returns its bytes, or 0. */
bool gp_cudart_adopt(void *memory, size_t bytes);
size_t gp_cudart_abandon(void *memory);

/* ---- ipc.c --------------------------------------------------------------------------------- */

bool gp_cudart_shares(void); /* can other processes open memory? */
/* Make memory that is a file; NULL: there is none. */
void *gp_cudart_map(size_t bytes, int *file);
void *gp_ipc_driver(const char *name); /* as gp_cudart_driver */

/* ---- queue.c ------------------------------------------------------------------------------- */

bool gp_queue_is_lazy(void);
gp_host_queue *gp_queue_new(void); /* NULL: no memory */
/* Its work is done first. */
void gp_queue_free(gp_host_queue *queue);
/* work: taken. Errors: of the work, where it runs at once. */
cudaError_t gp_queue_give(gp_host_queue *queue, gp_host_work *work);
/* Do all that it was given. Errors: of the first work that failed since the last call. */
cudaError_t gp_queue_finish(gp_host_queue *queue);
void gp_queue_finish_all(void);

/* What a queue had been given at some time; a zero one stands for nothing. */
typedef struct gp_queue_point {
  gp_host_queue *queue; /* counted */
  uint64_t count;
} gp_queue_point;

void gp_point_set(gp_queue_point *point, gp_host_queue *queue); /* to now; NULL: to nothing */
bool gp_point_is_reached(const gp_queue_point *point);
void gp_point_reach(const gp_queue_point *point);
/* What the queue is given from now on runs after that. Errors: no memory. */
cudaError_t gp_queue_wait(gp_host_queue *queue, const gp_queue_point *point);

/* ---- stream.c ------------------------------------------------------------------------------ */

/* A graph was launched, so its events are recorded anew. */
void gp_events_launched(cudaGraph_t graph, cudaStream_t stream);

/* ---- graph.c ------------------------------------------------------------------------------- */

/* The calling thread is capturing: calls that a capture forbids fail and spoil it. */
bool gp_cudart_is_capturing(void);
void gp_cudart_spoil(void);

#ifdef __cplusplus
}
#endif

#endif
