/* optim/gradients.h - the gradients of one device, checked and scaled by its own team or GPU.
 *
 * A list is made once and works on the same memory in every step; nothing is allocated then. Sums
 * of squares are those of gp_optim_sum_squares of each tensor as a whole: neither the number of
 * threads nor how parameters are spread over devices changes a bit of them. */
#ifndef GP_OPTIM_GRADIENTS_H
#define GP_OPTIM_GRADIENTS_H

#include "device/lane.h"

typedef struct gp_gradients {
  const gp_lane *lane; /* borrowed; NULL: an empty list that was never made */
  gp_lane_run *runs;   /* one for each tensor */
  int count;
  int64_t *first; /* per tensor, and the total: pieces of the tensors before it */
  double *sums;   /* per tensor: the last result */
  bool stays;     /* sums lies in memory of gp_lane_host_alloc */
  void *scratch;  /* on a GPU: its sums and what it needs for them */
  size_t scratch_bytes;
} gp_gradients;

/* Make a list of count tensors in the lane's memory (runs are copied). Errors: GP_ENOMEM. */
gp_status gp_gradients_new(const gp_lane *lane, const gp_lane_run *runs, int count,
                           gp_gradients *list);
void gp_gradients_free(gp_gradients *list); /* frees what it holds, not the struct */
/* Make a list of some tensors of another list; it uses that list's scratch and is freed before it.
 * among: per tensor. Free it by gp_gradients_free_some. Errors: GP_ENOMEM. */
gp_status gp_gradients_some(const gp_gradients *all, const bool *among, gp_gradients *some);
void gp_gradients_free_some(gp_gradients *some);

/* Let sums[i] be the sum of the squares of tensor i: not finite where one of its elements is not,
 * and only then. Waits. Threads: those that drive the lane. */
gp_status gp_gradients_squares(gp_gradients *list);
/* Check for elements that are not finite, in less time on a CPU: sums[i] is 0 or infinity. */
gp_status gp_gradients_look(gp_gradients *list);
/* Multiply all by a factor: enqueued on a GPU. */
gp_status gp_gradients_scale(const gp_gradients *list, double factor);
/* Tell whether all sums of a list, or all of count sums, are finite. */
bool gp_gradients_are_finite(const gp_gradients *list);
bool gp_sums_are_finite(const double *sums, int count);

#endif
