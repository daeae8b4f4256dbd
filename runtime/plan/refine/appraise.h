/* plan/refine/appraise.h - what a recipe of a stage takes: exact bytes on the stage's device, and
 * seconds by the cost model.
 *
 * Chains (remat/chain.h) take every layer by itself, but what a layer saves and makes again depends
 * on what its neighbours do, and temporaries lie where the slots of values are empty. So a recipe
 * is appraised by building its programs, as for the plan, and by counting what the stage's actions
 * hold. */
#ifndef GP_PLAN_REFINE_APPRAISE_H
#define GP_PLAN_REFINE_APPRAISE_H

#include "plan/memory/places.h"
#include "plan/remat/layer_costs.h"

/* The seconds of a program; NULL takes none (plan/step_time.c). */
double gp_program_seconds(const gp_program *program, gp_remat_rates rates);

typedef struct gp_worth {
  double seconds; /* of a micro-batch: F, R, and its backward pass */
  size_t bytes;   /* of slots and temporaries while the stage's actions run, at the worst moment */
} gp_worth;

/* What is held while an action runs: slots by part, those that F fills and those that R does, and
 * then what I leaves for W. */
enum { GP_HELD_AGAIN = GP_PARTS, GP_HELD_CARRIED = 2 * GP_PARTS, GP_HELD_SLOTS };
typedef struct gp_held_moment {
  gp_act op;
  int32_t slots[GP_HELD_SLOTS];
} gp_held_moment;

typedef struct gp_appraiser {
  gp_shaper shaper; /* a copy with places and a shape of its own */
  gp_shape_plan shape;
  int32_t stage;
  gp_remat_rates rates;
  gp_held_moment *moments; /* that differ */
  int32_t moment_count;
} gp_appraiser;

/* Prepare to appraise recipes of a stage: those that all micro-batches follow. The shaper has
 * graph, stages and recipes. Ownership: the caller frees the appraiser, also on failure. Errors:
 * GP_ENOMEM. */
gp_status gp_appraiser_new(const gp_shaper *shaper, int32_t stage, gp_remat_rates rates,
                           gp_appraiser *appraiser);
void gp_appraiser_free(gp_appraiser *appraiser); /* what it holds; not the struct */

/* Appraise a recipe, which is borrowed. Errors: GP_ENOMEM. Cost: that of the stage's programs,
 * about a microsecond for each node that they run. */
gp_status gp_appraise(gp_appraiser *appraiser, const gp_recipe *recipe, gp_worth *worth);

#endif
