/* engine/profile/recorder.c - records, the events around them, their times.
 *
 * The work of threads is over when a call returns, so the host's clock says how long it took. For a
 * queue the device's own clock says it, by a timed event before the work and one after it, in the
 * stream of the work or, if that is captured, in the graph. The time between two events with
 * nothing between them is measured first and subtracted. */
#include "engine/profile/recorder.h"

#include "base/median.h"
#include "base/memory.h"
#include "base/thread.h"

enum { PAIRS = 15 }; /* pairs of events that measure their own cost */

static const gp_lane *lane_of(const gp_recorder *r) { return &r->plain; }

/* ---- records ------------------------------------------------------------------------------- */

static gp_status add_mark(gp_recorder *r) {
  gp_lane_event *mark;
  GP_TRY(gp_grow_array(r->mark_count, &r->mark_room, sizeof *r->marks, (void **)&r->marks));
  GP_TRY(r->plain.streams->event_new(lane_of(r), true, &mark));
  r->marks[r->mark_count++] = mark;
  return GP_OK;
}

gp_status gp_recorder_reserve(gp_recorder *r, size_t records) {
  size_t wanted = r->count + records;
  while (r->room < wanted)
    GP_TRY(gp_grow_array(r->room, &r->room, sizeof *r->records, (void **)&r->records));
  while (!r->plain.facts->at_once && r->mark_count < 2 * wanted) GP_TRY(add_mark(r));
  return GP_OK;
}

static gp_status mark(gp_recorder *r, size_t number, gp_stream stream) {
  gp_status status = r->plain.streams->record(lane_of(r), stream, r->marks[number]);
  r->refused = status != GP_OK;
  return status;
}

gp_status gp_record_begin(gp_recorder *r, const gp_record *record) {
  GP_TRY(gp_recorder_reserve(r, 1));
  gp_record *own = &r->records[r->count++];
  *own = *record;
  own->end = 0;
  own->begin = gp_now_ns();
  return r->plain.facts->at_once ? GP_OK : mark(r, 2 * r->count - 2, own->stream);
}

gp_status gp_record_end(gp_recorder *r) {
  gp_record *own = &r->records[r->count - 1];
  if (!r->plain.facts->at_once) GP_TRY(mark(r, 2 * r->count - 1, own->stream));
  own->end = gp_now_ns();
  return GP_OK;
}

gp_status gp_recorder_keep(gp_recorder *r, gp_lane_graph *graph) {
  gp_status status =
      gp_grow_array(r->graph_count, &r->graph_room, sizeof *r->graphs, (void **)&r->graphs);
  if (status) return r->plain.graphs->free(graph), status;
  r->graphs[r->graph_count++] = graph;
  return GP_OK;
}

/* ---- times --------------------------------------------------------------------------------- */

/* Measure the time between two events with nothing between them, on an idle stream: the median of a
 * few. */
static gp_status calibrate(gp_recorder *r) {
  double seconds[PAIRS];
  if (r->plain.facts->at_once) return GP_OK;
  GP_TRY(gp_recorder_reserve(r, PAIRS));
  for (size_t i = 0; i < 2 * PAIRS; i++) GP_TRY(mark(r, i, GP_STREAM_COMPUTE));
  GP_TRY(r->plain.streams->sync(lane_of(r), GP_STREAM_COMPUTE));
  for (size_t i = 0; i < PAIRS; i++)
    GP_TRY(
        r->plain.streams->seconds(lane_of(r), r->marks[2 * i], r->marks[2 * i + 1], &seconds[i]));
  r->overhead = gp_median(seconds, PAIRS);
  return GP_OK;
}

static gp_status time_of(const gp_recorder *r, size_t i, double *seconds) {
  const gp_record *record = &r->records[i];
  *seconds = 1e-9 * (double)(record->end - record->begin);
  if (r->plain.facts->at_once) return GP_OK;
  GP_TRY(r->plain.streams->seconds(lane_of(r), r->marks[2 * i], r->marks[2 * i + 1], seconds));
  *seconds = *seconds > r->overhead ? *seconds - r->overhead : 0;
  return GP_OK;
}

/* Look up the times of all records. Drops those of work that failed, because their events may never
 * have happened. */
static gp_status settle(gp_recorder *r) {
  size_t kept = 0;
  for (int stream = 0; stream < GP_STREAMS; stream++)
    GP_TRY(r->plain.streams->sync(lane_of(r), (gp_stream)stream));
  for (size_t i = 0; i < r->count; i++) {
    gp_record *record = &r->records[i];
    if (!record->end) continue;
    GP_TRY(time_of(r, i, &record->entry.seconds));
    r->records[kept++] = *record;
  }
  r->count = kept;
  return GP_OK;
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Call this while the worker rests: it reads the lane's tables when its next job begins. */
gp_status gp_recorder_new(gp_worker *worker, bool eager) {
  gp_recorder *r;
  GP_TRY(gp_alloc(sizeof *r, (void **)&r));
  r->worker = worker;
  r->plain = worker->lane;
  r->eager = eager;
  worker->recorder = r;
  GP_TRY(calibrate(r));
  gp_recorder_wrap(r);
  return GP_OK;
}

static void free_queue_side(gp_recorder *r) {
  for (size_t i = 0; i < r->graph_count; i++) r->plain.graphs->free(r->graphs[i]);
  for (size_t i = 0; i < r->mark_count; i++) r->plain.streams->event_free(lane_of(r), r->marks[i]);
  gp_free(r->graphs);
  gp_free(r->marks);
  r->graphs = NULL;
  r->marks = NULL;
  r->graph_count = r->mark_count = 0;
}

gp_status gp_recorder_close(gp_recorder *r) {
  r->worker->lane = r->plain;
  gp_status status = settle(r);
  if (status) r->count = 0;
  free_queue_side(r);
  return status;
}

void gp_recorder_free(gp_worker *worker) {
  gp_recorder *r = worker->recorder;
  if (!r) return;
  r->count = 0;
  gp_recorder_close(r);
  gp_free(r->records);
  gp_free(r);
  worker->recorder = NULL;
}
