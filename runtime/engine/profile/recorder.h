/* engine/profile/recorder.h - records how long each call of one worker's lane takes.
 *
 *   recorder.c   records, the events around them, their times
 *   works.c      a lane's tables with a record around every call that does work
 *   profile.c    all devices of a pipeline; what an instruction is called and costs
 *   ceilings.c   what a device reaches at best
 *   host_link.c  how fast it reaches the host's memory
 *
 * A recorder replaces the lane's tables of functions. So a pipeline that is not profiled calls the
 * same functions as ever, and the engine need not know of profiles, except for one branch in
 * execute.c, where threads would otherwise run several instructions at once. */
#ifndef GP_ENGINE_RECORDER_H
#define GP_ENGINE_RECORDER_H

#include "engine/state/pipeline.h"
#include "gpipe/profile.h"

typedef struct gp_record {
  gp_profile_entry entry; /* seconds: set when the profile ends */
  gp_stream stream;
  int64_t begin, end; /* of the call, in nanoseconds of CLOCK_MONOTONIC; end 0: it failed */
} gp_record;

struct gp_recorder {
  gp_worker *worker;
  gp_lane plain; /* the lane with its own tables; the following take the place of some of them */
  gp_lane_memory memory;
  gp_lane_work work;
  gp_lane_sums sums;
  bool eager;   /* ops are never captured */
  bool refused; /* the device would not record an event just now */
  gp_record *records;
  size_t count, room;
  gp_lane_event **marks; /* of a queue: two for each record */
  size_t mark_count, mark_room;
  gp_lane_graph **graphs; /* of captured jobs: kept until these are over */
  size_t graph_count, graph_room;
  size_t job_first; /* first record of the job that is being enqueued */
  double overhead;  /* seconds between two events with nothing between them */
};

/* recorder.c */
gp_status gp_recorder_new(gp_worker *worker, bool eager);
/* Give the lane its own tables back, wait, and settle the times; records stay. The tables come
 * first: what fails afterwards leaves an empty list. */
gp_status gp_recorder_close(gp_recorder *recorder);
void gp_recorder_free(gp_worker *worker); /* closes; idempotent */
/* Call these around one piece of work. If the work fails, its record has no end. */
gp_status gp_record_begin(gp_recorder *recorder, const gp_record *record);
gp_status gp_record_end(gp_recorder *recorder);
/* Make room for so many more records, so that none is lost for want of memory during a capture. */
gp_status gp_recorder_reserve(gp_recorder *recorder, size_t records);
/* Keep a graph until the profile ends. Ownership: taken, also where this fails. */
gp_status gp_recorder_keep(gp_recorder *recorder, gp_lane_graph *graph);

/* works.c */
/* Make the recorder's tables from the plain ones, and give them to the lane. */
void gp_recorder_wrap(gp_recorder *recorder);

/* profile.c */
/* Make the record of an instruction that the worker runs now. */
gp_record gp_record_of_instr(const gp_worker *worker, const gp_task *task, const gp_instr *instr);
/* Count a run that begins. */
void gp_profile_note_run(gp_pipeline *pipeline);

#endif
