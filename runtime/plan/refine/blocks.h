/* plan/refine/blocks.h - which layers of a stage change together while its list is refined.
 *
 * Single changes of many layers are many lists to judge. So blocks of neighbours change together at
 * first, and are halved until they are single layers. A block begins with a layer that does
 * something, and large ones begin where layers of the chain do. */
#ifndef GP_PLAN_REFINE_BLOCKS_H
#define GP_PLAN_REFINE_BLOCKS_H

#include "plan/remat/groups.h"

typedef struct gp_refine_blocks {
  int32_t *first; /* per block: its first layer; first[count]: the number of layers */
  int32_t count;
  int32_t layers;
  const bool *busy; /* per layer: it does something; borrowed */
} gp_refine_blocks;

/* Make the largest blocks. Ownership: the caller frees them. Errors: GP_ENOMEM. */
gp_status gp_refine_blocks_new(const gp_layer_groups *groups, int32_t layers, const bool *busy,
                               gp_refine_blocks *blocks);
/* Halve the blocks. Returns false if none has two layers that do something. */
bool gp_refine_blocks_halve(gp_refine_blocks *blocks);
void gp_refine_blocks_free(gp_refine_blocks *blocks); /* what they hold; not the struct */

#endif
