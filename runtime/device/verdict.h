/* device/verdict.h - what becomes of a step's gradients, where a device says so itself.
 *
 * The sums of squares of all devices lie in one list of words in its memory; it decides as the host
 * would (engine/update/norm.c), in the same order and precision, and scales and updates look at the
 * result when they run. So they can be enqueued, and kept in graphs, before anybody knows it: what
 * changes from step to step lies in memory, not in the arguments of launches. */
#ifndef GP_DEVICE_VERDICT_H
#define GP_DEVICE_VERDICT_H

#include <stdint.h>

/* Factors for the gradients, one after the other (1: none), and whether parameters are updated. */
typedef struct gp_verdict {
  double unscale, clip;
  int32_t go;
} gp_verdict;

/* What it is made from. Behind it lie int32_t first[part_count + 1], where the words of each device
 * begin, and int32_t listed[listed_count], the words whose sum is the norm's square, in order; -1:
 * a parameter without gradient. The first GP_VERDICT_HEAD words of a device are its fault
 * (gp_gpu_fault), the others sums of squares. */
typedef struct gp_verdict_terms {
  double unscale, clip_norm; /* clip_norm 0: gradients are not clipped */
  int32_t strict;            /* parameters are left alone where a sum is not finite */
  int32_t part_count, listed_count;
} gp_verdict_terms;

enum { GP_VERDICT_HEAD = 2 };

/* By what an update runs, in the device's memory; NULL: by the arguments of the call. */
typedef struct gp_steer {
  const gp_verdict *verdict;
  const void *factors; /* of one group: write_factors */
} gp_steer;

#endif
