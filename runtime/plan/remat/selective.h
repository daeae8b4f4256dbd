/* plan/remat/selective.h - which values a stage keeps if its cheap ops may run twice: a minimum
 * cut.
 *
 * Source: the partition of a joint graph by a minimum cut, as in torch's min-cut partitioner
 * (functorch, 2022); what is cheap: Korthikanti et al. 2022, section 5. */
#ifndef GP_PLAN_REMAT_SELECTIVE_H
#define GP_PLAN_REMAT_SELECTIVE_H

#include "plan/remat/recipe.h"

/* An op with fewer operations than that per byte that it moves is cheap: norms, activations,
 * dropout, softmax. Products, convolutions and attention do more. */
enum { GP_CHEAP_INTENSITY = 8 };

/* What a layer may do: its cheap nodes may run twice; it runs again as a whole, and needs what
 * other layers give it; what F saves of it goes to the host's memory; beside its cheap nodes those
 * may run twice that are no dearer for the bytes that they make than the dear ones of the layer are
 * in the mean. */
enum { GP_LAYER_SELECTS = 1, GP_LAYER_AGAIN = 2, GP_LAYER_GOES = 4, GP_LAYER_SELECTS_MORE = 8 };

typedef struct gp_selective_spec {
  const gp_recipe_spec *recipe;
  const unsigned *modes;        /* per layer of the stage */
  const gp_node_list *backward; /* of the stage */
} gp_selective_spec;

/* List the nodes of selecting layers that run again, ascending: with them the stage keeps the
 * fewest bytes, and among equal choices the fewest nodes run again. The caller frees list->nodes.
 * Errors: GP_ENOMEM. */
gp_status gp_selective_nodes(const gp_selective_spec *spec, gp_node_list *list);

#endif
