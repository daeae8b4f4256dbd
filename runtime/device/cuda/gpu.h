/* device/cuda/gpu.h - a logical device as the files of this plugin see it.
 *
 *   plugin.c     the entry point and the table
 *   machine.c    which GPUs there are, or why there is none
 *   gpu.c        open and close: streams, libraries' handles
 *   partition.c  parts of a GPU: green contexts
 *   memory.c     allocations
 *   copy.c       copies, peers
 *   event.c      events
 *   graph.c      captured work
 *   kernels.c    the table of kernels, from ops.def
 *   error.c      CUDA's errors as statuses
 *   gemm.c       products, by cuBLASLt
 *   cudnn.c      graphs of cuDNN
 *   paths.c      which path each kind of work takes, and why
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

/* What a stream was given last, as far as the next kernel needs to know (kernel/overlap.cu). */
typedef enum gp_gpu_last {
  GP_GPU_OTHER,   /* a copy, an event, a graph, or nothing */
  GP_GPU_LIBRARY, /* a call of a library, which ends with a kernel */
  GP_GPU_KERNEL   /* a kernel of ours */
} gp_gpu_last;

struct gp_gpu {
  gp_gpu_spec spec;
  gp_gpu_info info;
  cudaStream_t streams[GP_STREAMS];
  gp_gpu_math math;
  void *green;           /* CUgreenCtx of a part with SMs of its own; NULL */
  gp_stream now;         /* that ops are enqueued on: the compute stream, but within gp_cuda_run */
  void *gemm_workspace;  /* of products on the compute stream; NULL until the first */
  void *side_workspace;  /* likewise on the side stream; NULL until that is opened */
  gp_cudnn_cache *cudnn; /* NULL until the first graph */
  gp_noted_path *paths;  /* NULL until the first note */
  bool capturing;        /* the compute stream is being captured, and the side stream with it */
  gp_gpu_last last[GP_STREAMS];
  gp_gpu_last overlaps;  /* a kernel may begin early after this, and what stands below it;
                            GP_GPU_OTHER: after nothing */
  bool captures_overlap; /* in captured work too */
  bool spare;            /* what is prepared now is for a refusal: no report names it */
};

/* Where ops are enqueued now. */
static inline cudaStream_t gp_gpu_stream(const gp_gpu *gpu) { return gpu->streams[gpu->now]; }

/* That stream was given this; the next kernel asks. */
static inline void gp_gpu_gave(gp_gpu *gpu, gp_gpu_last what) { gpu->last[gpu->now] = what; }

extern gp_plugin_host gp_host; /* handed over by the core */

/* As in base/status.h, which this library does not link. */
gp_status gp_gpu_fail(gp_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* GP_OK for cudaSuccess; else a text "cuda:0: <doing>: <what CUDA says>". */
gp_status gp_gpu_check(const gp_gpu *gpu, cudaError_t error, const char *doing);

/* After a refusal of a library: leave no error of CUDA behind that the next launch would report.
 * Errors: GP_EDEVICE where it is one after which the GPU is lost. */
gp_status gp_gpu_refused(const gp_gpu *gpu, const char *doing);

/* Remember, for reports, how work of a kind (gp_work_path) is done on operands of a shape; why: why
 * a faster path was not taken, NULL or "" where this is the fastest. Where a path is settled
 * (prepare), not in every step. The same kind, shape and path again is counted; the why stays that
 * of the first. Threads: any. */
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
