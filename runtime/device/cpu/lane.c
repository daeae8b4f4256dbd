/* device/cpu/lane.c - a lane of threads: every call does its work before it returns.
 *
 * So it has one stream, events need no waiting, and nothing is captured. Ops are cut into pieces
 * whose boundaries depend on the shapes only; the team runs them. */
#include "device/lane.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/gemm_library.h"
#include "device/cpu/panels.h"

enum { PIECE = 16384 }; /* elements that one thread adds or updates at a time */

static gp_team *team_of(const gp_lane *lane) { return lane->self; }

/* ---- facts --------------------------------------------------------------------------------- */

static bool reaches(const gp_lane *lane, const gp_lane *other) {
  return gp_lane_shares(lane, other);
}

/* There is no limit to report: the system fails an allocation when no memory is left. */
static gp_status free_bytes(const gp_lane *lane, size_t *bytes) {
  (void)lane;
  *bytes = SIZE_MAX;
  return GP_OK;
}

/* f32 products have one precision here: only GPUs offer tf32. */
static void set_precision(const gp_lane *lane, bool tf32) {
  (void)lane;
  (void)tf32;
}

/* ---- copies -------------------------------------------------------------------------------- */

static gp_status copy(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                      size_t bytes) {
  (void)lane;
  (void)stream;
  if (bytes) memcpy(to, from, bytes);
  return GP_OK;
}

static gp_status fetch(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                       const void *from, size_t bytes) {
  (void)other;
  return copy(lane, stream, to, from, bytes);
}

static gp_status fill(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes) {
  (void)lane;
  (void)stream;
  memset(to, byte, bytes);
  return GP_OK;
}

static gp_status sync(const gp_lane *lane, gp_stream stream) {
  (void)lane;
  (void)stream;
  return GP_OK;
}

/* ---- events -------------------------------------------------------------------------------- */

static gp_status event_new(const gp_lane *lane, bool timed, gp_lane_event **event) {
  (void)lane;
  (void)timed;
  *event = NULL;
  return GP_OK;
}

static void event_free(const gp_lane *lane, gp_lane_event *event) {
  (void)lane;
  (void)event;
}

/* Nothing to wait for: earlier work is over. This also serves as the wait for another CPU lane's
 * event. */
static gp_status pass(const gp_lane *lane, gp_stream stream, gp_lane_event *event) {
  (void)lane;
  (void)stream;
  (void)event;
  return GP_OK;
}

static gp_status is_done(const gp_lane *lane, gp_lane_event *event, bool *done) {
  (void)lane;
  (void)event;
  *done = true;
  return GP_OK;
}

static gp_status seconds(const gp_lane *lane, gp_lane_event *from, gp_lane_event *to, double *s) {
  (void)lane;
  (void)from;
  (void)to;
  *s = 0;
  return GP_OK;
}

/* ---- work ---------------------------------------------------------------------------------- */

/* Kernels look nothing up before they run, and each thread has its own scratch. */
static gp_status prepare(const gp_lane *lane, gp_op op, const gp_call *call, size_t *scratch) {
  (void)lane;
  (void)op;
  (void)call;
  *scratch = 0;
  return GP_OK;
}

/* Run the job on the calling thread, which hands out each group of pieces to the team. */
static gp_status run(const gp_lane *lane, const gp_lane_job *job) {
  (void)lane;
  return job->run(job->context);
}

/* Handing out pieces to the team is also the barrier between groups of pieces. */
static gp_status pieces(const gp_lane *lane, int64_t count, gp_piece piece, void *context) {
  return gp_team_run(team_of(lane), count, piece, context);
}

static gp_status launch(const gp_lane *lane, const gp_lane_call *call) {
  (void)call;
  return gp_fail(GP_EUNSUPPORTED, "%s takes ops piece by piece", lane->name);
}

static gp_status check_finite(const gp_lane *lane, const gp_arg *value, gp_lane_fault *fault,
                              uint32_t tag) {
  (void)value;
  (void)fault;
  (void)tag;
  return gp_fail(GP_EUNSUPPORTED, "%s has no fault word", lane->name);
}

static gp_status settle(const gp_lane *lane, const int64_t *counts, gp_step_block *blocks,
                        int count) {
  int64_t sum = 0;
  (void)lane;
  for (int i = 0; i < count; i++) sum += counts[i];
  for (int i = 0; i < count; i++) blocks[i].inverse_count = sum ? 1.0 / (double)sum : 0;
  return GP_OK;
}

/* One slice of an update. */
typedef struct part {
  const gp_lane_update *update;
  const gp_optim_slice *slice;
} part;

/* The update is elementwise: the bits do not depend on where a slice is cut. */
static gp_status update_piece(void *context, int64_t index, int thread) {
  const part *p = context;
  int64_t first = index * PIECE, last = first + PIECE;
  (void)thread;
  if (last > p->slice->n) last = p->slice->n;
  return p->update->piece(p->update->hyper, p->update->step, p->slice, first, last);
}

static gp_status update(const gp_lane *lane, const gp_lane_update *u) {
  for (int i = 0; i < u->count; i++) {
    part p = {u, &u->slices[i]};
    GP_TRY(gp_team_run(team_of(lane), (p.slice->n + PIECE - 1) / PIECE, update_piece, &p));
  }
  return GP_OK;
}

/* Serves both squares and scale: the pieces know what to do. */
static gp_status sweep(const gp_lane *lane, const gp_lane_sweep *s) {
  return gp_team_run(team_of(lane), s->pieces, s->piece, s->context);
}

/* n elements of one type to be added to those at another address. */
typedef struct sum {
  gp_dtype dtype;
  int64_t n;
  void *to;
  const void *from;
} sum;

static gp_status add_piece(void *context, int64_t index, int thread) {
  const sum *s = context;
  int64_t first = index * PIECE, last = first + PIECE < s->n ? first + PIECE : s->n;
  float *to32 = s->to;
  double *to64 = s->to;
  const float *from32 = s->from;
  const double *from64 = s->from;
  (void)thread;
  for (int64_t i = first; s->dtype == GP_F32 && i < last; i++) to32[i] += from32[i];
  for (int64_t i = first; s->dtype != GP_F32 && i < last; i++) to64[i] += from64[i];
  return GP_OK;
}

/* The sum is elementwise: the bits do not depend on which thread adds which piece. */
static gp_status add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from) {
  sum s = {dtype, n, to, from};
  return gp_team_run(team_of(lane), (n + PIECE - 1) / PIECE, add_piece, &s);
}

/* ---- open and close ------------------------------------------------------------------------ */

/* Report the one path: all products go the same way on this machine, but those of large weights. */
static bool path(const gp_lane *lane, int i, gp_work_path *found) {
  const char *why = "", *library;
  (void)lane;
  if (i != 0) return false;
  library = gp_gemm_library(&why);
  *found = (gp_work_path){.kind = "product", .count = 1};
  snprintf(found->shape, sizeof found->shape, "of all shapes");
  snprintf(found->path, sizeof found->path, "%s%s", *library ? library : "own kernels, plain loops",
           gp_panels_pay() ? "; large weights: own panels" : "");
  snprintf(found->why, sizeof found->why, "%s", *library || !why ? "" : why);
  return true;
}

static void close_lane(gp_lane *lane) {
  gp_team_free(lane->self);
  lane->self = NULL;
}

static const gp_lane_facts facts = {.packs_weights = true, .at_once = true};
static const gp_lane_memory memory = {
    .reaches = reaches, .free_bytes = free_bytes, .copy = copy, .fetch = fetch, .fill = fill};
static const gp_lane_streams streams = {.sync = sync,
                                        .event_new = event_new,
                                        .event_free = event_free,
                                        .record = pass,
                                        .wait = pass,
                                        .is_done = is_done,
                                        .seconds = seconds};
static const gp_lane_work work = {.set_precision = set_precision,
                                  .prepare = prepare,
                                  .run = run,
                                  .pieces = pieces,
                                  .launch = launch,
                                  .check_finite = check_finite,
                                  .settle = settle};
static const gp_lane_sums sums = {.add = add, .squares = sweep, .scale = sweep, .update = update};
static const gp_lane_reports reports = {.path = path};

/* Start the library for products here, before the device's threads compete for memory. */
gp_status gp_lane_open_cpu(const char *name, const gp_lane_options *options, gp_lane *lane) {
  gp_team *team;
  bool usable;
  (void)name;
  GP_TRY(gp_gemm_library_prepare(&usable));
  GP_TRY(gp_team_new(options->threads, options->cores, options->core_count, options->spin, &team));
  lane->facts = &facts;
  lane->memory = &memory;
  lane->streams = &streams;
  lane->work = &work;
  lane->sums = &sums;
  lane->reports = &reports;
  lane->close = close_lane;
  lane->self = team;
  return GP_OK;
}
