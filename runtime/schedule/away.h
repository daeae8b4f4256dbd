/* schedule/away.h - when what F has saved may wait in the host's memory.
 *
 * Places are those in a device's list of work: F, B, I, W and R. A copy to the host begins when F
 * has run, and must be over when the work behind it has (an R is short, so it counts together with
 * what follows it). A copy back begins before the work ahead of the first backward action. In
 * between lies one more piece of work at least; otherwise nothing would be gained. */
#ifndef GP_SCHEDULE_AWAY_H
#define GP_SCHEDULE_AWAY_H

#include "base/status.h"

typedef struct gp_away_span {
  int32_t held;  /* when this has run, the values have left the device */
  int32_t fetch; /* before this runs, they begin to come back */
} gp_away_span;

/* Find the span between F at a place and its first backward action (R counts as one) at another.
 * recomputes: R follows the F. Returns false if that is too soon, so that the values stay. */
static inline bool gp_away_find(int32_t forward, int32_t backward, bool recomputes,
                                gp_away_span *span) {
  *span = (gp_away_span){.held = forward + 1 + recomputes, .fetch = backward - 1};
  return span->held + 1 < span->fetch;
}

#endif
