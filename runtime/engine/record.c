/* engine/record.c - what ran when: figures of the last run, and its Chrome trace. */
#include <stdio.h>
#include <string.h>
#include <errno.h>

#include "base/thread.h"
#include "engine/pipeline.h"

/* Seen by the script: from handing out the run to the last worker's end and the sums after it. Of a long
 * stream, its last part. */
double gp_pipeline_seconds(const gp_pipeline *p) {
  return 1e-9 * (double)(p->last_end - p->last_begin);
}

/* ---- events -------------------------------------------------------------------------------- */

static const gp_event *event_number(const gp_worker *w, size_t number) {
  return &w->events[number % w->event_room];
}

/* Rings hold the end of a long stream, each from another time on: figures and pictures are of the part that
 * all of them hold. */
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

/* Weights have versions in asynchronous schedules only; there an update is named by its number. */
gp_action gp_task_action(const gp_plan *plan, const gp_task *task, int64_t micro) {
  int64_t moved = micro - task->micro;
  bool update = task->op == GP_ACT_U;
  return (gp_action){.op = (uint8_t)task->op,
                     .stage = task->stage,
                     .micro = (int32_t)(update ? micro / gp_run_group(plan) : micro),
                     .version = plan->batch ? (int32_t)(task->version + moved / plan->batch) : -1};
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

/* A device may hold several stages: their activations add up. */
void gp_pipeline_stats(const gp_pipeline *p, int device, gp_device_stats *stats) {
  const gp_plan *plan = p->last_plan;
  *stats = (gp_device_stats){0};
  if (!plan || device >= plan->device_count) return;
  int count = gp_pipeline_event_count(p, device);
  for (int i = 0; i < count; i++) {
    const gp_event *event = event_at(p, device, i);
    stats->busy += 1e-9 * (double)(event->end - event->begin);
  }
  if (count)
    stats->span =
        1e-9 * (double)(event_at(p, device, count - 1)->end - event_at(p, device, 0)->begin);
  stats->peak_live = plan->peak_live[device];
  stats->peak_bytes = plan->device_bytes[device];
}

/* ---- Chrome trace -------------------------------------------------------------------------- */

/* Colours in the viewers go by category. */
static const char *category(gp_act op) {
  switch (op) {
  case GP_ACT_F: return "forward";
  case GP_ACT_B: return "backward";
  case GP_ACT_I: return "input gradient";
  case GP_ACT_W: return "weight gradient";
  case GP_ACT_R: return "recompute";
  case GP_ACT_P: return "prepare";
  case GP_ACT_C: return "count";
  case GP_ACT_U: return "update";
  case GP_ACT_REDUCE: return "reduce";
  default: return "other";
  }
}

/* Microseconds from the begin of the run, as the format wants. Nested by construction: one task at a
 * time per device. Source: Trace Event Format, complete events (ph X). */
static void write_event(FILE *file, const gp_pipeline *p, int device, int i) {
  gp_timed_action timed;
  char text[GP_ACTION_TEXT];
  gp_pipeline_event(p, device, i, &timed);
  const gp_action *action = &timed.action;
  fprintf(file,
          ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,"
          "\"dur\":%.3f,\"args\":{\"stage\":%d,\"micro\":%d}}",
          category((gp_act)action->op), gp_action_print(action, text), device, 1e6 * timed.begin,
          1e6 * (timed.end - timed.begin), (int)action->stage, (int)action->micro);
}

/* Metadata first: viewers name rows by it. */
static void write_all(FILE *file, const gp_pipeline *p) {
  fprintf(file,
          "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"gpipe-lua\"}}");
  for (int32_t d = 0; d < p->last_plan->device_count; d++) {
    int count = gp_pipeline_event_count(p, d);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":\"%"
            "s\"}}",
            (int)d, p->workers[d].name);
    for (int i = 0; i < count; i++) write_event(file, p, d, i);
  }
  fprintf(file, "\n]}\n");
}

/* fclose tells of a full disk when fprintf did not. */
gp_status gp_pipeline_trace(const gp_pipeline *p, const char *path) {
  if (!p->last_plan || p->closed) return gp_fail(GP_ESTATE, "trace: no step has run yet");
  FILE *file = fopen(path, "w");
  if (!file) return gp_fail(GP_EIO, "trace: %s: %s", path, strerror(errno));
  write_all(file, p);
  bool bad = ferror(file);
  if (fclose(file) || bad) return gp_fail(GP_EIO, "trace: %s: %s", path, strerror(errno));
  return GP_OK;
}
