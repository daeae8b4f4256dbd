/* engine/record.c - what ran when: figures of the last run, and its Chrome trace. */
#include <stdio.h>
#include <string.h>
#include <errno.h>

#include "engine/pipeline.h"

/* Seen by the script: from handing out the run to the last worker's end and the sums after it. */
double gp_pipeline_seconds(const gp_pipeline *p) {
  return 1e-9 * (double)(p->last_end - p->last_begin);
}

/* Tasks of a device that the last run ran: all of them, or one half. */
static void range_of(const gp_pipeline *p, int32_t d, int32_t *begin, int32_t *end) {
  const gp_plan *plan = p->last_plan;
  bool split = plan->kind == GP_PLAN_SPLIT;
  *begin = split && p->run.backward_half ? plan->half[d] : plan->first[d];
  *end = split && !p->run.backward_half ? plan->half[d] : plan->first[d + 1];
}

/* A device may hold several stages: their activations add up. */
void gp_pipeline_stats(const gp_pipeline *p, int device, gp_device_stats *stats) {
  const gp_plan *plan = p->last_plan;
  int32_t begin, end;
  *stats = (gp_device_stats){0};
  if (!plan || device >= plan->device_count) return;
  range_of(p, device, &begin, &end);
  for (int32_t t = begin; t < end; t++)
    stats->busy += 1e-9 * (double)(p->records[t].end - p->records[t].begin);
  if (end > begin) stats->span = 1e-9 * (double)(p->records[end - 1].end - p->records[begin].begin);
  for (int32_t s = 0; s < plan->stage_count; s++)
    if (plan->placement[s] == device) stats->peak_live += plan->slots[s].peak_live;
  stats->peak_bytes = plan->device_bytes[device];
}

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
  default: return "other";
  }
}

/* Microseconds from the begin of the run, as the format wants. Nested by construction: one task at a
 * time per device. Source: Trace Event Format, complete events (ph X). */
static void write_task(FILE *file, const gp_pipeline *p, int32_t device, int32_t t) {
  const gp_task *task = &p->last_plan->tasks[t];
  const gp_record *record = &p->records[t];
  fprintf(file,
          ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%d%s%d\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,"
          "\"dur\":%.3f,\"args\":{\"stage\":%d,\"micro\":%d}}",
          category(task->op), (int)task->stage, gp_act_text(task->op), (int)task->micro,
          (int)device, 1e-3 * (double)(record->begin - p->last_begin),
          1e-3 * (double)(record->end - record->begin), (int)task->stage, (int)task->micro);
}

/* Metadata first: viewers name rows by it. */
static void write_all(FILE *file, const gp_pipeline *p) {
  fprintf(file,
          "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"gpipe-lua\"}}");
  for (int32_t d = 0; d < p->last_plan->device_count; d++) {
    int32_t begin, end;
    range_of(p, d, &begin, &end);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":\"%"
            "s\"}}",
            (int)d, p->workers[d].name);
    for (int32_t t = begin; t < end; t++) write_task(file, p, d, t);
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
