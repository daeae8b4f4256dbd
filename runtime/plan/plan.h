/* plan/plan.h - everything one batch shape needs, computed before its first step: sizes, offsets,
 * programs, tasks.
 *
 * A plan is data. It holds no memory of a device and asks no device; the engine binds it to memory,
 * slots and queues (engine/bind/bind.c) and tells it what the devices answer. make.h describes how
 * it is built; shape.h, task.h and areas.h describe its parts.
 */
#ifndef GP_PLAN_PLAN_H
#define GP_PLAN_PLAN_H

#include "gpipe/plan.h"
#include "plan/areas.h"
#include "plan/memory/layout.h"
#include "plan/shape.h"
#include "plan/task.h"

/* What the plan and those before it have asked of a stage, when the plan was made: the layout goes
 * to the pipeline then. */
typedef struct gp_stage_asked {
  size_t grads, extras; /* bytes of gradients, and of accumulators beside the main ones */
  bool halves;          /* updates write the weights in halves, too */
} gp_stage_asked;

/* An accumulator beside the main one: of a parameter that another layer owns. */
typedef struct gp_plan_extra {
  int32_t owner, stage; /* stages: of the parameter, and of the layer */
  int32_t copy;         /* of both that sums it: the one that owns the parameter */
} gp_plan_extra;

typedef struct gp_step_edge gp_step_edge;     /* edge/step_edges.h */
typedef struct gp_plan_gather gp_plan_gather; /* gathers.h */

enum { GP_SHARE_SHOWN = INT32_MIN };

struct gp_plan {
  gp_plan_kind kind;
  gp_shape_plan shapes[2];
  int32_t device_count, stage_count, edge_count;
  int32_t copy_count; /* devices per stage, those of all replicas */
  int32_t replicas;   /* of the schedule, each with devices and micro-batches of its own; or 1 */
  int32_t replica_micros; /* replica r runs those of a mini-batch from r * replica_micros on */
  int32_t batch;          /* micro-batches per update of an asynchronous schedule; 0: synchronous */
  int32_t micro_count;    /* micro-batches of all stored tasks */
  int32_t step_micros;    /* micro-batches of one mini-batch */
  gp_update_mode update;
  /* What is planned in full: 0: all devices; d + 1: device d alone; -1 - r: those of rank r;
   * GP_SHARE_SHOWN: those that are shown. Of the others there is an outline: actions, edges, and
   * who makes and reads what. */
  int32_t share;
  uint64_t outline;     /* hash of what all shares of a plan have in common (outline.c) */
  int32_t action_count; /* of the lowered schedule, on all devices */
  int32_t order_end;    /* above the order of each task on any device */
  int32_t *placement;   /* per stage and copy */
  /* Per micro-batch of a mini-batch: the device of F on the first stage, and on the last. */
  int32_t *runners[2];
  /* Where parameters lie, and what this plan adds to that: packed weights, halves, accumulators.
   * The engine adopts the layout together with the plan; a plan that is dropped before has added
   * nothing to the pipeline's. */
  gp_layout layout;
  gp_task *tasks; /* device after device */
  int32_t *first; /* per device, and the total */
  gp_plan_device *devices;
  gp_ranges ranges;
  gp_edge_use *uses;       /* of all tasks */
  gp_channel *channels;    /* per copy and edge: gp_plan_channel */
  gp_copy_turn *turns;     /* per stage and micro-batch; NULL: one copy of a stage in a replica */
  gp_slots *slots;         /* per stage and copy */
  bool *opened;            /* per stage and copy: a task opens its gradients */
  int32_t sum_group;       /* micro-batches in a leaf of the tree of sums (sums.h); 0: no tree */
  int32_t *partial_count;  /* per stage and copy: partial sums alive at once beside the gradients */
  gp_area *partials;       /* per stage and copy */
  gp_area *records;        /* per stage and copy: see records.h */
  int32_t *record_rounds;  /* per stage: mini-batches that a copy's records are of at once */
  gp_plan_gather *gathers; /* stage after stage: see gathers.h */
  int32_t gather_count;
  gp_area *sent;            /* per stage and copy: its parts of them */
  gp_versions *versions;    /* per stage and copy */
  gp_area *invariant;       /* per (stage, copy) and shape: what P made, version after version */
  gp_area *constants;       /* per (stage, copy) and shape */
  gp_area *states;          /* likewise: of CPU kernels, if the device works in host memory */
  size_t scratch_bytes;     /* per thread of a device that works in the host's memory */
  gp_step_edge *step_edges; /* numbered behind the model's edges */
  int32_t step_edge_count;
  int32_t crossing_count, extra_count; /* of the layout when the plan was made */
  gp_stage_asked *asked;               /* per stage */
  gp_plan_extra *extras;               /* those of the layout when the plan was made */
  bool *active;  /* per (stage, copy): the schedule has micro-batches for it */
  size_t *owned; /* per (stage, copy): bytes of the gradients that it sums and updates */
  bool decides;  /* all devices vote before gradients are scaled or stages updated */
  bool joined;   /* its updates depend on the norms of all stages */
  bool checks;   /* its replicas update in a stream, and agree on which gradients are finite */
  bool sum_loss;
  /* Nothing in the work areas outlives a run: all such plans of a pipeline use the same memory. */
  bool shares;
  bool by_stage;        /* what runs again is said stage by stage: every micro-batch follows it */
  gp_offload *offloads; /* what goes to the host's memory, device after device (offload.h) */
  int32_t offload_count;
  gp_move *moves; /* task after task */
};

/* Bytes of a partial sum of a stage's gradients: they, and the accumulators behind them. */
static inline size_t gp_plan_partial_bytes(const gp_plan *plan, int32_t stage) {
  return plan->asked[stage].grads + plan->asked[stage].extras;
}
/* Does the plan run a stream: mini-batches one after another, with updates in between? */
static inline bool gp_plan_streams(const gp_plan *plan) {
  return plan->batch || plan->update == GP_UPDATE_FREE;
}
/* Count the mini-batches that may be under way at once. */
static inline int32_t gp_plan_batch_room(const gp_plan *plan) {
  return gp_plan_streams(plan) ? plan->ranges.count + 2 : 1;
}
/* Is a device planned in full? See gp_plan.share. */
static inline bool gp_share_has(int32_t share, const gp_plan_device_spec *spec, int32_t device) {
  if (share == GP_SHARE_SHOWN) return spec->shown;
  if (share < 0) return spec->rank == -1 - share;
  return !share || share == device + 1;
}
/* Does the plan hold the device's tasks and memory? */
static inline bool gp_plan_has(const gp_plan *plan, int32_t device) {
  return gp_share_has(plan->share, &plan->devices[device].spec, device);
}
/* The index of a stage's copy in arrays that are per stage and copy. */
static inline int32_t gp_plan_holder(const gp_plan *plan, int32_t stage, int32_t copy) {
  return stage * plan->copy_count + copy;
}
static inline bool gp_plan_trains(gp_plan_kind kind) {
  return kind == GP_PLAN_STEP || kind == GP_PLAN_SPLIT;
}
int32_t gp_plan_base_count(const gp_plan *plan); /* length of a frame */
/* Count the copies of a stage in one replica: 1 or 2. */
static inline int32_t gp_plan_twins(const gp_plan *plan) {
  return plan->copy_count / plan->replicas;
}
/* The replica that runs a micro-batch. In a stream with replicas a step is one mini-batch. */
static inline int32_t gp_plan_replica_of(const gp_plan *plan, int64_t micro) {
  return plan->replicas > 1 ? (int32_t)(micro % plan->step_micros / plan->replica_micros) : 0;
}
/* Count the micro-batches of a mini-batch that a replica runs: the last replicas may have fewer. */
static inline int32_t gp_plan_micros_of(const gp_plan *plan, int32_t replica) {
  const int32_t left = plan->step_micros - replica * plan->replica_micros;
  if (plan->replicas == 1) return plan->step_micros;
  return left < 0 ? 0 : left < plan->replica_micros ? left : plan->replica_micros;
}
/* The number of a micro-batch among those that its replica runs, counted through the stream. */
static inline int64_t gp_plan_own_micro(const gp_plan *plan, int64_t micro) {
  const int32_t replica = gp_plan_replica_of(plan, micro);
  if (plan->replicas == 1) return micro;
  return micro / plan->step_micros * gp_plan_micros_of(plan, replica) + micro % plan->step_micros -
         replica * plan->replica_micros;
}
/* Do replicas update in a stream, so that each keeps values and versions of its own? */
static inline bool gp_plan_shares_updates(const gp_plan *plan) {
  return plan->batch && plan->replicas > 1;
}
/* Constants are numbered through both sizes of micro-batches. The tensor is borrowed; its storage
 * is what a program finds at the constant's base. */
int32_t gp_plan_constant_count(const gp_plan *plan);
const gp_tensor *gp_plan_constant(const gp_plan *plan, int32_t constant);
/* If the model branches on the number of rows, the two sizes of micro-batches cross the cuts with
 * different values, and each has edges of its own; otherwise they share them. */
const gp_edge *gp_plan_edge(const gp_plan *plan, int32_t edge);
/* Does the edge belong to the smaller micro-batches alone? Their own edges, if they have any, come
 * behind those of the larger ones. */
static inline bool gp_plan_edge_is_small(const gp_plan *plan, int32_t edge) {
  return plan->shapes[1].own_edges && edge >= plan->shapes[1].first_edge;
}
/* The shape of a micro-batch: numbers run on through the mini-batches of a stream, shapes
 * repeat. */
static inline int32_t gp_plan_shape_of(const gp_plan *plan, int64_t micro) {
  return micro % plan->step_micros < plan->shapes[0].micros ? 0 : 1;
}
/* The first row of a micro-batch; rows and micro-batches are both counted within a mini-batch. */
static inline int64_t gp_plan_first_row(const gp_plan *plan, int64_t micro) {
  int64_t large = plan->shapes[0].micros;
  if (micro < large) return micro * plan->shapes[0].rows;
  return large * plan->shapes[0].rows + (micro - large) * plan->shapes[1].rows;
}
/* Find the stored range that a step runs. The last one stands for all later steps; *repeats: by how
 * many mini-batches its numbers are moved on. */
static inline int32_t gp_plan_range(const gp_plan *plan, uint32_t step, int64_t *repeats) {
  uint32_t last = (uint32_t)plan->ranges.count - 1, stored = step < last ? step : last;
  *repeats = (int64_t)step - stored;
  return (int32_t)stored;
}
/* Does the device work in the host's memory, and so directly on the script's tensors? */
static inline bool gp_plan_on_host(const gp_plan *plan, int32_t device) {
  return plan->devices[device].spec.space == 0;
}
/* Can two devices read each other's memory? */
static inline bool gp_plan_shares(const gp_plan *plan, int32_t a, int32_t b) {
  const gp_plan_device_spec *x = &plan->devices[a].spec, *y = &plan->devices[b].spec;
  return x->space == y->space && x->rank == y->rank;
}

/* The copy of a stage on one of its devices. */
static inline int32_t gp_plan_copy_on(const gp_plan *plan, int32_t stage, int32_t device) {
  const int32_t *at = &plan->placement[gp_plan_holder(plan, stage, 0)];
  int32_t copy = 0;
  while (copy + 1 < plan->copy_count && at[copy] != device) copy++;
  return copy;
}
/* The device that makes the values of an edge in the micro-batches that a copy runs. */
static inline int32_t gp_plan_maker(const gp_plan *plan, int32_t edge, int32_t copy) {
  return plan->placement[gp_plan_holder(plan, gp_plan_edge(plan, edge)->from, copy)];
}

/* Where a task's slot lies in the work area of its device, for a micro-batch that is counted
 * through the stream: a stream takes slots in turn. */
static inline size_t gp_plan_slot_place(const gp_plan *plan, const gp_task *task, int slot,
                                        int64_t micro) {
  const gp_slots *slots = &plan->slots[gp_plan_holder(plan, task->stage, task->copy)];
  const int kind = gp_task_slot_kind(task, slot);
  if (!plan->batch) return task->place[slot];
  const int64_t own = gp_plan_own_micro(plan, micro);
  return slots->first[kind] + (size_t)(own % slots->count[kind]) * slots->bytes[kind];
}

/* Bytes that the plan needs on a device, a shared work area included. */
static inline size_t gp_plan_total(const gp_plan *plan, int32_t device) {
  const gp_plan_device *own = &plan->devices[device];
  return own->bytes + (plan->shares ? own->work.bytes : 0);
}

/* Set the scratch that the ops of a device with memory of its own need: that of the op that needs
 * most. A device that is there answers the number; otherwise its description says it. */
gp_status gp_plan_set_scratch(gp_plan *plan, int32_t device, size_t bytes);
/* Call visit once for each program that a device's tasks run, until a call fails. */
typedef gp_status (*gp_program_visit)(void *context, const gp_program *program);
gp_status gp_plan_each_program(const gp_plan *plan, int32_t device, gp_program_visit visit,
                               void *context);
/* Call visit for one instruction per kernel state of a stage's copy and a shape, in the same order
 * each time, until a call fails. */
typedef gp_status (*gp_state_visit)(void *context, const gp_instr *instr);
gp_status gp_plan_each_state(const gp_plan *plan, int32_t holder, int32_t shape,
                             gp_state_visit visit, void *context);

/* Name a task as people write it; micro: counted through the stream (describe.c). Weights have
 * versions only where the plan is asynchronous. */
gp_action gp_task_action(const gp_plan *plan, const gp_task *task, int64_t micro);

#endif
