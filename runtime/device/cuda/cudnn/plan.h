/* device/cuda/cudnn/plan.h - a graph of operations, an engine for it, and running it. */
#ifndef GP_DEVICE_CUDA_CUDNN_PLAN_H
#define GP_DEVICE_CUDA_CUDNN_PLAN_H

#include <stdint.h>

#include "device/cuda/cudnn/graph.h"

/* The target of a plan: an open device, or the description of one. */
typedef struct gp_cudnn_target {
  cudnnHandle_t handle;     /* or NULL, and properties is set */
  gp_cudnn_node properties; /* a device properties descriptor */
  int32_t sm_count;         /* multiprocessors of a part of a GPU; 0: all */
} gp_cudnn_target;

/* Which deterministic engines are acceptable; zeros: any. */
typedef struct gp_cudnn_limits {
  uint32_t notes;   /* bits of cudnnBackendNumericalNote_t: engines that report one are skipped */
  size_t workspace; /* bytes, at most */
} gp_cudnn_limits;

enum { GP_CUDNN_ENGINES = 24 };

/* How far the search for an engine has come: the lists that the library was asked for, and the
 * engines of the newest one. */
typedef struct gp_cudnn_search {
  gp_cudnn_target target;
  gp_cudnn_node operations; /* the finalized graph, borrowed from the plan's */
  int asked;                /* lists so far */
  int mark;                 /* descriptors that the next list keeps */
  int64_t at, count;
  gp_cudnn_node list[GP_CUDNN_ENGINES];
} gp_cudnn_search;

typedef struct gp_cudnn_plan {
  gp_cudnn_graph graph; /* the plan's descriptors, for as long as it lives */
  gp_cudnn_limits limits;
  gp_cudnn_search search;
  gp_cudnn_node node; /* borrowed from graph; NULL: no engine accepts it */
  size_t workspace;   /* bytes that its users bring: what the first engine needs */
} gp_cudnn_plan;

/* Take the first engine within the limits that accepts plan->graph, in the library's order of
 * expected speed. False if there is none: plan->graph.status and the library's last error say
 * why. */
bool gp_cudnn_plan_build(gp_cudnn_plan *plan, const gp_cudnn_target *target);
/* Take the next engine after one whose run was refused; it needs no more workspace than the first.
 * The former plan stays alive, because a captured graph may hold its kernels. False if there is
 * none. */
bool gp_cudnn_plan_next(gp_cudnn_plan *plan);
void gp_cudnn_plan_close(gp_cudnn_plan *plan); /* free what the plan holds */

/* The address of the value with an id: on the device, or on the host for scalars. */
typedef struct gp_cudnn_operand {
  int64_t id;
  const void *data;
} gp_cudnn_operand;

enum { GP_CUDNN_OPERANDS = 16 };

/* Enqueue on the handle's stream. */
cudnnStatus_t gp_cudnn_plan_run(gp_cudnn_plan *plan, cudnnHandle_t handle,
                                const gp_cudnn_operand *operands, int count, void *workspace);

#endif
