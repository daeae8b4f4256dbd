/* engine/state/arena.h - where the parameters, gradients and buffers of a stage lie.
 *
 * Each of the three is one block, so that an update is one pass and a copy of a stage one transfer.
 * Offsets are those of plan/memory/layout.h. What plans ask for in addition grows when a plan is
 * made, never in a step. */
#ifndef GP_ENGINE_STATE_ARENA_H
#define GP_ENGINE_STATE_ARENA_H

#include "gpipe/pipeline.h"
#include "gpipe/tensor.h"
#include "optim/gradients.h"

/* The memory of one copy of a stage. Its tensors are reference-counted: a script may hold a value
 * or a gradient longer than the pipeline lives. */
typedef struct gp_arena_copy {
  gp_tensor *value_memory, *grad_memory, *buffer_memory; /* bytes; NULL where there are none */
  /* Start addresses; NULL with another rank. Copies whose devices share memory share values and
   * buffers, which are the first of them's; each copy has its own gradients. */
  char *values, *grads, *buffers;
  char *extras;           /* accumulators beside the gradients (gp_extra_slot) */
  gp_gradients gradients; /* those that the copy owns: it sums and updates them */
  gp_gradients clipped;   /* while a script clips: those of them that it asked for */
  char *earlier; /* gradients of earlier steps that it owns, once a step adds to them apart; or NULL
                  * (update/earlier.h) */
  /* Where its device receives gradients that it owns, and extras, from copies that it cannot read
   * in place: one after the other (gp_arena_part). NULL if it reads all of them in place. */
  char *received_grads, *received_extras;
} gp_arena_copy;

/* The memory of one stage. */
typedef struct gp_arena {
  gp_arena_copy *copies;
  char *committed; /* the buffers before the run, in memory of the first copy's device */
  char *packed;  /* weights in the order that products want (graph/pack.c); all plans share them */
  char *halves;  /* the values in bf16 or f16 (engine/memory/halves.h) */
  gp_dtype half; /* which of the two */
  bool halved; /* the halves match the values as they were after this many writes of the script: */
  uint64_t halved_writes;
  size_t value_bytes, grad_bytes, buffer_bytes, extra_bytes, packed_bytes, half_bytes;
} gp_arena;

/* An accumulator of (param, layer) beside the main one, in the arena of the layer's stage. The list
 * of them is that of the layout. */
typedef struct gp_extra_slot {
  int32_t param, layer, stage;
  size_t offset;
  void *received; /* where the owner's device receives it; NULL if it reads it in place */
} gp_extra_slot;

#endif
