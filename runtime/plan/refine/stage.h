/* plan/refine/stage.h - the recipe of a stage that "auto" has refined: of several lists that might
 * be good, each improved by exact bytes, the best one. */
#ifndef GP_PLAN_REFINE_STAGE_H
#define GP_PLAN_REFINE_STAGE_H

#include "plan/memory/places.h"
#include "plan/remat/layer_costs.h"
#include "plan/remat/stage_dp.h"

typedef struct gp_refine_stage_spec {
  const gp_shaper *shaper;
  const gp_recipe_spec *stage;
  const gp_stage_chain *chain;
  gp_remat_limits limits; /* memory: for the stage's slots and temporaries */
  gp_remat_rates rates;
} gp_refine_stage_spec;

/* Make the recipe. Nothing goes to the host's memory. *made: false if the stage is too large to be
 * refined, and there is no recipe. Ownership: the caller frees the recipe. Errors: GP_ENOMEM.
 * Cost: stages share about a third of a second. */
gp_status gp_refine_stage(const gp_refine_stage_spec *spec, bool *made, gp_recipe *recipe);

#endif
