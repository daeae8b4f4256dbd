/* engine/profile/ceilings.c - measures what a device reaches at best: in copies within its memory,
 * and in one large product of matrices.
 *
 * The lane's own functions do the work, on the lane's own worker, so that a part of a GPU, or four
 * threads of eight, is compared with itself. The best of a few turns counts, because disturbances
 * only make a turn slower. Sizes grow until a turn takes long enough to be timed, so that a slow
 * device, such as a simulated one, is not kept busy for minutes. */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "base/thread.h"
#include "engine/state/pipeline.h"
#include "engine/watch/jobs.h"
#include "gpipe/profile.h"
#include "ops/cut.h"
#include "ops/half/half.h"
#include "ops/op.h"

enum {
  TURNS = 5,
  PIECE = 1 << 20, /* bytes that a thread copies at a time */
};

/* The sizes to measure: from the first one on, until a turn takes `enough` seconds or the size is
 * the last. A block of a copy ends up several times as large as the cache. */
typedef struct growth {
  int64_t first, last, factor;
  double enough;
} growth;
static const growth copies_of_queue = {4 << 20, 256 << 20, 4, 1e-4}; /* bytes */
static const growth copies_of_host = {64 << 20, 64 << 20, 2, 0};
static const growth products_of_queue = {256, 8192, 2, 1e-3}; /* rows and columns */
static const growth products_of_host = {256, 1024, 2, 1e-3};

/* One measurement on one device. */
typedef struct ceiling {
  int32_t device;
  bool product;
  gp_dtype dtype; /* of the product */
  int64_t size;
  size_t bytes; /* of each of the blocks */
  char *blocks[3];
  void *scratch;
  size_t scratch_bytes; /* of a thread; of the queue */
  gp_meta meta;
  gp_attrs attrs;
  gp_step_block step;
  gp_call call;
  gp_cut cut;
  double best; /* seconds of a turn; 0: there was no room */
  double rate; /* of the largest size so far */
} ceiling;

/* ---- one turn ------------------------------------------------------------------------------ */

static gp_status copy_piece(void *context, int64_t index, int member) {
  const ceiling *c = context;
  (void)member;
  memcpy(c->blocks[1] + index * PIECE, c->blocks[0] + index * PIECE, PIECE);
  return GP_OK;
}

static gp_status multiply_piece(void *context, int64_t index, int member) {
  const ceiling *c = context;
  int64_t first = index * c->cut.grain, last = first + c->cut.grain;
  gp_span span = {.first = first,
                  .last = last < c->cut.units ? last : c->cut.units,
                  .scratch = (char *)c->scratch + (size_t)member * c->scratch_bytes};
  return gp_half_run(gp_op_get(GP_OP_matmul), &c->call, span);
}

static gp_status turn_of_threads(const gp_lane *lane, ceiling *c) {
  if (!c->product) return lane->work->pieces(lane, (int64_t)(c->bytes / PIECE), copy_piece, c);
  int64_t pieces = (c->cut.units + c->cut.grain - 1) / c->cut.grain;
  return lane->work->pieces(lane, pieces, multiply_piece, c);
}

static gp_status turn_of_queue(const gp_lane *lane, const ceiling *c) {
  if (!c->product) return gp_lane_copy(lane, c->blocks[1], c->blocks[0], c->bytes);
  gp_lane_call call = {.op = GP_OP_matmul, .call = &c->call, .scratch = c->scratch};
  return lane->work->launch(lane, &call);
}

static gp_status time_threads(const gp_lane *lane, ceiling *c, double *seconds) {
  int64_t begin = gp_now_ns();
  GP_TRY(turn_of_threads(lane, c));
  *seconds = 1e-9 * (double)(gp_now_ns() - begin);
  return GP_OK;
}

static gp_status time_queue(const gp_lane *lane, const ceiling *c, gp_lane_event *events[2],
                            double *seconds) {
  GP_TRY(lane->streams->record(lane, GP_STREAM_COMPUTE, events[0]));
  GP_TRY(turn_of_queue(lane, c));
  GP_TRY(lane->streams->record(lane, GP_STREAM_COMPUTE, events[1]));
  GP_TRY(gp_lane_sync(lane));
  return lane->streams->seconds(lane, events[0], events[1], seconds);
}

/* ---- all turns ----------------------------------------------------------------------------- */

/* Time all turns after a first one that warms up. */
static gp_status time_all(const gp_lane *lane, ceiling *c, gp_lane_event *events[2]) {
  for (int i = 0; i <= TURNS; i++) {
    double seconds;
    GP_TRY(lane->facts->at_once ? time_threads(lane, c, &seconds)
                                : time_queue(lane, c, events, &seconds));
    if (i && (i == 1 || seconds < c->best)) c->best = seconds;
  }
  return GP_OK;
}

static gp_status measure(gp_worker *worker, void *context) {
  ceiling *c = context;
  const gp_lane *lane = &worker->lane;
  gp_lane_event *events[2] = {NULL, NULL};
  if (worker->device != c->device) return GP_OK;
  gp_status status = lane->streams->event_new(lane, true, &events[0]);
  if (!status) status = lane->streams->event_new(lane, true, &events[1]);
  if (!status) status = time_all(lane, c, events);
  for (int i = 0; i < 2; i++) lane->streams->event_free(lane, events[i]);
  return status;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Ask how much scratch the product needs: for all threads, or for the queue. */
static gp_status scratch_of(const gp_worker *worker, ceiling *c, size_t *bytes) {
  const gp_lane *lane = &worker->lane;
  const gp_op_def *def = gp_op_get(GP_OP_matmul);
  if (!lane->facts->at_once) return lane->work->prepare(lane, GP_OP_matmul, &c->call, bytes);
  c->cut = gp_op_cut(def, &c->call);
  size_t wanted = gp_half_scratch(def, &c->call);
  GP_TRY(gp_size_align(wanted, 64, &c->scratch_bytes));
  *bytes = c->scratch_bytes * (size_t)worker->threads;
  return GP_OK;
}

static gp_status lay_out(const gp_worker *worker, ceiling *c, size_t *scratch) {
  gp_shape shape = {.rank = 2, .dim = {c->size, c->size}};
  *scratch = 0;
  c->bytes = (size_t)c->size;
  if (!c->product) return GP_OK;
  GP_TRY(gp_meta_make(c->dtype, &shape, &c->meta));
  c->bytes = gp_meta_bytes(&c->meta);
  c->call = (gp_call){.attr = &c->attrs, .step = &c->step, .n_in = 2, .n_out = 1};
  for (int i = 0; i < 2; i++) c->call.in[i] = (gp_arg){NULL, &c->meta};
  c->call.out[0] = (gp_arg){NULL, &c->meta};
  return scratch_of(worker, c, scratch);
}

/* Numbers of either sign around 1 in every float dtype: zeros would let a GPU clock higher. */
static void make_numbers(uint16_t *numbers, size_t count) {
  uint32_t state = 1;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525 + 1013904223;
    numbers[i] = (uint16_t)(0x3f00 | (state >> 16 & 0x80ff));
  }
}

/* Fill both source blocks with the same PIECE bytes of numbers, again and again. */
static gp_status fill_blocks(const gp_lane *lane, const ceiling *c) {
  uint16_t *numbers;
  gp_status status = GP_OK;
  GP_TRY(gp_alloc(PIECE, (void **)&numbers));
  make_numbers(numbers, PIECE / sizeof *numbers);
  for (int i = 0; i < 2; i++)
    for (size_t at = 0; !status && at < c->bytes; at += PIECE) {
      size_t left = c->bytes - at;
      status = gp_lane_copy(lane, c->blocks[i] + at, numbers, left < PIECE ? left : PIECE);
    }
  if (!status) status = gp_lane_sync(lane);
  gp_free(numbers);
  return status;
}

static gp_status take(const gp_worker *worker, ceiling *c, size_t scratch) {
  int blocks = c->product ? 3 : 2;
  for (int i = 0; i < blocks; i++)
    GP_TRY(gp_lane_alloc(&worker->lane, c->bytes, (void **)&c->blocks[i]));
  if (scratch) GP_TRY(gp_lane_alloc(&worker->lane, scratch, &c->scratch));
  for (int i = 0; i < 2 && c->product; i++) c->call.in[i].data = c->blocks[i];
  if (c->product) c->call.out[0].data = c->blocks[2];
  return fill_blocks(&worker->lane, c);
}

static void give(const gp_worker *worker, ceiling *c, size_t scratch) {
  for (int i = 0; i < 3; i++) gp_lane_free(&worker->lane, c->blocks[i], c->bytes);
  gp_lane_free(&worker->lane, c->scratch, scratch);
  memset(c->blocks, 0, sizeof c->blocks);
  c->scratch = NULL;
}

/* Does the device have room for the blocks beside what it holds? */
static gp_status fits(const gp_worker *worker, const ceiling *c, size_t scratch, bool *fit) {
  size_t left;
  GP_TRY(worker->lane.memory->free_bytes(&worker->lane, &left));
  *fit = left / 2 > 3 * c->bytes + scratch;
  return GP_OK;
}

static gp_status measure_size(gp_pipeline *p, ceiling *c) {
  const gp_worker *worker = &p->workers[c->device];
  size_t scratch;
  bool fit;
  c->best = 0;
  GP_TRY(lay_out(worker, c, &scratch));
  GP_TRY(fits(worker, c, scratch, &fit));
  if (!fit) return GP_OK;
  gp_status status = take(worker, c, scratch);
  if (!status) status = gp_workers_run(p, measure, c);
  give(worker, c, scratch);
  return status;
}

/* FLOP of a product; bytes that a copy reads and writes. */
static double work_of(const ceiling *c) {
  double size = (double)c->size;
  return c->product ? 2 * size * size * size : 2 * size;
}

static gp_status measure_growing(gp_pipeline *p, ceiling *c, const growth *g) {
  for (c->size = g->first; c->size <= g->last; c->size *= g->factor) {
    GP_TRY(measure_size(p, c));
    if (!(c->best > 0)) return GP_OK;
    c->rate = work_of(c) / c->best;
    if (c->best >= g->enough) return GP_OK;
  }
  return GP_OK;
}

gp_status gp_pipeline_ceiling(gp_pipeline *p, int device, const gp_dtype *product,
                              double *per_second) {
  ceiling c = {.device = device, .product = product != NULL, .dtype = product ? *product : GP_U8};
  if (p->closed || p->watch.lost || p->run.open || p->profiling.open)
    return gp_fail(GP_ESTATE,
                   "ceiling: the pipeline is closed or busy, expected an open one that rests");
  bool host = p->workers[device].lane.facts->at_once;
  const growth *copies = host ? &copies_of_host : &copies_of_queue;
  const growth *products = host ? &products_of_host : &products_of_queue;
  GP_TRY(measure_growing(p, &c, product ? products : copies));
  *per_second = c.rate;
  return GP_OK;
}
