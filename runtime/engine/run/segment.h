/* engine/run/segment.h - runs a segment: task by task at first, then captured, then as a graph. */
#ifndef GP_ENGINE_SEGMENT_RUN_H
#define GP_ENGINE_SEGMENT_RUN_H

#include "engine/bind/segments.h"
#include "engine/intake/intake.h"

/* Tasks first .. end - 1 of the plan, which a range runs next. */
typedef struct gp_segment_run {
  int32_t first, end;
  bool ran;               /* they have run before */
  gp_lane_graph *graph;   /* does the work of all of them; NULL: each does its own */
  gp_segment_graph *kept; /* what this run adds to; NULL: it keeps nothing */
} gp_segment_run;

/* Look at what comes next: the segment that begins with task t, captured if it may be, the task
 * alone, or, on a device that captures nothing, all that is left of the range. Nothing waits, and
 * nothing is launched. */
gp_segment_run gp_segment_begin(gp_worker *worker, gp_run *run, const gp_task_span *span,
                                int32_t t);
/* Launch the graph of the segment that r begins, after the rows that its tasks read. */
gp_status gp_segment_launch(gp_worker *worker, const gp_task_run *r);
/* End a part: all of its tasks have been run, or passed through. */
void gp_segment_end(const gp_run *run, const gp_segment_run *part);

#endif
