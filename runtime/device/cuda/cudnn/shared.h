/* device/cuda/cudnn/shared.h - the plans of a process: made once for each GPU, number of
 * multiprocessors and graph, and used by all logical devices of that GPU.
 *
 * A plan takes about a second to make, and every pipeline, every part of a GPU would make its own.
 * Plans are made with a handle of their own, one a GPU, which stays: that of a device goes with
 * it. */
#ifndef GP_DEVICE_CUDA_CUDNN_SHARED_H
#define GP_DEVICE_CUDA_CUDNN_SHARED_H

#include <pthread.h>

#include "device/cuda/cudnn/cache.h"

/* An answer: a plan, or that there is none. */
typedef struct gp_cudnn_shared {
  gp_cudnn_key key;
  int ordinal;
  int32_t sm_count; /* of a part of a GPU; 0: all */
  gp_cudnn_plan plan;
  char why[300];           /* there is no plan, or none that runs */
  bool refused;            /* a run of it was: the next devices are not given it */
  pthread_mutex_t running; /* a plan's descriptors serve one thread at a time */
  int users;               /* devices that hold it */
  uint64_t used;           /* when it was last taken: the oldest goes first */
  struct gp_cudnn_shared *next;
} gp_cudnn_shared;

/* Find the answer to a request, or make it; the caller gives it back. Errors: GP_ENOMEM, and
 * GP_EDEVICE where the GPU is lost. Threads: any; who comes while a plan is made waits. */
gp_status gp_cudnn_shared_take(gp_gpu *gpu, const gp_cudnn_library *library,
                               const gp_cudnn_request *request, gp_cudnn_shared **taken);
void gp_cudnn_shared_give(gp_cudnn_shared *shared);
/* Remember that a run of it was refused. */
void gp_cudnn_shared_refuse(gp_cudnn_shared *shared, const char *why);

#endif
