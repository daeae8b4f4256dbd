/* plan/edge/step_edges.h - what crosses devices once per mini-batch: parameters, gradients, votes.
 *
 * The edges of a model carry a value per micro-batch; a step edge carries one per mini-batch, from
 * memory that outlives it. Links carry both kinds alike, and tasks wait for and publish both alike:
 * step edges are numbered behind the model's. So no device reads the memory of another but through
 * a link, and there is no barrier, only waits for what is read.
 *
 *   at the begin    PARAM     a parameter or buffer that a stage on another device reads, or the
 *                             halves of a parameter
 *                   VALUES    the values that a copy of a stage owns, for the other copies
 *                   BUFFERS   the buffers of the first copy, likewise
 *   behind these    BROUGHT   nothing but the news that another device has brought the values and
 *                             buffers of a stage to the memory of both
 *   before REDUCE   GRADS     the gradients of a copy that another copy owns, for that one, in
 *                             buckets (buckets.h): of each stage as soon as they are there, if
 *                             there are replicas
 *                   EXTRAS    its accumulators beside them
 *   before S        RECORDS   what the micro-batches of a copy leave for buffers, for the copy that
 *                             keeps these (plan/records.h)
 *   before U        CHECK     in a stream: whether the gradients that a copy owns are finite
 *   before TIE      TIED      an accumulator of a parameter that lies with another device
 *   before CLIP, U  VOTE      a device's norms and failures, for the device that decides
 *                   VERDICT   what that has decided, for all
 *
 * Copies of a stage that share memory have one room there for values and buffers from elsewhere.
 * The first of their devices brings these for all: it waits for them in a task SEND before any
 * work, and publishes BROUGHT. The others follow it: they wait for BROUGHT as well as for the
 * maker, from which they get no bytes. Their last use counts all the same, so the maker's next
 * values come only when all have read these. A SEND that publishes values waits for nothing, so
 * nothing waits in a circle.
 *
 * Each is published by a task SEND, VOTE or DECIDE of its maker, or while the last backward pass of
 * its stage still runs.
 *
 * In a stream, parameters (buffers, as all else is refused) cross once, when it begins. Its
 * replicas update together, so what joins them crosses with every mini-batch. All of that has one
 * slot whose turns are the mini-batches, and the maker waits until the readers are through with the
 * turn before: the first task that writes gradients again for their sums (REDUCE), an update for
 * the values of the one before to be taken over (UNSHARD), a check for the last update. RECORDS has
 * a slot for each mini-batch whose forward passes begin before the update of the first of them:
 * behind that update the first of these passes writes its slot again. Nobody has to wait for long,
 * as replicas go in step. Replicas have values of their own there, also in one
 * memory (gp_layout.apart), because the one that owns a parameter updates it while others still
 * read the version before. So they are taken over from the owner's memory, or from the room where
 * they have come in, before the first task that reads them. A turn of VALUES is a version: SEND
 * publishes the first one, U of mini-batch t the one behind it.
 *
 * GATHER is like these in all but the times: it carries a copy's part of what all replicas gather
 * (gathers.h), once for each micro-batch, and tasks publish and read it in their programs. */
#ifndef GP_PLAN_STEP_EDGES_H
#define GP_PLAN_STEP_EDGES_H

#include "plan/make.h"

typedef enum gp_step_value {
  GP_STEP_PARAM,
  GP_STEP_VALUES,
  GP_STEP_BUFFERS,
  GP_STEP_BROUGHT,
  GP_STEP_GRADS,
  GP_STEP_EXTRAS,
  GP_STEP_RECORDS,
  GP_STEP_CHECK,
  GP_STEP_GATHER,
  GP_STEP_TIED,
  GP_STEP_VOTE,
  GP_STEP_VERDICT
} gp_step_value;

/* A device that reads a step edge, and the part of the plan's memory that takes the value in: empty
 * where it is read in place or where the pipeline has the room. */
typedef struct gp_step_reader {
  int32_t device;
  bool follows; /* another device brings the value to the memory of both */
  gp_area area;
} gp_step_reader;

struct gp_step_edge {
  gp_step_value value;
  int32_t stage;  /* that owns what crosses; -1 for VOTE and VERDICT */
  int32_t copy;   /* VALUES to GATHER, but BROUGHT: the copy of the stage that makes it */
  int32_t to;     /* GRADS to RECORDS: the copy that reads it; CHECK: all copies do */
  size_t offset;  /* VALUES, GRADS: where it begins in the area of the stage */
  int32_t number; /* PARAM: of the parameter, TIED: of the extra, both in the layout; GRADS: of the
                   * bucket; GATHER: of the gather */
  int32_t maker;  /* device */
  bool half;      /* PARAM: its halves, from `offset` in those of the stage */
  size_t bytes;   /* PARAM: of the parameter; the engine knows the others */
  gp_step_reader *readers; /* other devices, ascending */
  int32_t reader_count;
};

/* Which values a task SEND publishes. */
typedef enum gp_step_phase {
  GP_STEP_AT_BEGIN,
  GP_STEP_AT_BROUGHT, /* the device has brought values for others */
  GP_STEP_AT_REDUCE,
  GP_STEP_OF_STAGE, /* the same for the task's stage alone, right behind its last backward pass */
  GP_STEP_AT_LATE,
  GP_STEP_AT_TIE
} gp_step_phase;

/* List the step edges, once the shapes are built. tied: accumulators are added at the end. Needs
 * plan->active and plan->decides. */
gp_status gp_plan_add_step_edges(gp_plan *plan, const gp_plan_env *env, bool tied);
/* Does a task SEND of that phase publish the edge? stage: read with GP_STEP_OF_STAGE. */
bool gp_step_is_sent(const gp_plan *plan, const gp_step_edge *edge, gp_step_phase phase,
                     int32_t stage);
/* Does the device, a reader of the edge, bring the value for others? */
bool gp_step_is_brought_by(const gp_plan *plan, const gp_step_edge *edge, int32_t device);
/* Does a device publish anything at that point? stage: read with GP_STEP_OF_STAGE. */
bool gp_plan_sends(const gp_plan *plan, int32_t device, gp_step_phase phase, int32_t stage);
/* Does the edge carry something with every mini-batch of a stream? */
static inline bool gp_step_turns(const gp_plan *plan, const gp_step_edge *edge) {
  return gp_plan_shares_updates(plan) &&
         (edge->value == GP_STEP_VALUES || edge->value == GP_STEP_GRADS ||
          edge->value == GP_STEP_EXTRAS || edge->value == GP_STEP_CHECK ||
          edge->value == GP_STEP_RECORDS);
}
/* Count the turns that such an edge has room for at once. */
static inline int32_t gp_step_slots(const gp_plan *plan, const gp_step_edge *edge) {
  return edge->value == GP_STEP_RECORDS ? plan->record_rounds[edge->stage] : 1;
}
/* The turn of such an edge that a task uses when it runs for a micro-batch. */
static inline int64_t gp_step_turn(const gp_plan *plan, const gp_step_edge *edge,
                                   const gp_task *task, int64_t micro) {
  const int64_t step = micro / plan->step_micros;
  if (edge->value != GP_STEP_VALUES || task->op == GP_ACT_SEND) return step;
  if (task->op == GP_ACT_U) return step + 1;
  return task->version + (micro - task->micro) / plan->batch;
}
/* Does the device take over values of the stage that other copies own (UNSHARD)? */
bool gp_plan_takes(const gp_plan *plan, int32_t device, int32_t stage);
/* The device that collects the votes. */
int32_t gp_plan_decider(const gp_plan *plan);
/* Add the uses of step edges to those of the model's edges, once tasks have these. */
gp_status gp_plan_add_step_uses(gp_plan *plan);
void gp_plan_free_step_edges(gp_plan *plan);

/* The step edge of that number of an edge; NULL for one of the model's. */
static inline const gp_step_edge *gp_plan_step_edge(const gp_plan *plan, int32_t edge) {
  return edge < plan->edge_count ? NULL : &plan->step_edges[edge - plan->edge_count];
}
/* What CHECK carries. */
typedef struct gp_step_check {
  int64_t finite;
} gp_step_check;
/* What it carries, for people: "the vote". */
const char *gp_step_edge_name(const gp_step_edge *edge);

#endif
