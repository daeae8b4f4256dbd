/* device/cuda/gpu.h - a logical device as the files of this plugin see it.
 *
 *   plugin.c     the entry point and the table
 *   machine.c    which GPUs there are, or why there is none
 *   gpu.c        open and close: streams, libraries' handles
 *   partition.c  parts of a GPU: green contexts
 *   probe.c      whether streams take events and captures
 *   memory.c     allocations
 *   copy.c       copies
 *   call.c       functions of the host in the order of a stream
 *   ipc.c        memory that other processes write to
 *   peers.c      which GPUs copy to each other directly
 *   event.c      events
 *   graph.c      captured work
 *   kernels.c    the table of kernels, from ops.def
 *   error.c      CUDA's errors as statuses
 *   gemm.c       products, by cuBLASLt
 *   cudnn.c      graphs of cuDNN
 *   paths.c      which path each kind of work takes, and why
 *   nccl/        wires between processes, by NCCL
 *   libraries.c  the libraries' versions
 *   range.c      names for profilers
 */
#ifndef GP_DEVICE_CUDA_GPU_H
#define GP_DEVICE_CUDA_GPU_H

#include <cuda_runtime_api.h>

#include "device/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gp_cudnn_cache gp_cudnn_cache; /* cudnn.c */

typedef struct gp_noted_path gp_noted_path; /* paths.c */

struct gp_gpu {
  gp_gpu_spec spec;
  gp_gpu_info info;
  cudaStream_t streams[GP_STREAMS];
  gp_gpu_math math;
  void *green;           /* CUgreenCtx of a part with its own SMs, or NULL */
  void *gemm_workspace;  /* for products; NULL until the first */
  gp_cudnn_cache *cudnn; /* NULL until the first graph */
  gp_noted_path *paths;  /* NULL until the first note */
  bool capturing;        /* the compute stream is being captured */
  bool spoiled;          /* what is captured must not be kept: a library refused to join */
  bool spare;            /* prepare runs for a fallback now: no report mentions it */
};

/* The stream that ops use. */
static inline cudaStream_t gp_gpu_stream(const gp_gpu *gpu) {
  return gpu->streams[GP_STREAM_COMPUTE];
}

extern gp_plugin_host gp_host; /* handed over by the core */

/* Like gp_fail of base/status.h, which this library does not link. */
gp_status gp_gpu_fail(gp_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* GP_OK for cudaSuccess; else a text "cuda:0: <doing>: <what CUDA says>". */
gp_status gp_gpu_check(const gp_gpu *gpu, cudaError_t error, const char *doing);

/* After a library has refused, clear the CUDA error that the next launch would report. Errors:
 * GP_EDEVICE if the GPU is lost. */
gp_status gp_gpu_refused(const gp_gpu *gpu, const char *doing);

/* Remember, for reports, how work of a kind (gp_work_path) is done on operands of a shape. why: the
 * reason that a faster path was not taken; NULL or "" if this is the fastest. Call it when a path
 * is decided (prepare), not in every step. If kind, shape and path are known already, only their
 * count grows, and the first `why` stays. Threads: any. */
void gp_gpu_note_path(gp_gpu *gpu, const char *kind, const char *shape, const char *path,
                      const char *why);
const char *gp_gpu_dtype_name(gp_dtype dtype); /* "bf16" */

#define GP_GPU_TRY(call)                                                                           \
  do {                                                                                             \
    gp_status gp_gpu_try_ = (call);                                                                \
    if (gp_gpu_try_ != GP_OK) return gp_gpu_try_;                                                  \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
