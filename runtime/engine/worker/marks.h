/* engine/worker/marks.h - when the tasks of a device with a queue began and ended: by its own
 * clock, not when they were enqueued. */
#ifndef GP_ENGINE_MARKS_H
#define GP_ENGINE_MARKS_H

#include "engine/worker/worker.h"

/* Make marks for so many events of the worker's ring. Does nothing if work is over when a call
 * returns: then the times that the worker writes are right. */
gp_status gp_marks_new(gp_worker *worker, size_t events);
void gp_marks_free(gp_worker *worker);
/* Mark the begin of a range; begin (0) and end (1) of event `number` of the stream; when the range
 * is over, write the times of the events from `first` on. */
gp_status gp_marks_range(gp_worker *worker);
gp_status gp_marks_set(gp_worker *worker, size_t number, int end);
gp_status gp_marks_settle(gp_worker *worker, size_t first);

#endif
