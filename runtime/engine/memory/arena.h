/* engine/memory/arena.h - makes the arenas of a pipeline's stages (engine/state/arena.h). */
#ifndef GP_ENGINE_ARENA_H
#define GP_ENGINE_ARENA_H

#include "engine/state/pipeline.h"

gp_status gp_arenas_new(gp_pipeline *pipeline);
void gp_arenas_free(gp_pipeline *pipeline);
/* Allocate what plans have asked for since: extra accumulators, packed weights, halves. On failure
 * the old memory stays. *moved: extra accumulators lie elsewhere now. */
gp_status gp_arenas_grow(gp_pipeline *pipeline, bool *moved);

/* Bytes in which a copy of a stage receives gradients that it owns from the copies that it cannot
 * read in place; and all extra accumulators, of `bytes` bytes, if it owns one of them. */
size_t gp_arena_received(const gp_pipeline *pipeline, int32_t stage, int32_t copy);
size_t gp_arena_received_extras(const gp_pipeline *pipeline, int32_t stage, int32_t copy,
                                size_t bytes);
/* The place of copy `from` among those: how many of the copies before it are received. */
size_t gp_arena_part(const gp_pipeline *pipeline, int32_t stage, int32_t copy, int32_t from);

/* Bytes that gp_arenas_grow would add on a device for a plan that is not adopted yet. */
size_t gp_arenas_growth(const gp_pipeline *pipeline, const gp_plan *plan, int32_t device);

#endif
