/* plan/remat/layer_costs.h - the layers of a stage as a chain (chain.h), whose layers are groups of
 * them (groups.h): what they cost and keep, from the graph and by the cost model. */
#ifndef GP_PLAN_REMAT_LAYER_COSTS_H
#define GP_PLAN_REMAT_LAYER_COSTS_H

#include "plan/remat/groups.h"

/* What a device is taken to do in a second. Only the ratio matters here: it says which layers are
 * dear to run again. */
typedef struct gp_remat_rates {
  double flop, bytes;
} gp_remat_rates;

/* The rates of a kind of device. A core runs chains of cheap ops from its cache, so they cost it
 * little; a GPU reads them from memory, and does products a hundred times as fast. */
static inline gp_remat_rates gp_remat_rates_of(bool own_memory) {
  return own_memory ? (gp_remat_rates){.flop = 2e14, .bytes = 2e12}
                    : (gp_remat_rates){.flop = 1e11, .bytes = 4e10};
}

/* The seconds of an op: what takes longer, computing or moving. */
static inline double gp_remat_seconds(gp_remat_rates rates, gp_cost cost) {
  const double flop = cost.flop / rates.flop, bytes = cost.bytes / rates.bytes;
  return flop > bytes ? flop : bytes;
}

/* The chain of a stage, and the memory of its options. */
typedef struct gp_stage_chain {
  gp_remat_chain chain;
  gp_layer_groups groups;
  gp_remat_layer *layers;   /* one per group */
  gp_remat_option *options; /* up to four per layer: keep all; make cheap values again; make more
                               than these again; let all wait in the host's memory */
  uint8_t *names;           /* of each of them, as recipes call it (GP_RECIPE_*) */
} gp_stage_chain;

/* Notes of the chains of a graph, all zero between two stages, so that a chain costs what the stage
 * holds and not what the graph holds. */
typedef struct gp_chain_notes {
  uint8_t *saved; /* per value: bit of each option that saves it */
  uint8_t *later; /* per value: a later layer has been seen to read it */
  uint8_t *own;   /* per value: F makes it, and not P */
  int32_t *last;  /* per value: place of its last reader in the list at hand + 1 */
} gp_chain_notes;
gp_status gp_chain_notes_new(const gp_graph *graph, gp_chain_notes *notes);
void gp_chain_notes_free(gp_chain_notes *notes); /* what they hold; not the struct */

/* What the chain is made from: the recipes that keep everything, what is not cheap, and less than
 * that. An option is left out where it keeps no less than the one before it. */
typedef struct gp_chain_spec {
  const gp_recipe_spec *stage;
  const gp_chain_notes *notes;
  const gp_recipe *keeps, *selects, *more;
  gp_remat_rates rates;
  gp_host_link link;
} gp_chain_spec;

/* Make the chain. What lies on edges does not count: it is there in any case. Transient bytes are
 * those of values that live at once, without the holes that their placement leaves. Ownership: the
 * caller frees it. Errors: GP_ENOMEM. */
gp_status gp_stage_chain_new(const gp_chain_spec *spec, gp_stage_chain *chain);
/* The name of an option of a layer of the chain. */
int32_t gp_stage_chain_name(const gp_stage_chain *chain, int32_t layer, int32_t option);
void gp_stage_chain_free(gp_stage_chain *chain); /* what it holds; not the struct */

#endif
