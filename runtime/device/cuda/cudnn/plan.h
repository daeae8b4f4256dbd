/* device/cuda/cudnn/plan.h - a graph of operations, an engine for it, and running it. */
#ifndef GP_DEVICE_CUDA_CUDNN_PLAN_H
#define GP_DEVICE_CUDA_CUDNN_PLAN_H

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

typedef struct gp_cudnn_plan {
  gp_cudnn_graph graph; /* the plan's descriptors, for as long as it lives */
  gp_cudnn_limits limits;
  gp_cudnn_node node; /* borrowed from graph; NULL: no engine accepts it */
  size_t workspace;   /* bytes */
} gp_cudnn_plan;

/* Take the first engine within the limits that accepts plan->graph, in the library's order of
 * expected speed. False if there is none: plan->graph.status and the library's last error say
 * why. */
bool gp_cudnn_plan_build(gp_cudnn_plan *plan, const gp_cudnn_target *target);
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
