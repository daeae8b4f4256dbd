/* gpipe/history.h - gradients of values that ops computed eagerly. See gpipe.h for what
 * holds everywhere. */
#ifndef GP_PUBLIC_HISTORY_H
#define GP_PUBLIC_HISTORY_H

#include "gpipe/op.h"
#include "gpipe/param.h"

/* One application of an op: what it read and made and, through the histories of its inputs,
 * everything that these were computed from. Reference-counted; a tensor that was made while
 * gradients were recorded carries one. */
typedef struct gp_history gp_history;

/* An input of an application. */
typedef struct gp_history_input {
  gp_tensor *tensor;   /* retained by the history */
  gp_param *leaf;      /* where the gradient ends: a parameter, or a tensor's leaf; or NULL */
  gp_history *history; /* the application that made the input; or NULL */
  int output;          /* which of that application's outputs the input is */
} gp_history_input;

/* An application that was just made. */
typedef struct gp_applied {
  gp_op op;
  const gp_attrs *attrs;
  const gp_history_input *inputs;
  gp_tensor *const *outputs; /* retained */
  int n_in, n_out;
  gp_random_state random; /* before the op drew */
} gp_applied;

/* Record an application. *history receives NULL if the outputs are integers, through which no
 * gradient can flow. */
gp_status gp_history_record(const gp_applied *applied, gp_history **history);
/* Return the leaf whose memory an output views, through views alone; NULL if it was computed. */
gp_param *gp_history_viewed(const gp_history *history);
gp_history *gp_history_retain(gp_history *history);
void gp_history_free(gp_history *history); /* of any length: it does not recurse */

/* Make a leaf: a parameter that stands for a tensor of the script's and shares its memory. Errors:
 * GP_EDTYPE for a tensor that is not of floats. */
gp_status gp_leaf_new(gp_tensor *tensor, gp_param **leaf);

/* Compute the gradients of one value, times seed (of its shape and dtype), with respect to
 * leaves. leaves NULL: to all leaves that it came from, added to the gradients that they have.
 * Else grads[k] receives that of leaves[k], or NULL if the value does not depend on it, and
 * nothing is stored. Errors: GP_ESTATE if a value that is needed was written to since, or a leaf
 * belongs to a pipeline. */
gp_status gp_history_backward(gp_history *history, int output, gp_tensor *seed,
                              gp_param *const *leaves, int count, gp_tensor **grads);

#endif
