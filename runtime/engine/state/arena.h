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

/* The memory of one stage. Its tensors are reference-counted: a script may hold a value or a
 * gradient longer than the pipeline lives. */
typedef struct gp_arena {
  gp_tensor *value_memory, *grad_memory, *buffer_memory; /* bytes; NULL where there are none */
  /* Start addresses, per copy of the stage. Copies whose devices share memory share values and
   * buffers; each copy has its own gradients. */
  char *values[2], *grads[2], *buffers[2];
  char *committed; /* the buffers before the run, in memory of the first copy's device */
  char *extras[2]; /* per copy: the extra accumulators (gp_extra_slot) */
  char *packed;  /* weights in the order that products want (graph/pack.c); all plans share them */
  char *halves;  /* the values in bf16 or f16 (engine/memory/halves.h) */
  gp_dtype half; /* which of the two */
  bool halved; /* the halves match the values as they were after this many writes of the script: */
  uint64_t halved_writes;
  gp_gradients gradients; /* all gradients of the first copy */
  gp_gradients clipped;   /* while a script clips: the gradients that it asked for */
  /* Where the first copy's device receives the second copy's gradients and extras; NULL if it reads
   * them in place. */
  char *received_grads, *received_extras;
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
