/* ranks/spare.h - what messages take from threads that compute on the cores of this process. */
#ifndef GP_RANKS_SPARE_H
#define GP_RANKS_SPARE_H

#include "base/status.h"

/* A thread for each core of this process that computes, and counts. */
typedef struct gp_spare gp_spare;

/* Begin with the first interval. Errors: GP_ENOMEM; those of threads. */
gp_status gp_spare_start(gp_spare **spare);
void gp_spare_stop(gp_spare *spare); /* NULL: nothing */

/* End an interval in which there were so many messages, and begin the next one. Intervals with
 * messages and without take turns. Errors: GP_ENOMEM. */
gp_status gp_spare_note(gp_spare *spare, int messages);
/* The seconds of a core that a message has taken from the threads; 0 where that is not known yet,
 * or for NULL. */
double gp_spare_lost(const gp_spare *spare);

#endif
