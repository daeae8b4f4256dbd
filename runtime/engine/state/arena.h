/* engine/state/arena.h - where the parameters, gradients and buffers of a stage lie.
 *
 * Contiguous, so that an update is one pass and copies of a stage one transfer. Offsets are those
 * of plan/memory/layout.h; what plans ask for beside them grows as plans are made, never in a
 * step. */
#ifndef GP_ENGINE_STATE_ARENA_H
#define GP_ENGINE_STATE_ARENA_H

#include "gpipe/pipeline.h"
#include "gpipe/tensor.h"
#include "optim/gradients.h"

/* Memory of one stage. Counted: a script may hold a value or a gradient longer than the pipeline
 * lives. */
typedef struct gp_arena {
  gp_tensor *value_memory, *grad_memory, *buffer_memory; /* bytes; NULL where there are none */
  /* Where they begin, per copy of the stage. Copies whose devices share memory share values and
   * buffers; each has gradients of its own. */
  char *values[2], *grads[2], *buffers[2];
  char *committed; /* buffers as they were before the run; with the first copy */
  char *extras[2]; /* per copy: accumulators beside the main ones */
  char *packed;  /* weights in the order that products want (graph/pack.c); all plans share them */
  char *halves;  /* the values in halves (engine/memory/halves.h) */
  gp_dtype half; /* which */
  bool halved;   /* they are those of the values after so many writes of the script: */
  uint64_t halved_writes;
  gp_gradients gradients; /* of the first copy: of the parameters that have some */
  gp_gradients clipped;   /* while a script clips: those of them that it asks for */
  /* Where the first copy's device takes in the second's gradients and extras; NULL where it reads
   * them. */
  char *received_grads, *received_extras;
  size_t value_bytes, grad_bytes, buffer_bytes, extra_bytes, packed_bytes, half_bytes;
} gp_arena;

/* Accumulator of (param, layer) beside the main one, in the arena of the layer's stage: those of
 * the layout. */
typedef struct gp_extra_slot {
  int32_t param, layer, stage;
  size_t offset;
  void *received; /* where the owner's device takes it in; NULL where it can read it */
} gp_extra_slot;

#endif
