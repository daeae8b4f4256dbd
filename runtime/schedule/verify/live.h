/* schedule/verify/live.h - walk over what is alive on each device: born and dead activations, row
 * after row. */
#ifndef GP_SCHEDULE_VERIFY_LIVE_H
#define GP_SCHEDULE_VERIFY_LIVE_H

#include "schedule/verify/verify.h"

/* Told the position of the action at which an activation begins or ends. */
typedef struct gp_live_watcher {
  void *context;
  gp_status (*born)(void *context, int32_t position);
  void (*dead)(void *context, int32_t position);
} gp_live_watcher;

/* Device after device; ends at the first failure of born. */
gp_status gp_verify_lives(const gp_verify *v, const gp_live_watcher *watcher);

/* Count the versions of the weights: live[stage][copy] receives the most at once, *over the
 * position of the update that makes more than `limit`, or -1. */
gp_status gp_verify_stash(const gp_schedule *s, int32_t limit, int32_t *live, int32_t *over);

#endif
