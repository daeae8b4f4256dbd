/* plan/make.h - how a plan is made: what it is made for, and the steps, each in its file.
 *
 *   shape.c           traced model -> gradient -> stages, for one number of rows
 *   recipes.c         what a stage runs, keeps and runs again, by the mode (remat/, refine/)
 *   stage_programs.c  stages -> programs, with values kept or made again (program/, variant.c)
 *   temp.c            where the values lie that belong to one program (arrange/)
 *   places.c          where the values lie that belong to no single program
 *   crossings.c       parameters of other devices that a stage reads
 *   owners.c          which copy of a stage sums and updates a parameter
 *   constants.c        constants that a device reads in memory of its own
 *   buffers.c         checks that one stage has all uses of a buffer that forward writes
 *   records.h         what forward passes leave for buffers where another device writes these
 *   schedule/         schedule -> lowered schedule: recomputation, ascending W, reductions, updates
 *   lower.c           lowered schedule -> tasks with programs
 *   order.c           the number of each task, in an order in which all can run
 *   outline.c         what all shares of a plan have in common, as a hash that ranks compare
 *   offload.c         what goes to the host's memory between F and its backward pass
 *   slots.c           where a task keeps values for later ones
 *   touched.c         which edges the actions of a stage touch
 *   accesses.c        what a stage does with the values of its edges, and how long it holds them
 *   uses.c            which of them a task waits for, publishes and releases
 *   gathers.c           what all replicas make together in the middle of their tasks
 *   step_edges.c      what crosses devices once per mini-batch: parameters, gradients, votes
 *   transfers.h       what GPUs of two ranks send each other, and that it comes to its end
 *   flow.c            a dry run of the lowered schedule: when each device can go on
 *   opens.c           which tasks write gradients that others add to
 *   sums.c            the tree by which micro-batches' gradients are added
 *   versions.c        which version of the weights a task reads, and what must be stashed
 *   ranges.c          which tasks belong to which mini-batch
 *   channels.h        the channels of edges, numbered by copy
 *   turns.c           which copy of a stage runs a micro-batch, and in which turn
 *   overlap.c         how many slots the two copies of a stage can have in common
 *   capacity.c        how many slots an edge needs so that its maker never waits for one
 *   forward.c         the same in plans without backward passes: a few slots, and makers wait
 *   wire.c            some more there for values and credits that cross a network
 *   memory.c          what the plan needs on each device: areas of one block
 *   work.c            the work area of a device: where slots and temporaries lie (arrange/)
 *   states.c          where the states of CPU kernels lie
 *   plan.c            puts them together
 *   step_time.c       how long a step takes by the cost model
 *   areas.c, left.c   tell what a finished plan needs: bytes by area, and what tasks leave
 */
#ifndef GP_PLAN_MAKE_H
#define GP_PLAN_MAKE_H

#include "plan/memory/layout.h"
#include "plan/plan.h"
#include "schedule/passes.h"
#include "schedule/schedule.h"

/* What a plan is made for. */
typedef struct gp_plan_env {
  gp_layout *layout; /* where parameters lie; the plan adds to a copy of it */
  const gp_plan_device_spec
      *devices; /* per device; NULL: all work in the host's memory and take packed weights */
  const int32_t *stage_of; /* per layer and one for the loss */
  int32_t layer_count, stage_count, device_count;
  int32_t share; /* see gp_plan: programs, tasks and memory of these devices only */
  gp_remat remat;
  const gp_layer_remat *layers; /* per layer: what it does with remat BY_LAYER */
  gp_update_mode update;
  bool norm, clip;   /* before updates behind a barrier: see gp_lower_options */
  bool scaled;       /* gradients are divided by the loss scale after every backward pass */
  bool fuse;         /* neighbouring ops of a layer are fused (graph/fuse.c) */
  bool finite;       /* every result is checked, so nothing is overwritten before */
  bool added;        /* gradients start from zeros; else the first micro-batch writes them */
  int32_t sum_group; /* micro-batches in a leaf of the tree of sums; 0: there is none (sums.h) */
  size_t bucket;     /* least bytes of a bucket of gradients; 0: the default (edge/buckets.h) */
} gp_plan_env;

/* Does a policy by name send saved values to the host's memory? */
static inline bool gp_plan_env_offloads(const gp_plan_env *env) {
  bool any = env->remat == GP_REMAT_OFFLOAD;
  for (int32_t l = 0; env->layers && l < env->layer_count; l++)
    any |= env->layers[l] == GP_LAYER_OFFLOAD;
  return any;
}

/* Copy what each layer does, with an entry for the loss, which keeps what it reads; *layers: NULL
 * unless the pipeline says it layer by layer (recipes.c). */
gp_status gp_layer_remats_copy(const gp_pipeline_spec *spec, gp_layer_remat **layers);

/* What the programs of a shape are built from. */
typedef struct gp_shape_spec {
  const gp_plan_env *env;
  const gp_plan_spec *plan;
  const gp_lowered *lowered;
  const bool *apart;   /* per stage: I and W run as programs of their own */
  const bool *hoisted; /* per stage: something runs between an R and its backward pass */
} gp_shape_spec;

enum { GP_WHY_LATE = 96 };

gp_status gp_shape_build(const gp_shape_spec *spec, const gp_traced_shape *from,
                         gp_shape_plan *shape);
void gp_shape_free(gp_shape_plan *shape);
/* Why F cannot write buffers in the order of the micro-batches, so that S does (plan/buffers.c);
 * NULL: F can, nothing can, or no buffer is written. */
const char *gp_shape_why_late(const gp_shape_spec *spec, const gp_graph *graph,
                              char text[GP_WHY_LATE]);
/* Errors: GP_EINVAL where stages would share a buffer that forward writes (plan/buffers.c). */
gp_status gp_shape_check_buffers(const gp_shape_spec *spec, const gp_graph *graph,
                                 const gp_stages *stages);

/* Each function adds one part to the plan: the tasks of the lowered schedule (lower.c), which of
 * them open gradients (opens.c), the slots of what they keep (slots.c), their edges (uses.c), the
 * versions of the weights (versions.c), the ranges of mini-batches (ranges.c), the slots per edge
 * (capacity.c). */
gp_status gp_plan_add_tasks(gp_plan *plan, const gp_schedule *schedule, const gp_lowered *lowered);
gp_status gp_plan_add_opening(gp_plan *plan);
gp_status gp_plan_add_slots(gp_plan *plan);
gp_status gp_plan_add_uses(gp_plan *plan);
gp_status gp_plan_add_versions(gp_plan *plan, const gp_plan_env *env);
gp_status gp_plan_add_ranges(gp_plan *plan, const gp_lowered *lowered);
gp_status gp_plan_find_turns(gp_plan *plan, const gp_lowered *lowered);
/* Errors: GP_ESCHEDULE where two copies of a stage would share out the values of a link. */
gp_status gp_plan_check_turns(const gp_plan *plan);
gp_status gp_plan_size_channels(gp_plan *plan, const gp_lowered *lowered);
/* How many slots a channel gets for values on their way to another process, and for credits on
 * their way back, where its maker waits for free slots; 0 in one process (edge/wire.c). */
gp_status gp_plan_wire_slots(const gp_plan *plan, int32_t channel, int32_t *slots);
/* The bytes of an edge's value in the micro-batches of one size; 0 where they do not use it. */
gp_status gp_plan_edge_bytes(const gp_plan *plan, int32_t edge, int size, size_t *bytes);
/* Lay out everything that runs of the plan need, as areas of one block per device (memory.c). */
gp_status gp_plan_add_memory(gp_plan *plan);

/* Note what every share of the plan knows of all devices: who runs the first and the last stage,
 * and the hash of models, placement and actions. Errors: GP_ENOMEM. */
gp_status gp_plan_add_outline(gp_plan *plan, const gp_lowered *lowered);
/* Choose the share for a rank, or for the devices that are shown: 0 if the plan has to be whole.
 * Edges of late buffers and of gathers follow from programs, streams from the tasks of all devices,
 * and NCCL's order of transfers from those of both ends. */
int32_t gp_plan_share_of_rank(const gp_plan_env *env, const gp_plan_spec *spec, int32_t rank);
int32_t gp_plan_share_of_shown(const gp_plan_env *env, const gp_plan_spec *spec);

/* Build the plan; traces are taken, also on failure. */
gp_status gp_plan_make(const gp_plan_env *env, const gp_plan_spec *spec, gp_plan **plan);

#endif
