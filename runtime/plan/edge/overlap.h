/* plan/edge/overlap.h - slots that two rings in one memory have in common.
 *
 * The two copies of a stage have rings of their own, so that neither waits for the other. Where one
 * copy begins late, it may take slots over that the other is through with: the first ones of one
 * ring are the last ones of the other. */
#ifndef GP_PLAN_EDGE_OVERLAP_H
#define GP_PLAN_EDGE_OVERLAP_H

#include <stdint.h>

enum { GP_UNKNOWN = -1 };

/* The i-th of so many micro-batches, ascending, takes slot i mod slots. */
typedef struct gp_ring {
  const int32_t *micros;
  int32_t count, slots;
} gp_ring;

/* Who knows when values of an edge are made and read for the last time. */
typedef struct gp_overlap_asker {
  void *context;
  int32_t edge;
  /* Is the value of one micro-batch known to be over when that of another is made? Returns 0 or 1,
   * or GP_UNKNOWN and a device. */
  int (*is_over)(const void *context, int32_t edge, int32_t before, int32_t micro, int32_t *device);
  void (*learn)(void *context, int32_t device); /* finds out more about the device */
} gp_overlap_asker;

/* The most slots with which ring a may begin where they are the last ones of ring b. */
int32_t gp_rings_overlap(const gp_overlap_asker *asker, const gp_ring *a, const gp_ring *b);

#endif
