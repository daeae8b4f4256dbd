/* engine/state/binding.h - a plan joined with a pipeline: the memory that the plan needs, the links
 * of its edges, and what its devices keep.
 *
 * A binding is made before the first run of a plan and freed with the plan; runs allocate nothing.
 * Addresses are those of the plan's areas. An empty area is NULL, so that reading one that the plan
 * did not request faults at once. */
#ifndef GP_ENGINE_STATE_BINDING_H
#define GP_ENGINE_STATE_BINDING_H

#include <stdatomic.h>

#include "device/link/link.h"
#include "plan/channels.h"
#include "plan/edge/step_edges.h"

/* The link to one device that reads what the maker of a channel makes. The maker's own device
 * counts as a reader. */
typedef struct gp_bound_link {
  gp_link *link;
  int32_t reader; /* device */
} gp_bound_link;

typedef struct gp_bound_channel gp_bound_channel;

struct gp_bound_channel {
  char *made;     /* slot 0 in the maker's memory */
  int32_t maker;  /* device */
  char **fetched; /* per device: its own slot 0; NULL if it reads in place, or nothing */
  gp_bound_link *links;
  int32_t link_count;
  gp_link_word *words; /* per slot */
  gp_credits *credits; /* if ranks share the channel; else NULL */
};

/* An edge as one task uses it (gp_edge_use), looked up once. */
typedef struct gp_bound_use {
  gp_bound_channel *channel;
  gp_link *link; /* the link to the task's device; also if that device is the maker */
  /* The turn of the micro-batch that the task is stored with. A stream repeats the task for later
   * micro-batches, which have turns of their own. */
  gp_link_turn turn;
  char *address;    /* the slot on the device; NULL if the device has none */
  uint32_t parties; /* last uses after which a slot is free for the next round */
  bool plain;       /* the edge's words say everything, so no link has to be called */
} gp_bound_use;

/* The part of one replica in a gather (plan/gathers.h), as a copy of a stage finds it. */
typedef struct gp_bound_part {
  gp_bound_use use; /* its step edge; the turn is that of the next time */
  char *address;    /* where the copy's device writes or reads it */
} gp_bound_part;

/* An end of a link that its worker has to poll, or to settle after a failure. */
typedef struct gp_bound_end {
  gp_link *link;
  gp_link_end end;
} gp_bound_end;

typedef struct gp_vote gp_vote;
typedef struct gp_verdict gp_verdict;
typedef struct gp_segment gp_segment; /* segments.h */
typedef struct gp_intake gp_intake;
typedef struct gp_staged gp_staged;
typedef struct gp_host_area gp_host_area; /* host_area.h */

typedef struct gp_bound_device {
  char *block; /* the memory that all of the plan's areas on the device lie in */
  char *scratch, *staging;
  gp_call *calls;          /* the running program's instructions, with their addresses */
  const gp_intake *intake; /* how it gets at mini-batches */
  gp_staged *staged;       /* state of a staged intake; NULL for a direct one */
  gp_bound_end *ends;
  int32_t end_count;
  bool quiet;           /* some of its links wake no worker, so its worker polls */
  gp_host_area *host;   /* what is in the host's memory meanwhile; NULL: nothing */
  char *exchange;       /* the host's memory in which it gathers (plan/areas.h); NULL: its block */
  gp_segment *segments; /* tasks that are launched together */
  int32_t segment_count;
} gp_bound_device;

typedef struct gp_binding {
  gp_pipeline *pipeline;
  gp_plan *plan; /* owned */
  gp_bound_device *devices;
  gp_bound_channel *channels; /* as the plan numbers them: gp_plan_channel */
  gp_bound_use *uses;         /* one for each of the plan's uses, in the same order */
  char **stash;               /* per (stage, copy): older versions of the weights */
  gp_step_check *checks;      /* per device and (stage, copy): as it makes or receives them */
  char **values, **buffers;   /* per (stage, copy): the newest, as its device sees them */
  char **invariant, **constant_copies, **states; /* per (stage, copy) and shape */
  char **partials;                               /* per (stage, copy): partial sums of gradients */
  char **records;        /* per (stage, copy): what F records there (plan/records.h) */
  char **recorded;       /* the same, where the first copy's device finds it */
  char **sent;           /* per (stage, copy): its parts of gathers (plan/gathers.h) */
  gp_bound_part *parts;  /* per copy, gather and replica; those of copies elsewhere are empty */
  int64_t state_count;   /* states of CPU kernels that are prepared */
  char **constants;      /* of both shapes: the start of each one's storage */
  gp_vote **votes;       /* per device (engine/update/vote.h); NULL: no votes */
  const gp_vote **heard; /* per device: its vote, as the deciding device got it */
  size_t *vote_bytes, *vote_at; /* per device; per (stage, copy): its first sum in the vote */
  gp_verdict *verdict; /* per device: as the deciding one made it, or as another rank got it */
  uint64_t prepared;  /* state of the weights that P's results are of (prepared.c); 0: no results */
  gp_link_pool *pool; /* of its links */
  uint64_t ports;     /* the first of the port numbers that are its own, if ranks share it */
  int64_t runs;       /* begun so far, except profiled ones */
  int32_t tag_bits;   /* bits of a tag below the task's number (watch/tags.h) */
} gp_binding;

/* The slot that a micro-batch takes on an edge of the model, and how often it was used before. */
static inline gp_link_turn gp_binding_turn(const gp_plan *plan, int32_t edge, int64_t micro) {
  int64_t turn = gp_plan_turn(plan, edge, micro),
          slots = gp_plan_channel_of(plan, edge, micro)->slots;
  return (gp_link_turn){(int32_t)(turn % slots), (uint32_t)(turn / slots)};
}
/* The same of any edge that a task uses. A step edge is used once in a run unless it turns. */
static inline gp_link_turn gp_binding_task_turn(const gp_plan *plan, const gp_task *task,
                                                int32_t edge, int64_t micro) {
  const gp_step_edge *once = gp_plan_step_edge(plan, edge);
  if (!once) return gp_binding_turn(plan, edge, micro);
  if (!gp_step_turns(plan, once)) return (gp_link_turn){0};
  const int64_t turn = gp_step_turn(plan, once, task, micro), slots = gp_step_slots(plan, once);
  return (gp_link_turn){(int32_t)(turn % slots), (uint32_t)(turn / slots)};
}
/* The same for use u of a task: `bound` knows it, except for later micro-batches of a stream. */
static inline gp_link_turn gp_binding_turn_of(const gp_plan *plan, const gp_task *task, int32_t u,
                                              const gp_bound_use *bound, int64_t micro) {
  if (micro == task->micro) return bound->turn;
  return gp_binding_task_turn(plan, task, task->uses[u].edge, micro);
}
/* The parts of a gather, replica after replica, as a copy finds them. */
static inline gp_bound_part *gp_binding_parts(const gp_binding *b, int32_t copy, int32_t gather) {
  return &b->parts[(copy * b->plan->gather_count + gather) * b->plan->replicas];
}
/* The bound uses of a task: task->use_count of them. */
static inline const gp_bound_use *gp_binding_uses(const gp_binding *b, const gp_task *task) {
  return b->uses + (task->uses - b->plan->uses);
}

#endif
