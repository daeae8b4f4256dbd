/* engine/bind/binding.h - a plan joined with a pipeline: the memory that it wants, the
 * links of its edges, and what its devices keep.
 *
 * Made before the first run of a plan and given back with it; runs allocate nothing. Addresses are
 * those of the plan's areas; NULL where it wants nothing.
 */
#ifndef GP_ENGINE_BINDING_H
#define GP_ENGINE_BINDING_H

#include <stdatomic.h>

#include "device/link/link.h"
#include "plan/plan.h"

/* One of the devices that read an edge's values of a copy; the maker's own is among them. */
typedef struct gp_bound_link {
  gp_link *link;
  int32_t reader; /* device */
} gp_bound_link;

typedef struct gp_bound_channel {
  char *made[2];           /* per copy of the making stage */
  int32_t makers[2];       /* their devices */
  char **fetched;          /* per device; NULL where it reads in place, or nothing */
  gp_bound_link *links[2]; /* per copy */
  int32_t link_count[2];
  gp_link_word *words; /* per slot */
} gp_bound_channel;

/* An edge as one task uses it (gp_edge_use), looked up once. */
typedef struct gp_bound_use {
  gp_bound_channel *channel;
  gp_link *link; /* by which the task's device reads, or made, the values */
  /* For the micro-batch that the task is stored with: a stream goes on with others. */
  gp_link_turn turn;
  char *address;    /* of its slot on the device; NULL where it has none */
  uint32_t parties; /* last uses that end a round of a slot */
  int32_t copy;     /* whose links of the channel: the task's, or 0 of a step edge */
  bool plain;       /* the edge's words say all: no link need be asked */
} gp_bound_use;

/* An end of a link that its worker looks after beside its tasks. */
typedef struct gp_bound_end {
  gp_link *link;
  gp_link_end end;
} gp_bound_end;

typedef struct gp_vote gp_vote;
typedef struct gp_verdict gp_verdict;
typedef struct gp_segment gp_segment; /* segments.h */
typedef struct gp_intake gp_intake;
typedef struct gp_staged gp_staged;

typedef struct gp_bound_device {
  char *block; /* the memory that all of the plan's areas on the device lie in */
  char *temp, *scratch, *staging;
  gp_call *calls;          /* of the program that runs, with its addresses */
  const gp_intake *intake; /* how it gets at mini-batches */
  gp_staged *staged;       /* the intake's own; NULL where it needs nothing */
  gp_bound_end *ends;
  int32_t end_count;
  bool quiet;           /* nothing rings for some of its links: its worker asks again and again */
  gp_segment *segments; /* tasks that are launched together */
  int32_t segment_count;
} gp_bound_device;

typedef struct gp_binding {
  gp_pipeline *pipeline;
  gp_plan *plan; /* owned */
  gp_bound_device *devices;
  gp_bound_channel *channels; /* per edge, those of steps behind those of the model */
  gp_bound_use *uses;         /* beside the plan's */
  char **kept;                /* per (stage, copy): slots of values that outlive an action */
  char **stash;               /* per stage: older versions of the weights */
  char **values, **buffers;   /* per (stage, copy): the newest, as its device sees them */
  char **invariant, **replicas, **states; /* per (stage, copy) and shape */
  int64_t state_count;                    /* states of CPU kernels that are prepared */
  char **constants;                       /* of both shapes: where the storage of each begins */
  gp_vote **votes;                        /* per device (engine/update/vote.h); NULL: no votes */
  const gp_vote **heard;                  /* per device: its vote, as the deciding device got it */
  size_t *vote_bytes, *vote_at;           /* per device; per stage: its first sum in the vote */
  gp_verdict *verdict;                    /* of the deciding device */
  uint64_t prepared;  /* weights of which P's results are there (prepared.c); 0: none */
  gp_link_pool *pool; /* of its links */
  int64_t runs;       /* begun so far, but for those that were profiled */
  int32_t tag_bits;   /* of the tags of its ops (execute.h) */
} gp_binding;

/* Take all the memory that runs of the plan need. Ownership: the plan is taken where it
 * succeeds. */
gp_status gp_bind(gp_pipeline *pipeline, gp_plan *plan, gp_binding **binding);
/* Give it back, and free the plan. */
void gp_unbind(gp_binding *binding);
/* Memory of the pipeline has moved: look up its addresses again, and forget the captured
 * graphs. */
void gp_binding_move(gp_binding *binding);

#endif
