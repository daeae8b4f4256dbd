/* plan/plan.h - everything one batch shape needs, computed before its first step: sizes, offsets,
 * programs, tasks.
 *
 * A plan is data. It holds no memory of a device and asks nobody; the engine binds it to memory,
 * slots and queues (engine/bind/bind.c), and tells it what its devices answer. make.h has how it is
 * made, shape.h, task.h and areas.h what it consists of.
 */
#ifndef GP_PLAN_PLAN_H
#define GP_PLAN_PLAN_H

#include "gpipe/plan.h"
#include "plan/areas.h"
#include "plan/memory/layout.h"
#include "plan/shape.h"
#include "plan/task.h"

typedef struct gp_step_edge gp_step_edge; /* edge/step_edges.h */

struct gp_plan {
  gp_plan_kind kind;
  gp_shape_plan shapes[2];
  int32_t device_count, stage_count, edge_count;
  int32_t copy_count;  /* devices per stage */
  int32_t batch;       /* micro-batches per update of an asynchronous schedule; 0: synchronous */
  int32_t micro_count; /* of all stored tasks */
  int32_t step_micros; /* of a mini-batch that step is given */
  gp_update_mode update;
  int32_t share;      /* of all devices (0), or of one: its number + 1 */
  int32_t *placement; /* per stage and copy */
  /* Where parameters lie, with what this plan asks for beside: packed weights, halves,
   * accumulators. The engine adopts it with the plan; one that is thrown away asked for nothing. */
  gp_layout layout;
  gp_task *tasks; /* device after device */
  int32_t *first; /* per device, and the total */
  gp_plan_device *devices;
  gp_ranges ranges;
  gp_edge_use *uses; /* of all tasks */
  gp_channel *channels;
  gp_slots *slots;          /* per stage and copy */
  bool *opened;             /* per stage and copy: a task opens its gradients */
  gp_versions *versions;    /* per stage */
  gp_area *invariant;       /* per (stage, copy) and shape: what P made, version after version */
  gp_area *replicas;        /* per (stage, copy) and shape */
  gp_area *states;          /* likewise: of CPU kernels, where the device works in host memory */
  size_t scratch_bytes;     /* per thread of a device that works in the host's memory */
  gp_step_edge *step_edges; /* numbered behind the model's edges */
  int32_t step_edge_count;
  int32_t crossing_count, extra_count; /* of the layout when the plan was made */
  bool *active; /* per (stage, copy): the schedule has micro-batches for it */
  bool decides; /* all devices vote before gradients are scaled or stages updated */
  bool joined;  /* norms of all stages decide on its updates */
  bool sum_loss;
};

/* Are its mini-batches given one after another, with updates in between? */
static inline bool gp_plan_streams(const gp_plan *plan) {
  return plan->batch || plan->update == GP_UPDATE_FREE;
}
/* Mini-batches that are under way at once. */
static inline int32_t gp_plan_batch_room(const gp_plan *plan) {
  return gp_plan_streams(plan) ? plan->ranges.count + 2 : 1;
}
/* Are the device's tasks and memory in the plan? */
static inline bool gp_plan_has(const gp_plan *plan, int32_t device) {
  return !plan->share || plan->share == device + 1;
}
/* A stage on one of its devices. */
static inline int32_t gp_plan_holder(const gp_plan *plan, int32_t stage, int32_t copy) {
  return stage * plan->copy_count + copy;
}
static inline bool gp_plan_trains(gp_plan_kind kind) {
  return kind == GP_PLAN_STEP || kind == GP_PLAN_SPLIT;
}
int32_t gp_plan_base_count(const gp_plan *plan); /* length of a frame */
/* Edges of both kinds. */
static inline int32_t gp_plan_channel_count(const gp_plan *plan) {
  return plan->edge_count + plan->step_edge_count;
}
/* Of both sizes of micro-batches; borrowed: its storage is what a program finds at its base. */
int32_t gp_plan_constant_count(const gp_plan *plan);
const gp_tensor *gp_plan_constant(const gp_plan *plan, int32_t constant);
/* Where the model branches on the number of rows, the two sizes of micro-batches cross the cuts
 * with different values, and each has edges of its own; otherwise they share them. */
const gp_edge *gp_plan_edge(const gp_plan *plan, int32_t edge);
/* Micro-batches are numbered on through the mini-batches of a stream; their shape repeats. */
static inline int32_t gp_plan_shape_of(const gp_plan *plan, int64_t micro) {
  return micro % plan->step_micros < plan->shapes[0].micros ? 0 : 1;
}
/* Of its mini-batch as step was given it. */
static inline int64_t gp_plan_first_row(const gp_plan *plan, int64_t micro) {
  int64_t large = plan->shapes[0].micros;
  if (micro < large) return micro * plan->shapes[0].rows;
  return large * plan->shapes[0].rows + (micro - large) * plan->shapes[1].rows;
}
/* How many micro-batches before this one used the edge; and the other way round. */
int64_t gp_plan_own_turn(const gp_plan *plan, int32_t edge, int64_t micro);
static inline int64_t gp_plan_turn(const gp_plan *plan, int32_t edge, int64_t micro) {
  return plan->shapes[1].own_edges ? gp_plan_own_turn(plan, edge, micro) : micro;
}
int64_t gp_plan_micro_at(const gp_plan *plan, int32_t edge, int64_t turn);
/* A stored range of a step, and how many steps it repeats after. */
static inline int32_t gp_plan_range(const gp_plan *plan, uint32_t step, int64_t *repeats) {
  uint32_t last = (uint32_t)plan->ranges.count - 1, stored = step < last ? step : last;
  *repeats = (int64_t)step - stored;
  return (int32_t)stored;
}
/* Does the device work in the host's memory, on what the script gives? */
static inline bool gp_plan_on_host(const gp_plan *plan, int32_t device) {
  return plan->devices[device].spec.space == 0;
}
/* Do two devices read each other's memory? */
static inline bool gp_plan_shares(const gp_plan *plan, int32_t a, int32_t b) {
  return plan->devices[a].spec.space == plan->devices[b].spec.space;
}

/* The device that makes the values of an edge in micro-batches of a copy. */
static inline int32_t gp_plan_maker(const gp_plan *plan, int32_t edge, int32_t copy) {
  return plan->placement[gp_plan_holder(plan, gp_plan_edge(plan, edge)->from, copy)];
}

/* Scratch that the ops of a device with memory of its own want of it, the largest of them: what a
 * description says of a device that is not there, or what the one that is there answers. */
gp_status gp_plan_set_scratch(gp_plan *plan, int32_t device, size_t bytes);
/* Each program that a device's tasks run, once; ends at the first failure of visit. */
typedef gp_status (*gp_program_visit)(void *context, const gp_program *program);
gp_status gp_plan_each_program(const gp_plan *plan, int32_t device, gp_program_visit visit,
                               void *context);
/* Call visit for an instruction of each state of a stage's copy and a shape, in the same order each
 * time, until one fails. */
typedef gp_status (*gp_state_visit)(void *context, const gp_instr *instr);
gp_status gp_plan_each_state(const gp_plan *plan, int32_t holder, int32_t shape,
                             gp_state_visit visit, void *context);

#endif
