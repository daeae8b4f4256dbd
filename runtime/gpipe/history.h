/* gpipe/history.h - gradients of values that ops computed at once. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_HISTORY_H
#define GP_PUBLIC_HISTORY_H

#include "gpipe/op.h"
#include "gpipe/param.h"

/* One application of an op, with what it read and made, and through them all that these came from.
 * Reference-counted; a tensor that was made with a gradient in mind carries one. */
typedef struct gp_history gp_history;

/* An input of an application. */
typedef struct gp_history_input {
  gp_tensor *tensor;   /* retained by the history */
  gp_param *leaf;      /* where gradients end: a parameter, or the leaf of a tensor; NULL */
  gp_history *history; /* or what made the input; NULL */
  int output;          /* and which output of it the input is */
} gp_history_input;

/* An application that was just made. */
typedef struct gp_applied {
  gp_op op;
  const gp_attrs *attrs;
  const gp_history_input *inputs;
  gp_tensor *const *outputs; /* retained */
  int n_in, n_out;
  gp_random_state random; /* as it was before */
} gp_applied;

/* *history receives NULL where the outputs are integers, through which no gradient can flow. */
gp_status gp_history_record(const gp_applied *applied, gp_history **history);
/* The leaf whose memory an output is a view of, through views alone; NULL where it was computed. */
gp_param *gp_history_viewed(const gp_history *history);
gp_history *gp_history_retain(gp_history *history);
void gp_history_free(gp_history *history); /* of any length: it does not recurse */

/* A parameter that stands for a tensor of the script's, whose memory it shares: a leaf. Errors:
 * GP_EDTYPE where it is not of floats. */
gp_status gp_leaf_new(gp_tensor *tensor, gp_param **leaf);

/* Gradients of one value, times seed (its shape and dtype), with respect to leaves.
 * leaves NULL: to all that it came from, added to the gradients that they have; else grads[k]
 * receives that of leaves[k], or NULL where the value does not depend on it, and nothing is stored.
 * Errors: GP_ESTATE where a value that is needed was written to since, or a leaf belongs to a
 * pipeline. */
gp_status gp_history_backward(gp_history *history, int output, gp_tensor *seed,
                              gp_param *const *leaves, int count, gp_tensor **grads);

#endif
