/* engine/memory/halves.h - the weights of a stage in halves, beside those that are trained.
 *
 * Where a model computes in bf16 or f16 its weights stay f32, and every reader reads them rounded.
 * What is rounded lies beside the values of the stage, in their order, and stays from step to step:
 * an update writes both in one pass (optim/update.cu). It is made anew, of all values at once, only
 * where somebody else wrote to them: the script did, which their storage counts, or an update
 * stopped half-way. Updates that are left out leave both as they are. */
#ifndef GP_ENGINE_HALVES_H
#define GP_ENGINE_HALVES_H

#include "engine/memory/arena.h"
#include "engine/worker/worker.h"

/* Before a device's tasks of a mini-batch read them: let the halves of its stages be those of their
 * values. */
gp_status gp_halves_refresh(gp_worker *worker);

/* Where an update writes the halves of f32 values of the arena; NULL where nobody reads them. */
void *gp_halves_of(const gp_arena *arena, const void *values);
/* The values were written to by other means than an update that succeeded. */
void gp_halves_spoil(gp_arena *arena);

/* Not with GPIPE_UPDATE_HALVES=0: then P makes them in every step, to compare. */
bool gp_halves_wanted(void);

#endif
