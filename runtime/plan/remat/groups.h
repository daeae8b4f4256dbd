/* plan/remat/groups.h - which layers of a stage count as one layer of its chain.
 *
 * In a chain (chain.h) a layer reads what the layer before it makes. The layers of a model may read
 * further back: the end of a residual block reads what the block before it made, and a layer that
 * has become part of another one makes nothing. Layers that lie between such a value and its last
 * reader count as one, if they are few. What is read from further away stays where it is made, and
 * the chain takes it for read by the next layer, as if it could be dropped then. */
#ifndef GP_PLAN_REMAT_GROUPS_H
#define GP_PLAN_REMAT_GROUPS_H

#include "plan/remat/recipe.h"

typedef struct gp_layer_groups {
  int32_t count;
  int32_t *of;    /* per layer of the stage: its group */
  int32_t *first; /* per group: its first layer; first[count]: the number of layers */
} gp_layer_groups;

/* Find the groups of a stage. own: per value, F of the stage makes it. Ownership: the caller frees
 * them. Errors: GP_ENOMEM. Cost: O(nodes of F + layers). */
gp_status gp_layer_groups_new(const gp_recipe_spec *stage, const uint8_t *own,
                              gp_layer_groups *groups);
void gp_layer_groups_free(gp_layer_groups *groups); /* what they hold; not the struct */

#endif
