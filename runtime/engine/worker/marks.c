/* engine/worker/marks.c - see marks.h.
 *
 * Each event of the worker's ring has two timed events of the device, around the task. One more
 * marks the begin of a range, when the device has nothing to do, and ties its clock to the
 * host's. */
#include "base/memory.h"
#include "base/thread.h"
#include "engine/worker/marks.h"

/* Makes a begin and an end for each event, and one mark for the range. Call it before the ring of
 * events grows, so that no event lacks its marks. */
gp_status gp_marks_new(gp_worker *worker, size_t events) {
  const gp_lane *lane = &worker->lane;
  size_t wanted = 2 * events + 1, had = worker->mark_count;
  if (lane->facts->at_once || had >= wanted) return GP_OK;
  GP_TRY(gp_resize_array(had, wanted, sizeof *worker->marks, (void **)&worker->marks));
  for (; worker->mark_count < wanted; worker->mark_count++)
    GP_TRY(lane->streams->event_new(lane, true, &worker->marks[worker->mark_count]));
  return GP_OK;
}

void gp_marks_free(gp_worker *worker) {
  for (size_t i = 0; i < worker->mark_count; i++)
    worker->lane.streams->event_free(&worker->lane, worker->marks[i]);
  gp_free(worker->marks);
  worker->marks = NULL;
  worker->mark_count = 0;
}

static gp_status record(gp_worker *worker, size_t mark) {
  const gp_lane *lane = &worker->lane;
  return lane->streams->record(lane, GP_STREAM_COMPUTE, worker->marks[mark]);
}

gp_status gp_marks_range(gp_worker *worker) {
  if (!worker->marks) return GP_OK;
  worker->range_begin = gp_now_ns();
  return record(worker, worker->mark_count - 1);
}

gp_status gp_marks_set(gp_worker *worker, size_t number, int end) {
  if (!worker->marks) return GP_OK;
  return record(worker, 2 * (number % worker->event_room) + (size_t)end);
}

/* The time of a mark, in nanoseconds of the host's clock. */
static gp_status time_of(const gp_worker *worker, size_t mark, int64_t *ns) {
  double seconds;
  const gp_lane *lane = &worker->lane;
  GP_TRY(lane->streams->seconds(lane, worker->marks[worker->mark_count - 1], worker->marks[mark],
                                &seconds));
  *ns = worker->range_begin + (int64_t)(1e9 * seconds);
  return GP_OK;
}

gp_status gp_marks_settle(gp_worker *worker, size_t first) {
  int64_t before = worker->range_begin, begin, end;
  size_t count = worker->event_count;
  if (!worker->marks) return GP_OK;
  if (count - first > worker->event_room) first = count - worker->event_room;
  for (size_t n = first; n < count; n++) {
    size_t place = n % worker->event_room;
    gp_event *event = &worker->events[place];
    GP_TRY(time_of(worker, 2 * place, &begin));
    GP_TRY(time_of(worker, 2 * place + 1, &end));
    /* a device waits from the end of one task to the begin of the next */
    atomic_store_explicit(&event->wait, before, memory_order_relaxed);
    atomic_store_explicit(&event->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&event->end, end, memory_order_relaxed);
    before = end;
  }
  return GP_OK;
}
