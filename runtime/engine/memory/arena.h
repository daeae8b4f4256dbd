/* engine/memory/arena.h - makes the arenas of a pipeline's stages (engine/state/arena.h). */
#ifndef GP_ENGINE_ARENA_H
#define GP_ENGINE_ARENA_H

#include "engine/state/pipeline.h"

gp_status gp_arenas_new(gp_pipeline *pipeline);
void gp_arenas_free(gp_pipeline *pipeline);
/* Make memory for what plans have asked for since: extra accumulators, packed weights, halves. On
 * failure what was there stays. *moved: some of it lies elsewhere now. */
gp_status gp_arenas_grow(gp_pipeline *pipeline, bool *moved);

#endif
