/* device/cuda/cudnn/cache.h - the plans of a device: made by prepare, found again by run. */
#ifndef GP_DEVICE_CUDA_CUDNN_CACHE_H
#define GP_DEVICE_CUDA_CUDNN_CACHE_H

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/cudnn/plan.h"

enum { GP_CUDNN_KEY = 48 };

/* All that a graph depends on, the kind of graph first; unused fields are 0. */
typedef struct gp_cudnn_key {
  int64_t field[GP_CUDNN_KEY];
} gp_cudnn_key;

/* What to plan: `describe` adds the operations of `what`. */
typedef struct gp_cudnn_request {
  gp_cudnn_key key;
  void (*describe)(gp_cudnn_graph *graph, const void *what);
  const void *what;
} gp_cudnn_request;

/* *plan receives a plan, or NULL where the library is missing or has no engine for the graph, and
 * then *why the reason (borrowed for the device's life): the answer is kept too. Errors:
 * GP_ENOMEM. */
gp_status gp_cudnn_prepare(gp_gpu *gpu, const gp_cudnn_request *request, gp_cudnn_plan **plan,
                           const char **why);
/* The plan that was prepared, or NULL. */
gp_cudnn_plan *gp_cudnn_find(gp_gpu *gpu, const gp_cudnn_key *key);
/* Enqueue on the compute stream. doing: for the text of an error. */
gp_status gp_cudnn_run(gp_gpu *gpu, gp_cudnn_plan *plan, const gp_cudnn_operand *operands,
                       int count, void *workspace, const char *doing);

#endif
