/* engine/watch/report.h - what ran when and what runs now, for people.
 *
 *   record.c   the actions of the last run and their figures
 *   report.c   what every device does now, when a run makes no progress */
#ifndef GP_ENGINE_REPORT_H
#define GP_ENGINE_REPORT_H

#include "gpipe/pipeline.h"
#include "gpipe/schedule.h"
#include "plan/plan.h"

typedef struct gp_run gp_run;

/* record.c */
/* Note the end of a run and choose which of its events are shown. */
void gp_record_close(gp_pipeline *pipeline);
/* Sum up a device of this rank over the events of the run that is over: only busy, span and
 * peak_bytes are set. */
void gp_record_sum(const gp_worker *worker, gp_device_stats *stats);

/* report.c */
/* The name of the run under way: "step", "evaluate". */
const char *gp_report_kind(const gp_run *run);
/* Write what every device does now, and why; returns text. */
char *gp_report_write(gp_pipeline *pipeline, char *text, size_t size);
/* Is a device of this rank in an action? */
bool gp_report_running(const gp_pipeline *pipeline);
/* Write in one line what holds everything up; returns text. */
char *gp_report_cause(gp_pipeline *pipeline, char *text, size_t size);

#endif
