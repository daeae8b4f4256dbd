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
  gp_cudnn_target whole, target; /* as given; as the newest list was asked for */
  gp_cudnn_node operations;      /* the finalized graph, borrowed from the plan's */
  int asked;                     /* lists so far */
  int begin;                     /* descriptors of the graph */
  int mark;                      /* descriptors that the next list keeps */
  int number;                    /* engines so far */
  int first;                     /* engines before this number are left out */
  int used;                      /* and so is this one, which was tried already; -1: none */
  int64_t at, count;
  gp_cudnn_node list[GP_CUDNN_ENGINES];
} gp_cudnn_search;

/* One of the engines that the library offers. Its number is the place in the lists; they are the
 * same for every search for a graph, on one kind of GPU with one version of the library. */
typedef struct gp_cudnn_engine {
  int number;
  int64_t index; /* the library's name for it; -1: not told */
} gp_cudnn_engine;

typedef struct gp_cudnn_plan {
  gp_cudnn_graph graph; /* the plan's descriptors, for as long as it lives */
  gp_cudnn_limits limits;
  gp_cudnn_search search;
  gp_cudnn_node node; /* borrowed from graph; NULL: no engine accepts it */
  gp_cudnn_engine engine;
  int own;          /* the first descriptor of the engine's plan */
  size_t workspace; /* bytes that its users bring: what the first engine needs */
} gp_cudnn_plan;

/* Take the first engine within the limits that accepts plan->graph, in the library's order of
 * expected speed. False if there is none: plan->graph.status and the library's last error say
 * why. */
bool gp_cudnn_plan_build(gp_cudnn_plan *plan, const gp_cudnn_target *target);
/* Take the next engine after one whose run was refused; it needs no more workspace than the first.
 * The former plan stays alive, because a captured graph may hold its kernels. False if there is
 * none. */
bool gp_cudnn_plan_next(gp_cudnn_plan *plan);
/* Take the next engine within the limits instead of this one, which has not served yet. False if
 * there is none, and the plan has no engine. */
bool gp_cudnn_plan_other(gp_cudnn_plan *plan);
/* Give up what the plan has, which nothing captured may hold, and take the first engine from this
 * number on. Those before it come last, if the library refuses to run it. False if there is none,
 * and the plan has no engine. */
bool gp_cudnn_plan_from(gp_cudnn_plan *plan, int number);
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
