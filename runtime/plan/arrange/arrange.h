/* plan/arrange/arrange.h - where buffers lie in one area of memory: offsets with a small peak.
 *
 * This is dynamic storage allocation with all lifetimes known. It is NP-hard, but greedy placements
 * leave little waste, and none of them is the best everywhere. So several are tried, each is pushed
 * to the top and back (justify.c), the best one is kept, and a bounded search improves it. Work is
 * counted, not timed, and random numbers have a fixed seed: the same buffers get the same offsets
 * on every machine.
 */
#ifndef GP_PLAN_ARRANGE_ARRANGE_H
#define GP_PLAN_ARRANGE_ARRANGE_H

#include <stdbool.h>

#include "base/status.h"

/* A buffer on the time line of one device. */
typedef struct gp_lifespan {
  int64_t first, last; /* it is alive at both, and between them */
  size_t bytes;        /* a multiple of the alignment: offsets are sums of bytes */
  size_t offset;       /* what is found; given by the caller where it is fixed */
  bool fixed;
} gp_lifespan;

/* How much work may be done, in looks: a look is a visit to one buffer that may be in the way of
 * another and takes about a nanosecond. */
typedef struct gp_arrange_effort {
  int64_t looks; /* of the first placement; if that needs more, only near-linear ones are tried */
  int64_t more;  /* of all that follows, while the peak is above the bound */
} gp_arrange_effort;

extern const gp_arrange_effort gp_arrange_quick;    /* for each of thousands of programs */
extern const gp_arrange_effort gp_arrange_thorough; /* for the buffers of a whole plan */

/* Find an offset for every buffer that is not fixed, so that no two that are alive together
 * overlap. A buffer without bytes lies at 0. peak (receives): where the highest one ends.
 * Errors: GP_EINVAL if a buffer's last time precedes its first, or if fixed ones overlap;
 * GP_ENOMEM, also where the sum of all bytes exceeds size_t.
 * Cost: near-linear in the number of buffers, and the effort. */
gp_status gp_arrange(gp_lifespan *buffers, int32_t count, const gp_arrange_effort *effort,
                     size_t *peak);

/* Find the most bytes that are alive at once, or the end of the highest fixed buffer if that is
 * more. No arrangement has a smaller peak. Errors: as gp_arrange. */
gp_status gp_arrange_bound(const gp_lifespan *buffers, int32_t count, size_t *bytes);

/* Prove that no two buffers that are alive together share a byte. This is a sweep over time in O(n
 * log n) that shares no code with what places buffers. pair (receives, optional): the numbers of
 * two that overlap. Errors: GP_EINVAL naming the two. */
gp_status gp_arrange_check(const gp_lifespan *buffers, int32_t count, int32_t pair[2]);

#endif
