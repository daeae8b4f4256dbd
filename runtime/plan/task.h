/* plan/task.h - what devices run: actions with their programs, slots and edges, and where
 * mini-batches begin among them. */
#ifndef GP_PLAN_TASK_H
#define GP_PLAN_TASK_H

#include "gpipe/schedule.h"
#include "plan/program/program.h"

/* Kinds of slots: of what F keeps when the rest is recomputed or goes to the host's memory, of what
 * it keeps otherwise, of what R makes, of what goes to the host's memory, of what comes back from
 * there, and of what I leaves for W. All but the last stand for GP_PARTS kinds: + part. */
enum {
  GP_SLOT_DROPPED,
  GP_SLOT_KEPT = GP_SLOT_DROPPED + GP_PARTS,
  GP_SLOT_RECOMPUTED = GP_SLOT_KEPT + GP_PARTS,
  GP_SLOT_AWAY = GP_SLOT_RECOMPUTED + GP_PARTS,
  GP_SLOT_FETCHED = GP_SLOT_AWAY + GP_PARTS,
  GP_SLOT_CARRIED = GP_SLOT_FETCHED + GP_PARTS,
  GP_SLOT_KINDS
};

/* The part that lies in slots of a kind. */
static inline int gp_slot_part(int kind) {
  return kind < GP_SLOT_CARRIED ? kind % GP_PARTS : GP_PART_REST;
}

typedef struct gp_offload gp_offload; /* offload.h */
typedef struct gp_move gp_move;

/* One edge as one task sees it. */
typedef struct gp_edge_use {
  int32_t edge; /* of the model; behind those, of a step (edge/step_edges.h) */
  bool acquire; /* wait until the slot is free, before writing */
  bool publish; /* tell the readers, after writing */
  bool wait;    /* wait until it was published */
  bool release; /* last use by this stage */
  /* publish: when so many instructions of the program have run, while it goes on; such uses are a
   * task's last ones, in this order. 0: behind the task. */
  int32_t early;
} gp_edge_use;

typedef struct gp_task {
  gp_act op;
  int32_t stage, copy, micro, shape;
  int32_t order; /* in the schedule's topological order: the smallest failing one is reported */
  const gp_program *program; /* NULL: nothing to do */
  bool kept;
  bool opens;      /* first of its mini-batch to add to the stage's gradients, or first of its group
                    * to add to a partial sum: writes instead */
  int32_t partial; /* the partial sum that it adds to (sums.h); 0: the gradients themselves */
  int32_t sends;   /* SEND: what it publishes (gp_step_phase of edge/step_edges.h) */
  int32_t from;    /* S: the copy that ran F of its micro-batch (records.h) */
  int32_t merges;  /* partial sums that it adds to those before them, when its program has run */
  bool stash;      /* U: a later task still reads the version that it replaces */
  bool newest;     /* it reads the version that its device made last */
  int32_t version; /* of the weights that it reads, or that U replaces */
  int32_t slot[GP_SLOT_BASES]; /* per base; -1: none */
  size_t place[GP_SLOT_BASES]; /* of each slot, in the device's work area; not in a stream */
  size_t temp;                 /* place of the program's temporaries there */
  gp_edge_use *uses;           /* among the plan's */
  int32_t use_count;
  int32_t away;         /* number + 1 of the offload of its micro-batch; 0: none */
  const gp_move *moves; /* among the plan's: copies to and from the host that begin or end here */
  int32_t move_count;
} gp_task;

/* The kind of a task's slot. What F has saved lies in slots of its own where the micro-batch
 * follows the mode; what goes to the host's memory comes back to another slot, and stays where F
 * left it if it does not go. */
static inline int gp_task_slot_kind(const gp_task *task, int slot) {
  const int part = gp_base_part(GP_BASE_SAVED + slot);
  switch (GP_BASE_SAVED + slot - part) {
  case GP_BASE_SAVED: return (task->kept ? GP_SLOT_KEPT : GP_SLOT_DROPPED) + part;
  case GP_BASE_AWAY:
    return (task->away && task->op != GP_ACT_F ? GP_SLOT_FETCHED : GP_SLOT_AWAY) + part;
  case GP_BASE_RECOMPUTED: return GP_SLOT_RECOMPUTED + part;
  default: return GP_SLOT_CARRIED;
  }
}

/* Does its program have instructions that other replicas take part in? */
static inline bool gp_task_gathers(const gp_task *task) {
  return task->program && task->program->gather_count;
}

/* Early uses come last. */
static inline bool gp_task_has_early(const gp_task *task) {
  return task->use_count && task->uses[task->use_count - 1].early;
}

/* The first of a task's early uses; its use_count: it has none. */
static inline int32_t gp_task_first_early(const gp_task *task) {
  int32_t u = task->use_count;
  while (u > 0 && task->uses[u - 1].early) u--;
  return u;
}

/* Where the tasks of each mini-batch begin on a device. A synchronous schedule is one range, run
 * again and again. An asynchronous one has ranges that fill the pipeline; the last one repeats. */
typedef struct gp_ranges {
  int32_t count;   /* stored ranges per device */
  int32_t *begin;  /* device after device: count + 1 numbers of tasks; owns the other arrays */
  int32_t *lag;    /* per device: ranges from taking a mini-batch in to the one that ends it */
  int32_t *known;  /* per range: losses that are known when the first stage has run it */
  int32_t *passed; /* per range and replica: forward passes of its last stage that they need */
} gp_ranges;

#endif
