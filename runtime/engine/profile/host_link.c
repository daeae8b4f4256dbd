/* engine/profile/host_link.c - measures how fast a device reaches the host's memory.
 *
 * Copies go as those of offloaded values do: between the lane's memory and host memory that it
 * copies from and to without blocking, each way in the stream of that way. Timed events stand
 * around each copy; the median of a few turns counts, after one that warms up. A copy of a few
 * bytes says what any copy takes; what larger ones take beyond that says the bytes per second, and
 * the median of their sizes counts. */
#include "base/median.h"
#include "engine/profile/recorder.h"
#include "engine/state/pipeline.h"
#include "engine/watch/jobs.h"
#include "gpipe/profile.h"

enum { TURNS = 7, SIZES = 3, SMALL = 4 << 10 };
static const size_t large[SIZES] = {4 << 20, 16 << 20, 64 << 20}; /* bytes */
static const double ENOUGH = 2e-3; /* seconds of a copy beyond which none is larger */

typedef struct probe {
  int32_t device;
  size_t room; /* bytes of both memories */
  void *host, *memory;
  gp_lane_event *events[2];
  double latency[2], rate[2]; /* out and in: seconds, bytes per second */
} probe;

/* ---- copies -------------------------------------------------------------------------------- */

static gp_status time_copy(const gp_lane *lane, const probe *p, bool in, size_t bytes,
                           double *seconds) {
  const gp_stream stream = in ? GP_STREAM_RECEIVE : GP_STREAM_SEND;
  void *to = in ? p->memory : p->host, *from = in ? p->host : p->memory;
  GP_TRY(lane->streams->record(lane, stream, p->events[0]));
  GP_TRY(lane->memory->copy(lane, stream, to, from, bytes));
  GP_TRY(lane->streams->record(lane, stream, p->events[1]));
  GP_TRY(lane->streams->sync(lane, stream));
  return lane->streams->seconds(lane, p->events[0], p->events[1], seconds);
}

static gp_status time_size(const gp_lane *lane, const probe *p, bool in, size_t bytes,
                           double *seconds) {
  double turns[TURNS];
  GP_TRY(time_copy(lane, p, in, bytes, &turns[0]));
  for (int i = 0; i < TURNS; i++) GP_TRY(time_copy(lane, p, in, bytes, &turns[i]));
  *seconds = gp_median(turns, TURNS);
  return GP_OK;
}

static gp_status measure_way(const gp_lane *lane, probe *p, bool in) {
  double rates[SIZES], seconds;
  size_t count = 0;
  GP_TRY(time_size(lane, p, in, SMALL, &p->latency[in]));
  for (int i = 0; i < SIZES && large[i] <= p->room; i++) {
    GP_TRY(time_size(lane, p, in, large[i], &seconds));
    double beyond = seconds - p->latency[in];
    if (beyond > 0) rates[count++] = (double)(large[i] - SMALL) / beyond;
    if (seconds >= ENOUGH) break;
  }
  p->rate[in] = count ? gp_median(rates, count) : 0;
  return GP_OK;
}

static gp_status measure(gp_worker *worker, void *context) {
  probe *p = context;
  const gp_lane *lane = &worker->lane;
  if (worker->device != p->device) return GP_OK;
  gp_status status = lane->streams->event_new(lane, true, &p->events[0]);
  if (!status) status = lane->streams->event_new(lane, true, &p->events[1]);
  for (int in = 0; !status && in < 2; in++) status = measure_way(lane, p, in);
  for (int i = 0; i < 2; i++) lane->streams->event_free(lane, p->events[i]);
  return status;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Find the largest size of which the device has four times as much free. */
static gp_status find_room(const gp_lane *lane, probe *p) {
  size_t left;
  GP_TRY(lane->memory->free_bytes(lane, &left));
  for (int i = 0; i < SIZES; i++)
    if (large[i] <= left / 4) p->room = large[i];
  return GP_OK;
}

static gp_status measure_with_memory(gp_pipeline *pipeline, probe *p) {
  const gp_lane *lane = &pipeline->workers[p->device].lane;
  GP_TRY(find_room(lane, p));
  if (!p->room) return GP_OK;
  gp_status status = gp_lane_alloc(lane, p->room, &p->memory);
  if (!status) status = gp_lane_host_alloc(lane, p->room, &p->host);
  if (!status) status = gp_workers_run(pipeline, measure, p);
  gp_lane_host_free(lane, p->host);
  gp_lane_free(lane, p->memory, p->room);
  return status;
}

gp_status gp_pipeline_host_link(gp_pipeline *p, int device, gp_host_link *link) {
  probe one = {.device = device};
  *link = (gp_host_link){0};
  if (p->closed || p->watch.lost || p->run.open || p->profiling.open)
    return gp_fail(GP_ESTATE,
                   "host_link: the pipeline is closed or busy, expected an open one that rests");
  if (p->workers[device].lane.facts->at_once) return GP_OK;
  GP_TRY(measure_with_memory(p, &one));
  const int slower = one.rate[1] < one.rate[0];
  link->bandwidth = one.rate[slower];
  link->latency = one.latency[one.latency[1] > one.latency[0]];
  return GP_OK;
}
