/* engine/memory/halves.h - the weights of a stage in bf16 or f16, beside the f32 ones that are
 * trained.
 *
 * If a model computes in bf16 or f16, its weights stay f32, and every reader reads them rounded.
 * The rounded weights lie beside the values of the stage, in the same order, and stay from step to
 * step: an update writes both in one pass (optim/update.cu). They are rounded anew, all at once,
 * only after another write to the values: by the script, whose writes their storage counts, or by
 * an update that stopped half-way. A skipped update leaves both as they are. */
#ifndef GP_ENGINE_HALVES_H
#define GP_ENGINE_HALVES_H

#include "engine/memory/arena.h"
#include "engine/worker/worker.h"

/* Bring the halves of a device's stages up to date, before its tasks of a mini-batch read them. */
gp_status gp_halves_refresh(gp_worker *worker);

/* Where an update writes the halves of f32 values of the arena; NULL if the stage has no halves. */
void *gp_halves_of(const gp_arena *arena, const void *values);
/* Mark the halves as stale: the values are written to, and not by an update that has succeeded. */
void gp_halves_spoil(gp_arena *arena);

/* Do stages keep halves? Not with GPIPE_UPDATE_HALVES=0: then P rounds the weights in every step,
 * for comparison. */
bool gp_halves_wanted(void);

#endif
