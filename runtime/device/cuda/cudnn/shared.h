/* device/cuda/cudnn/shared.h - the plans of a process: made once for each GPU, number of
 * multiprocessors and graph, and used by all logical devices of that GPU.
 *
 * A plan takes about a second to make, and without this cache every pipeline and every part of a
 * GPU would make its own. Plans are made with one handle per GPU, which stays open, because a
 * device's own handle is closed with it. */
#ifndef GP_DEVICE_CUDA_CUDNN_SHARED_H
#define GP_DEVICE_CUDA_CUDNN_SHARED_H

#include <pthread.h>

#include "device/cuda/cudnn/cache.h"

/* An answer: a plan, or why there is none. */
typedef struct gp_cudnn_shared {
  gp_cudnn_key key;
  int ordinal;
  int32_t sm_count; /* multiprocessors of a part of a GPU; 0: all */
  gp_cudnn_plan plan;
  size_t workspace;        /* bytes */
  char why[300];           /* there is no plan, or all its engines were refused; else "" */
  char judge[80];          /* how its engine was chosen; "": in the library's order */
  pthread_mutex_t running; /* a plan's descriptors can serve one thread at a time */
  int users;               /* devices that hold it */
  uint64_t used;           /* when it was last taken: the oldest is dropped first */
  struct gp_cudnn_shared *next;
} gp_cudnn_shared;

/* What a device has of the library. */
typedef struct gp_cudnn_device {
  const gp_cudnn_library *library;
  cudnnHandle_t handle; /* enqueues on the device's stream: engines are timed there */
} gp_cudnn_device;

/* Find the answer to a request, or make it; the caller gives it back. Errors: GP_ENOMEM, and
 * GP_EDEVICE if the GPU is lost. Threads: any; a thread waits while another makes a plan. */
gp_status gp_cudnn_shared_take(gp_gpu *gpu, const gp_cudnn_device *device,
                               const gp_cudnn_request *request, gp_cudnn_shared **taken);
void gp_cudnn_shared_give(gp_cudnn_shared *shared);
/* Remember that runs of this plan were refused by every engine: later devices do not get it. */
void gp_cudnn_shared_refuse(gp_cudnn_shared *shared, const char *why);
/* Copy why the plan cannot be used; "": it can. */
void gp_cudnn_shared_why(gp_cudnn_shared *shared, char *why, size_t size);

#endif
