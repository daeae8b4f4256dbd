/* device/cuda/cudnn/cache.h - the plans that a device uses: prepare finds or makes them, run finds
 * them again. */
#ifndef GP_DEVICE_CUDA_CUDNN_CACHE_H
#define GP_DEVICE_CUDA_CUDNN_CACHE_H

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/cudnn/plan.h"

enum { GP_CUDNN_KEY = 48 };

/* Everything that a graph depends on, starting with the kind of graph; unused fields are 0. */
typedef struct gp_cudnn_key {
  int64_t field[GP_CUDNN_KEY];
} gp_cudnn_key;

/* A value in memory. */
typedef struct gp_cudnn_value {
  int64_t id;
  size_t bytes;
} gp_cudnn_value;

/* What to plan: `describe` adds the operations of `what`. */
typedef struct gp_cudnn_request {
  gp_cudnn_key key;
  void (*describe)(gp_cudnn_graph *graph, const void *what);
  const void *what;
  gp_cudnn_limits limits;
  gp_cudnn_value values[GP_CUDNN_OPERANDS]; /* for engines by the clock; none: never timed */
  int n_values;
} gp_cudnn_request;

typedef struct gp_cudnn_answer {
  const char *why;  /* NULL: there is a plan; else why there is none, valid for the device's life */
  size_t workspace; /* bytes */
} gp_cudnn_answer;

/* Find the plan, or make it. If the library is missing or refuses, the answer says so and is kept.
 * Errors: GP_ENOMEM; GP_EDEVICE if the GPU is lost. */
gp_status gp_cudnn_prepare(gp_gpu *gpu, const gp_cudnn_request *request, gp_cudnn_answer *answer);
/* Was a plan prepared, and has it an engine that no run was refused by? */
bool gp_cudnn_has(const gp_gpu *gpu, const gp_cudnn_key *key);

typedef struct gp_cudnn_work {
  const gp_cudnn_operand *operands;
  int count;
  void *workspace;
  const char *doing; /* for the text of an error */
} gp_cudnn_work;

typedef struct gp_cudnn_outcome {
  bool again;      /* an engine refused, and the next one is chosen: write its operands anew, run */
  const char *why; /* all engines have refused: the plan is not used any more; else NULL */
} gp_cudnn_outcome;

/* Enqueue the plan of a key, which must exist, on the compute stream. Its outputs are defined only
 * if the outcome is all zeros. Errors: GP_EDEVICE if the GPU is lost; GP_EUNSUPPORTED if the
 * library refused while the stream is captured: the capture is spoiled, and the plan is kept. */
gp_status gp_cudnn_run(gp_gpu *gpu, const gp_cudnn_key *key, const gp_cudnn_work *work,
                       gp_cudnn_outcome *outcome);

#endif
