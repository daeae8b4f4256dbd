/* device/cuda/cudnn/cache.h - the plans that a device uses: found or made by prepare, found again
 * by run. */
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
  gp_cudnn_limits limits;
} gp_cudnn_request;

typedef struct gp_cudnn_answer {
  const char *why;  /* NULL: there is a plan; else why there is none, for the device's life */
  size_t workspace; /* bytes */
} gp_cudnn_answer;

/* Find the plan, or make it. A library that is missing or refuses is an answer, and kept. Errors:
 * GP_ENOMEM; GP_EDEVICE where the GPU is lost. */
gp_status gp_cudnn_prepare(gp_gpu *gpu, const gp_cudnn_request *request, gp_cudnn_answer *answer);
/* Was a plan prepared, and never refused to run? */
bool gp_cudnn_has(const gp_gpu *gpu, const gp_cudnn_key *key);

typedef struct gp_cudnn_work {
  const gp_cudnn_operand *operands;
  int count;
  void *workspace;
  const char *doing; /* for the text of an error */
} gp_cudnn_work;

/* Enqueue the plan of a key, which there is, on the compute stream. *why receives NULL, or why the
 * library refused: nobody gets the plan any more then, and what it writes is undefined. Errors:
 * GP_EDEVICE where the GPU is lost. */
gp_status gp_cudnn_run(gp_gpu *gpu, const gp_cudnn_key *key, const gp_cudnn_work *work,
                       const char **why);

#endif
