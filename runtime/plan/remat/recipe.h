/* plan/remat/recipe.h - what a stage runs for a micro-batch: which nodes its programs execute, in
 * which order, and which values outlive one program.
 *
 * A list of steps says in which order the layers of a stage run forward again and backward
 * (chain.h); a recipe says the same in nodes. Only what is read is made again, and F saves what a
 * reader finds nowhere else. So every list of steps gives the same bits, and its price is in time
 * and memory alone. */
#ifndef GP_PLAN_REMAT_RECIPE_H
#define GP_PLAN_REMAT_RECIPE_H

#include "graph/stages.h"
#include "plan/remat/chain.h"

/* Base values, in the order in which they are made. */
typedef struct gp_ref_list {
  gp_ref *refs;
  int32_t count;
} gp_ref_list;

typedef struct gp_recipe {
  gp_node_list again;         /* R: what runs again ahead of the backward pass */
  gp_node_list backward;      /* B: I and W as one program, and what runs again in between */
  gp_node_list input, weight; /* the same for I and W, where they run apart */
  gp_ref_list saved;          /* what F makes and R, B, I or W reads */
  gp_ref_list away;           /* likewise, of layers whose saved values go to the host's memory */
  gp_ref_list handed;         /* what R makes and B, I or W reads */
} gp_recipe;

/* Notes of the recipes of a graph, all zero between two stages, so that a recipe costs what the
 * stage holds and not what the graph holds. */
typedef struct gp_recipe_notes {
  uint8_t *own;    /* per node: it belongs to F of the stage at hand */
  uint8_t *wanted; /* per value: who reads it */
  int32_t *at;     /* per node: its number in a list + 1 */
} gp_recipe_notes;
gp_status gp_recipe_notes_new(const gp_graph *graph, gp_recipe_notes *notes);
void gp_recipe_notes_free(gp_recipe_notes *notes); /* what they hold; not the struct */

/* A stage whose recipe is made. Its layers are those of the outermost Sequential, and on the last
 * stage the loss behind them. */
typedef struct gp_recipe_spec {
  const gp_graph *graph;
  const gp_stages *stages;
  gp_recipe_notes *notes;
  int32_t stage, first_layer, layer_count;
  bool ahead; /* I and W run apart, so layers that run again belong to R */
} gp_recipe_spec;

/* Options of a backward step. */
enum {
  GP_RECIPE_KEEPS,   /* all stays */
  GP_RECIPE_SELECTS, /* cheap values are made again, each before its first reader (selective.h) */
  GP_RECIPE_SELECTS_MORE, /* so are some that are dear, but less than others of the layer */
  GP_RECIPE_OFFLOADS      /* all goes to the host's memory */
};

/* Make the recipe of the steps of a backward pass. Layers count from the stage's first one; each
 * runs backward once, the last one first. The option of a backward step says what its layer does
 * with what F saves for it. Ownership: the caller frees the recipe. Errors: GP_ENOMEM. */
gp_status gp_recipe_make(const gp_recipe_spec *spec, const gp_remat_step *steps, int32_t count,
                         gp_recipe *recipe);
void gp_recipe_free(gp_recipe *recipe); /* what it holds; not the struct */

/* List I and W of a stage as one, in the order of the graph, so that what W reads is still in the
 * cache. The caller frees list->nodes. */
gp_status gp_merge_backward(const gp_stage_nodes *stage, gp_node_list *list);

/* ---- internal ---------------------------------------------------------------------------------
 */

/* Does the stage have the value from its own forward pass alone? What lies on an edge, is the same
 * for all micro-batches or comes from outside is there in any case. */
static inline bool gp_recipe_owns(const gp_recipe_spec *spec, gp_ref base) {
  const int32_t node = spec->graph->values[base].node;
  return node >= 0 && spec->notes->own[node] && spec->stages->edge_of[base] < 0;
}

#endif
