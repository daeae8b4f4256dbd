/* device/verdict.h - a device's own decision about a step's gradients.
 *
 * The sums of squares of all devices lie in one list of words in the device's memory. The device
 * decides as the host would (engine/update/norm.c), in the same order and precision; scales and
 * updates read the result when they run. So they can be enqueued, and kept in graphs, before the
 * result is known: what changes from step to step lies in memory, not in the arguments of
 * launches. */
#ifndef GP_DEVICE_VERDICT_H
#define GP_DEVICE_VERDICT_H

#include <stdint.h>

/* Two factors for the gradients, applied one after the other (1: none), and whether parameters are
 * updated. */
typedef struct gp_verdict {
  double unscale, clip;
  int32_t go;
} gp_verdict;

/* The terms of the decision. Behind them lie int32_t first[part_count + 1], where the words of each
 * device begin, and int32_t listed[listed_count], the words whose sum is the norm's square, in
 * order; -1: a parameter without gradient. The first GP_VERDICT_HEAD words of a device are its
 * fault (gp_gpu_fault), the others sums of squares. */
typedef struct gp_verdict_terms {
  double unscale, clip_norm; /* clip_norm 0: gradients are not clipped */
  int32_t strict;            /* leave parameters alone if a sum is not finite */
  int32_t part_count, listed_count;
} gp_verdict_terms;

enum { GP_VERDICT_HEAD = 2 };

/* What directs an update, in the device's memory; NULL: the arguments of the call do. */
typedef struct gp_steer {
  const gp_verdict *verdict;
  const void *factors; /* of one group, made by write_factors */
} gp_steer;

#endif
