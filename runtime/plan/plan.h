/* plan/plan.h - everything one batch shape needs, computed before its first step: sizes, offsets,
 * programs, tasks.
 *
 * A plan is data. It holds no memory of a device and asks nobody once it is made; the engine binds
 * it to memory, slots and queues (engine/bind/bind.c).
 *
 *   shape.c     traced model -> gradient -> stages -> programs, for one number of rows
 *   places.c    where the values lie that no program owns
 *   replicas.c    values of other devices that a stage reads: copies on its own
 *   buffers.c   which stage a buffer belongs to that forward writes
 *   schedule/   schedule -> lowered schedule: recomputation, ascending W, reductions, updates
 *   lower.c     lowered schedule -> tasks with programs
 *   slots.c     where a task keeps values for later ones
 *   touched.c   which edges the actions of a stage touch
 *   uses.c      which of them a task waits for, publishes and releases
 *   flow.c      a lowered schedule run without work: who can go on when
 *   versions.c  which version of the weights a task reads, and what must be stashed
 *   ranges.c    which tasks belong to which mini-batch
 *   capacity.c  how many slots an edge needs so that nobody ever waits for one
 *   memory.c    what it needs on each device: areas of one block
 *   states.c    where the states of CPU kernels lie
 *   plan.c      puts them together
 */
#ifndef GP_PLAN_PLAN_H
#define GP_PLAN_PLAN_H

#include "gpipe/plan.h"
#include "graph/stages.h"
#include "schedule/passes.h"
#include "plan/layout.h"
#include "plan/program.h"
#include "schedule/schedule.h"

enum { GP_EXPORT_LOSS, GP_EXPORT_COUNT, GP_EXPORT_OUTPUT };

/* What F keeps when the rest is recomputed, what it keeps otherwise, what R makes, what I leaves
 * for W. */
enum { GP_SLOT_DROPPED, GP_SLOT_KEPT, GP_SLOT_RECOMPUTED, GP_SLOT_CARRIED, GP_SLOT_KINDS };

/* A part of the block of memory that the plan wants on a device. */
typedef struct gp_area {
  size_t offset, bytes; /* bytes 0: nothing is wanted */
} gp_area;

/* A parameter of another device, or a constant where the device works in memory of its own. */
typedef struct gp_replica {
  gp_ref value;
  size_t offset; /* in the stage's replicas */
} gp_replica;

/* Programs of one stage for one number of rows, with everything kept or dropped (and
 * recomputed). */
typedef struct gp_stage_programs {
  gp_program *forward[2], *backward[2]; /* [0] dropped, [1] kept */
  gp_program *input[2], *weight[2];     /* where the schedule runs I and W apart */
  gp_program *recompute;
  gp_program *count;      /* last stage: what the loss is divided by */
  gp_program *prepare;    /* what depends on parameters only */
  size_t invariant_bytes; /* of what it makes, beside packed weights that all plans share */
  gp_replica *replicas;   /* owned by the first copy of the stage */
  int32_t replica_count;
  size_t replica_bytes;
  size_t saved_bytes[2], recomputed_bytes, carried_bytes;
} gp_stage_programs;

enum { GP_STAGE_PROGRAM_KINDS = 11 };
/* List the programs of a stage that are there; returns how many. */
int gp_stage_programs_list(const gp_stage_programs *programs,
                           gp_program *list[GP_STAGE_PROGRAM_KINDS]);

/* Edges, ascending. */
typedef struct gp_edge_list {
  int32_t *edges;
  int32_t count;
} gp_edge_list;

typedef struct gp_shape_plan {
  int64_t rows;
  int32_t micros;
  gp_trace *trace;
  gp_stages *stages;
  gp_stage_programs *programs; /* per stage; again for their second copies */
  gp_edge_list *touched;       /* see gp_shape_touched */
  int32_t copy_count;
  const struct gp_shape_plan *larger; /* whose packed weights serve this one too; or NULL */
  bool own_edges;                     /* not those of the larger micro-batches */
  bool tied;                          /* a parameter has accumulators beside its main one */
  int32_t first_edge;         /* number of its first edge: 0, or behind those of the larger ones */
  int32_t first_constant;     /* the same of its constants */
  gp_ref loss, count, output; /* copies that are exported; GP_NONE */
  int64_t constant_count;
} gp_shape_plan;

/* What a plan is made for. */
typedef struct gp_plan_env {
  gp_layout *layout; /* of the parameters; what plans share is added to it */
  const gp_plan_device_spec
      *devices; /* per device; NULL: all work in the host's memory and take packed weights */
  const int32_t *stage_of; /* per layer and one for the loss */
  int32_t layer_count, stage_count, device_count;
  int32_t share; /* 0: of all devices; d + 1: programs, tasks and memory of device d only */
  gp_remat remat;
  gp_update_mode update;
  bool norm, clip; /* before updates behind a barrier: see gp_lower_options */
  bool scaled;     /* after every backward pass gradients are brought back from the loss scale */
  bool fuse;       /* neighbours in a layer become one op (graph/fuse.c) */
  bool finite;     /* every result is looked at: nothing is overwritten before */
} gp_plan_env;

/* What the programs of a shape are built for. */
typedef struct gp_shape_spec {
  const gp_plan_env *env;
  const gp_plan_spec *plan;
  const bool *apart; /* per stage: I and W run as programs of their own */
} gp_shape_spec;

/* One edge as one task sees it. */
typedef struct gp_edge_use {
  int32_t edge;
  bool acquire; /* wait until the slot is free, before writing */
  bool publish; /* tell the readers, after writing */
  bool wait;    /* wait until it was published */
  bool release; /* last use by this stage */
} gp_edge_use;

typedef struct gp_task {
  gp_act op;
  int32_t stage, copy, micro, shape;
  int32_t order; /* in the schedule's topological order: the smallest failing one is reported */
  gp_program *program; /* NULL: nothing to do; run by one worker at a time */
  bool kept;
  bool barrier;                /* every device must have come here before it runs */
  bool stash;                  /* U: somebody still reads the version that it replaces */
  bool newest;                 /* it reads the version that its device made last */
  int32_t version;             /* of the weights that it reads, or that U replaces */
  int32_t slot[GP_SLOT_KINDS]; /* -1: none */
  gp_edge_use *uses;           /* among the plan's */
  int32_t use_count;
} gp_task;

/* Slots in which a device takes in values that it cannot read where they were made. */
typedef struct gp_fetch {
  int32_t device;
  gp_area area;
} gp_fetch;

/* Where the values of an edge lie. A reader that shares memory with the maker reads in place; every
 * other fetches them into slots of its own: readers on one GPU would else write under each other's
 * eyes. */
typedef struct gp_channel {
  int32_t slots, parties; /* parties: stages that release a slot before it is reused */
  size_t bytes;           /* of one slot */
  gp_area made[2];        /* per copy of the making stage; copies that share memory have one */
  gp_fetch *fetches;
  int32_t fetch_count;
} gp_channel;

/* Slots for values of one stage on one device that outlive an action. */
typedef struct gp_slots {
  int32_t count[GP_SLOT_KINDS];
  size_t bytes[GP_SLOT_KINDS];
  gp_area area; /* kind after kind */
} gp_slots;

/* What several versions of a stage's weights need beside the newest, which lies in the stage's
 * arena. */
typedef struct gp_versions {
  int32_t live;       /* versions that are read at the same time, the newest included */
  gp_area stash;      /* live - 1 copies of the values */
  size_t stash_bytes; /* of one */
} gp_versions;

enum {
  GP_PLAN_ALIGNMENT = 256
}; /* bytes: of every part of a device's memory, what GPUs like best */

/* From the rows of one micro-batch in a staging buffer to those of the next: no two of them share
 * what one access of the memory moves, because one is written while the other is read. bytes: of a
 * larger micro-batch. */
static inline size_t gp_plan_padded(size_t bytes) {
  return (bytes + GP_PLAN_ALIGNMENT - 1) / GP_PLAN_ALIGNMENT * GP_PLAN_ALIGNMENT;
}

/* What a device with memory of its own has of a mini-batch, one after the other, and the same in
 * memory of the host: what is sent there ends with the fault word, what is fetched begins with it.
 * Offsets in bytes. */
typedef struct gp_staging {
  size_t blocks; /* step blocks: per copy and micro-batch */
  size_t input[GP_MAX_BATCH_TENSORS], target[GP_MAX_BATCH_TENSORS], out_grad;
  size_t fault, losses, counts, output; /* losses: 8 bytes each; counts: per copy and micro-batch */
  size_t bytes;                         /* of one mini-batch; 0: it reads the host's */
  uint32_t inputs, targets;             /* bit k: the device reads the k-th */
  gp_area area;                         /* `room` mini-batches */
} gp_staging;

/* Where the tasks of one mini-batch after another begin on a device. A synchronous schedule is one
 * range, run again and again. An asynchronous one has ranges that fill the pipeline; the last one
 * repeats. */
typedef struct gp_ranges {
  int32_t count;  /* stored ranges per device */
  int32_t *begin; /* device after device: count + 1 numbers of tasks; owns the other arrays */
  int32_t *lag; /* per device: ranges from that which takes a mini-batch in to that which ends it */
  int32_t *known;  /* per range: losses that are known when the first stage is through with it */
  int32_t *passed; /* per range: forward passes of the last stage up to the last that these need */
} gp_ranges;

/* One device's part. */
typedef struct gp_plan_device {
  gp_plan_device_spec spec;
  int32_t half;      /* task with which the second half of GP_PLAN_SPLIT begins */
  int32_t peak_live; /* activations (of a stage and micro-batch) kept at once */
  gp_area temp;      /* of programs, one after the other */
  gp_area scratch;   /* of ops that run one after the other, where memory is its own */
  gp_area states;    /* of CPU kernels, where the device works in the host's memory */
  gp_staging staging;
  size_t bytes; /* everything that the plan wants of its memory */
} gp_plan_device;

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
  gp_task *tasks;     /* device after device */
  int32_t *first;     /* per device, and the total */
  gp_plan_device *devices;
  gp_ranges ranges;
  gp_edge_use *uses; /* of all tasks */
  gp_channel *channels;
  gp_slots *slots;         /* per stage and copy */
  gp_versions *versions;   /* per stage */
  gp_area *invariant;      /* per (stage, copy) and shape: what P made, version after version */
  gp_area *replicas;       /* per (stage, copy) and shape */
  size_t scratch_bytes;    /* per thread of a device that works in the host's memory */
  int32_t barrier_parties; /* devices that have a task with a barrier */
  bool joined;             /* norms of all stages decide on its updates */
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

gp_status gp_shape_build(const gp_shape_spec *spec, const gp_traced_shape *from,
                         gp_shape_plan *shape);
void gp_shape_free(gp_shape_plan *shape);
/* The edges that an action (F, B, I, W or R) of a stage touches. */
const gp_edge_list *gp_shape_touched(const gp_shape_plan *shape, int32_t stage, gp_act act);
/* Errors: GP_EINVAL where stages would share a buffer that forward writes (plan/buffers.c). */
gp_status gp_shape_check_buffers(const gp_shape_spec *spec, const gp_graph *graph,
                                 const gp_stages *stages);

/* Tasks of the lowered schedule (lower.c), the slots of what they keep (slots.c), their edges
 * (uses.c), the versions of the weights (versions.c), ranges of mini-batches (ranges.c), slots per
 * edge (capacity.c). */
gp_status gp_plan_add_tasks(gp_plan *plan, const gp_schedule *schedule, const gp_lowered *lowered);
gp_status gp_plan_add_slots(gp_plan *plan);
gp_status gp_plan_add_uses(gp_plan *plan);
gp_status gp_plan_add_versions(gp_plan *plan, const gp_plan_env *env);
gp_status gp_plan_add_ranges(gp_plan *plan);
/* A stored range of a step, and how many steps it repeats after. */
static inline int32_t gp_plan_range(const gp_plan *plan, uint32_t step, int64_t *repeats) {
  uint32_t last = (uint32_t)plan->ranges.count - 1, stored = step < last ? step : last;
  *repeats = (int64_t)step - stored;
  return (int32_t)stored;
}
gp_status gp_plan_size_channels(gp_plan *plan, const gp_lowered *lowered);
/* Everything that its runs need, as areas of one block a device (memory.c). */
gp_status gp_plan_add_memory(gp_plan *plan);
/* Scratch that the ops of a device with memory of its own want of it, the largest of them: what a
 * description says of a device that is not there, or what the one that is there answers. */
gp_status gp_plan_set_scratch(gp_plan *plan, int32_t device, size_t bytes);
/* Each program that a device's tasks run, once; ends at the first failure of visit. */
typedef gp_status (*gp_program_visit)(void *context, const gp_program *program);
gp_status gp_plan_each_program(const gp_plan *plan, int32_t device, gp_program_visit visit,
                               void *context);
/* Offsets of the states of CPU kernels, and their bytes per device (states.c). */
gp_status gp_plan_place_states(gp_plan *plan);
/* Call visit for every state of a device, in the same order each time, until one fails. */
typedef gp_status (*gp_state_visit)(void *context, gp_instr *instr);
gp_status gp_plan_each_state(const gp_plan *plan, int32_t device, gp_state_visit visit,
                             void *context);
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

/* Build the plan; traces are taken, also on failure. */
gp_status gp_plan_make(const gp_plan_env *env, const gp_plan_spec *spec, gp_plan **plan);

#endif
