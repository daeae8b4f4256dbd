/* plan/areas.h - the parts of a device's memory that a plan needs, as offsets in one block; the
 * engine allocates the block. */
#ifndef GP_PLAN_AREAS_H
#define GP_PLAN_AREAS_H

#include "gpipe/plan.h"
#include "plan/task.h"

/* A part of the block of memory that the plan needs on a device. */
typedef struct gp_area {
  size_t offset, bytes; /* bytes 0: nothing is needed */
} gp_area;

/* Slots into which a device fetches values that it cannot read in place. */
typedef struct gp_fetch {
  int32_t device;
  gp_area area;
} gp_fetch;

/* Where the values of an edge lie that one copy of its stage makes. A reader that shares memory
 * with the maker reads in place; every other device fetches them into slots of its own, because two
 * readers, parts of one GPU for example, must not write one slot. */
typedef struct gp_channel {
  int32_t slots, parties; /* parties: stages that release a slot before it is reused */
  size_t bytes;           /* of one slot */
  /* So many of its first slots lie where the second copy of the stage has its last ones; negative:
   * so many of its last ones where that has its first. */
  int32_t overlap;
  int32_t home; /* the device whose block has the slots: the maker, or, if the makers of both copies
                 * share memory, the first one's */
  gp_area made;
  gp_fetch *fetches;
  int32_t fetch_count;
} gp_channel;

/* The copy of a stage that runs a micro-batch, and how many it has run before by their numbers: of
 * the same size, if each size has edges of its own. */
typedef struct gp_copy_turn {
  int32_t copy, turn;
} gp_copy_turn;

/* Slots for values of one stage on one device that outlive an action. */
typedef struct gp_slots {
  int32_t count[GP_SLOT_KINDS];
  size_t bytes[GP_SLOT_KINDS];
  size_t first[GP_SLOT_KINDS]; /* in the device's work area, where slots are of one size */
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
}; /* bytes: every part of a device's memory begins at a multiple, which GPUs access best */

/* The distance from the rows of one micro-batch in a staging buffer to those of the next. Two
 * micro-batches never share what one access of the memory moves, because one is written while the
 * other is read. bytes: of a larger micro-batch. */
static inline size_t gp_plan_padded(size_t bytes) {
  return (bytes + GP_PLAN_ALIGNMENT - 1) / GP_PLAN_ALIGNMENT * GP_PLAN_ALIGNMENT;
}

/* The staging buffer of a device with memory of its own, for one mini-batch; its counterpart in the
 * host's memory has the same offsets. The part that is sent to the device ends with the fault word,
 * the part that is fetched from it begins with that word. Offsets in bytes. */
typedef struct gp_staging {
  size_t blocks; /* step blocks: per copy and micro-batch */
  size_t input[GP_MAX_BATCH_TENSORS], target[GP_MAX_BATCH_TENSORS];
  size_t out_grad[GP_MAX_BATCH_TENSORS];
  size_t fault, losses, counts; /* losses: 8 bytes each; counts: per copy and micro-batch */
  size_t results; /* where losses and counts end; outputs and gradients of inputs lie behind */
  size_t output[GP_MAX_BATCH_TENSORS], input_grad[GP_MAX_BATCH_TENSORS];
  size_t bytes; /* of one mini-batch; 0: the device reads the host's memory */
  uint32_t inputs, targets, out_grads; /* bit k: the device reads the k-th */
  gp_area area;                        /* gp_plan_batch_room mini-batches */
} gp_staging;

/* The host's memory in which a device with memory of its own gathers (gathers.h): the parts that it
 * sends and receives, and what it makes of one gather before that is copied to the device. */
typedef struct gp_plan_exchange {
  size_t parts;  /* bytes of all parts, which lie first */
  size_t result; /* bytes of the largest result; 0: the device gathers nothing */
} gp_plan_exchange;

/* One device's part of a plan. */
typedef struct gp_plan_device {
  gp_plan_device_spec spec;
  int32_t half;      /* task with which the second half of GP_PLAN_SPLIT begins */
  int32_t peak_live; /* activations (of a stage and micro-batch) kept at once */
  /* What micro-batches keep between tasks, and the temporaries of each: tasks have their places
   * (memory/work.h). Where plans share it, it is no part of the block, and has offset 0. */
  gp_area work;
  /* What is alive in the work area at the worst moment, by kind of slot, and temporaries. */
  size_t alive[GP_SLOT_KINDS + 1];
  int32_t first_offload, offload_count; /* among the plan's */
  size_t host_bytes; /* what lies in the host's memory meanwhile: no part of the block */
  gp_plan_exchange exchange;
  gp_area scratch; /* of ops, which run one after the other, if the device's memory is its own */
  gp_staging staging;
  size_t bytes; /* of the block: everything that the plan needs but a shared work area */
  /* In a plan without a pipeline, what the pipeline would hold for it, by gp_held. */
  size_t held[GP_HELD_COUNT];
} gp_plan_device;

#endif
