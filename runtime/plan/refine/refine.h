/* plan/refine/refine.h - improves the list of a stage's steps by changing what blocks of layers do,
 * and single ones in the end, with every list judged for what it really takes.
 *
 * A list that does not fit gives up what costs the least time for its bytes, block after block,
 * until it does. One that fits takes the changes that save time and still fit, alone or together
 * with changes of other blocks that make room for them. The answer is deterministic, and no better
 * one is a change of a single layer away unless looks have run out. */
#ifndef GP_PLAN_REFINE_REFINE_H
#define GP_PLAN_REFINE_REFINE_H

#include "plan/refine/appraise.h"
#include "plan/refine/blocks.h"
#include "plan/remat/chain.h"

/* Judge the steps of a backward pass, whose options are names (GP_RECIPE_*). */
typedef gp_status (*gp_judge)(void *context, const gp_remat_list *list, gp_worth *worth);

typedef struct gp_refine_spec {
  const gp_layer_groups *groups; /* of the stage's layers, which the steps name; borrowed */
  int32_t layers;
  const bool *busy; /* per layer: it does something; borrowed */
  int32_t options;  /* of a backward step, from 0 on, that a layer may be given */
  bool joins;       /* layers that run again in front of one another save less than by themselves */
  size_t memory;    /* bytes */
  gp_judge judge;
  void *context; /* borrowed */
} gp_refine_spec;

/* A list and what it takes. */
typedef struct gp_refined {
  gp_remat_list list;
  gp_worth worth;
} gp_refined;

/* Does the first one suit better? One that fits does; of two that fit, the faster one, and of two
 * that do not, the one that takes less. */
bool gp_refine_suits(const gp_refine_spec *spec, const gp_worth *a, const gp_worth *b);

/* Improve a list, which has been judged. *looks: how many lists may still be judged.
 * Errors: GP_ENOMEM, and those of `judge`; the list is the best one so far then. */
gp_status gp_refine(const gp_refine_spec *spec, int32_t *looks, gp_refined *best);

#endif
