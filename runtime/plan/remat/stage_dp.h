/* plan/remat/stage_dp.h - which layers of a stage to keep and which to run again, so that k
 * micro-batches in flight fit a memory limit and the time is least.
 *
 * The answer is optimal among persistent lists (what is kept stays until its backward has read it,
 * and so does its input if that reads it too), up to the number of points that a curve may hold.
 * Sizes are never rounded: a curve is a step function from exact bytes to the least time. When it
 * has too many steps, some are left out, which costs time, never memory. So every list that is
 * found fits, and one is found whenever the limit is at least what gp_remat_least says.
 *
 * A table holds the curve of every range of layers, whatever the number in flight, so that one
 * table of a whole model serves all stages of all its cuts. Ranges of equal layers share a curve,
 * so a model of repeated blocks costs little.
 *
 * Source: shared/reference/rematerialization-and-memory.md, section 3. */
#ifndef GP_PLAN_REMAT_STAGE_DP_H
#define GP_PLAN_REMAT_STAGE_DP_H

#include "plan/remat/chain.h"

typedef struct gp_remat_limits {
  size_t memory;     /* bytes of the device for all that this stage keeps and has in work */
  int32_t in_flight; /* micro-batches, at least 1 */
  bool once; /* each layer runs once in F, keeping only inputs of segments, and once more in B: the
                policy `always`. The time is the same for all cuts into segments, so the list with
                the lowest peak is taken. */
} gp_remat_limits;

typedef struct gp_remat_table gp_remat_table;

typedef struct gp_remat_table_spec {
  const gp_remat_chain *chain; /* all layers of the model; the layers are borrowed until the table
                                  is freed */
  size_t memory;               /* the largest limit that will be asked for */
  int32_t quanta;              /* most points of a curve; 0: 500. Fewer are taken for long chains of
                                  different layers, down to 24. */
} gp_remat_table_spec;

/* Compute the table of all ranges of layers.
 * Errors: GP_EINVAL, GP_ENOMEM (for the table itself).
 * Cost: O(layers^3 x quanta); equal ranges count once. 100 different layers of three options take
 * about half a second and 30 MB, 200 take 2 s, 400 take 10 s; 400 layers that repeat every four
 * take a second. */
gp_status gp_remat_table_new(const gp_remat_table_spec *spec, gp_remat_table **table);
void gp_remat_table_free(gp_remat_table *table);
int32_t gp_remat_table_quanta(const gp_remat_table *table); /* what was taken */

/* A stage: the layers first .. end - 1 of the table's chain. Steps count layers from `first`. */
typedef struct gp_remat_stage {
  const gp_remat_table *table; /* borrowed */
  int32_t first, end;
} gp_remat_stage;

/* Find the fastest list within the limits. The caller frees the list.
 * Errors: GP_EINVAL; GP_ENOMEM saying how many bytes are the least.
 * Threads: any number may solve from one table.
 * Cost: O(layers^2 x quanta) per cap on what is parked, one for one micro-batch in flight and at
 * most 36 otherwise: 0.03 s and 0.1 to 0.5 s for 100 layers. */
gp_status gp_remat_solve(const gp_remat_stage *stage, const gp_remat_limits *limits,
                         gp_remat_list *list);

typedef struct gp_remat_point {
  size_t parked; /* a micro-batch parks at most that much */
  int64_t time;  /* ns, the least; -1: nothing fits */
} gp_remat_point;

/* Compute the least time for `count` caps on what a micro-batch parks, evenly spaced up to memory /
 * in_flight; the active one may use what the others leave. For planners that spread memory over
 * several stages of a device. Errors: GP_EINVAL. */
gp_status gp_remat_curve(const gp_remat_stage *stage, const gp_remat_limits *limits,
                         gp_remat_point *points, int32_t count);

/* gp_remat_solve with a table of its own, for one stage. */
gp_status gp_remat_plan(const gp_remat_chain *chain, const gp_remat_limits *limits, int32_t quanta,
                        gp_remat_list *list);

/* Find the fastest list with the lowest peak that any list has; limits->memory is not read, the
 * peak is list->peak. Errors: GP_EINVAL. */
gp_status gp_remat_least(const gp_remat_chain *chain, const gp_remat_limits *limits,
                         gp_remat_list *list);

#endif
