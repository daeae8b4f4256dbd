/* graph/eager/history.h - an application of an op, as history.c records it and backward.c reads
 * it. */
#ifndef GP_GRAPH_EAGER_HISTORY_H
#define GP_GRAPH_EAGER_HISTORY_H

#include "gpipe/history.h"

/* A tensor that an application read or made, and how often it had been written to by then. */
typedef struct gp_kept {
  gp_tensor *tensor;
  uint64_t writes;
} gp_kept;

struct gp_history {
  _Atomic int references;
  uint64_t serial; /* applications are numbered in order: each comes after those that it read */
  gp_op op;
  gp_attrs attrs;
  gp_random_state random;
  int n_in, n_out;
  gp_history_input in[GP_MAX_INPUTS];
  gp_kept read[GP_MAX_INPUTS], made[GP_MAX_OUTPUTS];
  gp_ref first;     /* its first output in the graph of a backward pass; else GP_NONE */
  gp_history *next; /* to be freed */
};

#endif
