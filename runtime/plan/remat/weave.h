/* plan/remat/weave.h - puts cheap nodes that run again into a list, each before its first reader.
 */
#ifndef GP_PLAN_REMAT_WEAVE_H
#define GP_PLAN_REMAT_WEAVE_H

#include "plan/remat/recipe.h"

/* Insert the cheap nodes (ascending) into a list; the nodes from place `begin` on count as readers.
 * A node that none of them reads is left out. list->nodes is replaced; the caller frees it.
 * Errors: GP_ENOMEM; the list is as before then. */
gp_status gp_weave(const gp_recipe_spec *spec, const gp_node_list *cheap, int32_t begin,
                   gp_node_list *list);

#endif
