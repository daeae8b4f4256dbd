/* graph/eager/history.h - an application as its two files share it: history.c keeps it, backward.c
 * goes back through it. */
#ifndef GP_GRAPH_EAGER_HISTORY_H
#define GP_GRAPH_EAGER_HISTORY_H

#include "gpipe/history.h"

/* A tensor that an application read or made, and how often it was written to by then. */
typedef struct gp_kept {
  gp_tensor *tensor;
  uint64_t writes;
} gp_kept;

struct gp_history {
  _Atomic int references;
  uint64_t serial; /* applications are made in this order: each after what it read */
  gp_op op;
  gp_attrs attrs;
  gp_random_state random;
  int n_in, n_out;
  gp_history_input in[GP_MAX_INPUTS];
  gp_kept read[GP_MAX_INPUTS], made[GP_MAX_OUTPUTS];
  gp_ref first;     /* of its outputs, in the graph of the pass that goes back; else GP_NONE */
  gp_history *next; /* to be freed */
};

#endif
