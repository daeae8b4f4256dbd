/* schedule/access/away.h - when what the F of a device save is in the host's memory. */
#ifndef GP_SCHEDULE_ACCESS_AWAY_H
#define GP_SCHEDULE_ACCESS_AWAY_H

#include "schedule/schedule.h"

/* Actions are numbered from the device's first one. */
typedef struct gp_away_list {
  int32_t *leaves;  /* per action: the F whose values have left when it has run, + 1; 0: none */
  int32_t *fetches; /* per action: the F whose values begin to come back before it; likewise */
} gp_away_list;

/* Find what goes to the host and back. The caller frees the list. Errors: GP_ENOMEM. */
gp_status gp_away_list_new(const gp_schedule *schedule, int32_t device, gp_away_list *list);
void gp_away_list_free(gp_away_list *list); /* what it holds; not the struct */

#endif
