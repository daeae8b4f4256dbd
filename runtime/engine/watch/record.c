/* engine/watch/record.c - what ran when: the actions of the last run and their figures.
 *
 * A task that waited for nothing begins when the one before it ended. So what the engine does in
 * between counts as the device's work, and the bubble is only waiting. */

#include "base/thread.h"
#include "engine/state/pipeline.h"
#include "engine/watch/report.h"
#include "schedule/schedule.h"

/* The time as the script sees it: from handing out the run to the last worker's end and the sums
 * after it. For a long stream it is the time of the last part, which the events still describe. */
double gp_pipeline_seconds(const gp_pipeline *p) {
  return 1e-9 * (double)(p->last_end - p->last_begin);
}

double gp_pipeline_began(const gp_pipeline *p) { return 1e-9 * (double)p->last_begin; }

/* ---- events -------------------------------------------------------------------------------- */

static const gp_event *event_number(const gp_worker *w, size_t number) {
  return &w->events[number % w->event_room];
}

/* After a long stream each ring holds its end only, from another time on than the others. Figures
 * and pictures show the part that all rings hold. */
void gp_record_close(gp_pipeline *p) {
  p->last_end = gp_now_ns();
  for (int32_t d = 0; d < p->last_plan->device_count; d++) {
    gp_worker *w = &p->workers[d];
    w->first_event = w->event_count > w->event_room ? w->event_count - w->event_room : 0;
    if (w->first_event && event_number(w, w->first_event)->wait > p->last_begin)
      p->last_begin = event_number(w, w->first_event)->wait;
  }
  for (int32_t d = 0; d < p->last_plan->device_count; d++) {
    gp_worker *w = &p->workers[d];
    while (w->first_event < w->event_count && event_number(w, w->first_event)->wait < p->last_begin)
      w->first_event++;
  }
}

int gp_pipeline_event_count(const gp_pipeline *p, int device) {
  const gp_worker *w = &p->workers[device];
  if (!p->last_plan || device >= p->last_plan->device_count) return 0;
  return (int)(w->event_count - w->first_event);
}

static const gp_event *event_at(const gp_pipeline *p, int device, int i) {
  const gp_worker *w = &p->workers[device];
  return event_number(w, w->first_event + (size_t)i);
}

static double since_begin(const gp_pipeline *p, int64_t ns) {
  return 1e-9 * (double)(ns - p->last_begin);
}

void gp_pipeline_event(const gp_pipeline *p, int device, int i, gp_timed_action *timed) {
  const gp_plan *plan = p->last_plan;
  const gp_event *event = event_at(p, device, i);
  *timed =
      (gp_timed_action){.action = gp_task_action(plan, &plan->tasks[event->task], event->micro),
                        .wait = since_begin(p, event->wait),
                        .begin = since_begin(p, event->begin),
                        .end = since_begin(p, event->end)};
}

static void sum_from(const gp_worker *w, size_t first, gp_device_stats *stats) {
  for (size_t i = first; i < w->event_count; i++) {
    const gp_event *event = event_number(w, i);
    stats->busy += 1e-9 * (double)(event->end - event->begin);
  }
  if (first < w->event_count)
    stats->span =
        1e-9 * (double)(event_number(w, w->event_count - 1)->end - event_number(w, first)->begin);
  stats->peak_bytes = w->most_taken;
}

void gp_record_sum(const gp_worker *w, gp_device_stats *stats) {
  *stats = (gp_device_stats){0};
  sum_from(w, w->event_count > w->event_room ? w->event_count - w->event_room : 0, stats);
}

/* The peaks are the device's: all of its stages together. */
void gp_pipeline_stats(const gp_pipeline *p, int device, gp_device_stats *stats) {
  const gp_plan *plan = p->last_plan;
  *stats = (gp_device_stats){0};
  if (!plan || device >= plan->device_count) return;
  const gp_worker *w = &p->workers[device];
  if (w->far)
    *stats =
        (gp_device_stats){.busy = w->far_busy, .span = w->far_span, .peak_bytes = w->most_taken};
  else
    sum_from(w, w->first_event, stats);
  stats->peak_live = plan->devices[device].peak_live;
}

bool gp_pipeline_path(const gp_pipeline *p, int device, int i, gp_work_path *path) {
  const gp_lane *lane = &p->workers[device].lane;
  return lane->reports->path(lane, i, path);
}
