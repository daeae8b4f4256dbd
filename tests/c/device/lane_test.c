/* tests/c/device/lane_test.c - what the table of a lane promises (device/lane.h), for every kind.
 *
 * GPUs are those of the plugin that GPIPE_CUDA_PLUGIN names, which the tests set to the one
 * compiled for the host; without a plugin only the CPU is tested. */
#include "device/lane.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "test.h"

enum { N = 20000, KINDS = 2 }; /* N: more elements than one thread takes at a time */

static const char *const names[KINDS] = {"cpu:0", "cuda:0"};

/* ops is NULL where the machine has no such device. */
static gp_lane open_lane(const char *name) {
  gp_lane lane = {0};
  gp_lane_options options = {.threads = 2};
  gp_status status = gp_lane_open(name, &options, &lane);
  if (status) printf("%s is not tested: %s\n", name, gp_error_text());
  CHECK(status == GP_OK || (status == GP_EDEVICE && strcmp(name, "cpu:0")));
  return lane;
}

static void *taken(const gp_lane *lane, size_t bytes) {
  void *memory = NULL;
  CHECK_STATUS(gp_lane_alloc(lane, bytes, &memory), GP_OK);
  return memory;
}

/* Copies from the lane's memory to the host's, and waits until the lane has finished. */
static void bring(const gp_lane *lane, void *to, const void *from, size_t bytes) {
  CHECK_STATUS(gp_lane_sync(lane), GP_OK);
  if (lane->space) CHECK_STATUS(lane->space->read(lane->space, to, from, bytes), GP_OK);
  if (!lane->space) memcpy(to, from, bytes);
}

static void send(const gp_lane *lane, void *to, const void *from, size_t bytes) {
  if (lane->space) CHECK_STATUS(lane->space->write(lane->space, to, from, bytes), GP_OK);
  if (!lane->space) memcpy(to, from, bytes);
}

/* ---- opening ------------------------------------------------------------------------------- */

TEST(names_of_no_device_open_nothing) {
  static const char *const wrong[] = {"", "tpu:0", "cpu:", "cpu:x", "cpu:0/0of2", "cuda:0/2of2"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    gp_lane lane = {0};
    CHECK_STATUS(gp_lane_open(wrong[i], &(gp_lane_options){.threads = 1}, &lane), GP_EINVAL);
    CHECK_TEXT(gp_error_text(), wrong[i]);
    CHECK(lane.facts == NULL);
    gp_lane_close(&lane); /* closing a lane that is not open does nothing */
  }
}

/* ---- memory -------------------------------------------------------------------------------- */

TEST(memory_is_zeroed_filled_and_copied) {
  static unsigned char got[N];
  for (int k = 0; k < KINDS; k++) {
    gp_lane lane = open_lane(names[k]);
    if (!lane.facts) continue;
    size_t bytes;
    CHECK_STATUS(lane.memory->free_bytes(&lane, &bytes), GP_OK);
    CHECK(bytes > N);
    char *a = taken(&lane, N), *b = taken(&lane, N);
    bring(&lane, got, a, N);
    for (int i = 0; i < N; i++) CHECK(got[i] == 0);
    CHECK_STATUS(gp_lane_fill(&lane, a + 1, 0xa5, N - 2), GP_OK);
    CHECK_STATUS(gp_lane_fill(&lane, NULL, 1, 0), GP_OK); /* zero bytes need no address */
    CHECK_STATUS(gp_lane_copy(&lane, b, a, N), GP_OK);
    bring(&lane, got, b, N);
    for (int i = 0; i < N; i++) CHECK(got[i] == (i == 0 || i == N - 1 ? 0 : 0xa5));
    gp_lane_free(&lane, a, N);
    gp_lane_free(&lane, b, N);
    gp_lane_free(&lane, NULL, 0);
    gp_lane_close(&lane);
  }
}

/* A lane that reaches another copies from it directly; every lane reaches itself and the host. */
TEST(lanes_fetch_from_those_that_they_reach) {
  static int sent[N], got[N];
  for (int i = 0; i < N; i++) sent[i] = i ^ 0x5a5a;
  for (int k = 0; k < KINDS * KINDS; k++) {
    gp_lane from = open_lane(names[k / KINDS]), to = open_lane(names[k % KINDS]);
    if (from.facts && to.facts) {
      void *a = taken(&from, sizeof sent), *b = taken(&to, sizeof sent);
      send(&from, a, sent, sizeof sent);
      CHECK(to.memory->reaches(&to, &to));
      CHECK(to.memory->reaches(&to, &from) == (to.space || !from.space)); /* not a CPU a GPU */
      memset(got, 0, sizeof got);
      if (to.memory->reaches(&to, &from)) {
        CHECK_STATUS(gp_lane_fill(&to, b, 0, sizeof sent), GP_OK);
        CHECK_STATUS(to.memory->fetch(&to, GP_STREAM_RECEIVE, b, &from, a, sizeof sent), GP_OK);
        CHECK_STATUS(to.streams->sync(&to, GP_STREAM_RECEIVE), GP_OK);
        bring(&to, got, b, sizeof got);
        CHECK(memcmp(sent, got, sizeof got) == 0);
      }
      gp_lane_free(&from, a, sizeof sent);
      gp_lane_free(&to, b, sizeof sent);
    }
    gp_lane_close(&from);
    gp_lane_close(&to);
  }
}

TEST(sums_are_those_of_every_element) {
  static double d[N], e[N];
  static float f[N], g[N];
  for (int i = 0; i < N; i++) d[i] = i + 0.25, f[i] = (float)i / 4, e[i] = 1, g[i] = 2;
  for (int k = 0; k < KINDS; k++) {
    gp_lane lane = open_lane(names[k]);
    if (!lane.facts) continue;
    void *to = taken(&lane, sizeof d), *from = taken(&lane, sizeof d);
    send(&lane, to, d, sizeof d);
    send(&lane, from, d, sizeof d);
    CHECK_STATUS(gp_lane_add(&lane, GP_F64, N, to, from), GP_OK);
    bring(&lane, e, to, sizeof e);
    for (int i = 0; i < N; i++) CHECK(e[i] == 2 * d[i]);
    send(&lane, to, f, sizeof f);
    send(&lane, from, f, sizeof f);
    CHECK_STATUS(gp_lane_add(&lane, GP_F32, N - 1, to, from), GP_OK);
    bring(&lane, g, to, sizeof g);
    for (int i = 0; i < N; i++) CHECK(g[i] == (i < N - 1 ? 2 * f[i] : f[i]));
    gp_lane_free(&lane, to, sizeof d);
    gp_lane_free(&lane, from, sizeof d);
    gp_lane_close(&lane);
  }
}

/* ---- events -------------------------------------------------------------------------------- */

TEST(events_happen_in_the_order_of_the_stream) {
  for (int k = 0; k < KINDS; k++) {
    gp_lane lane = open_lane(names[k]), other = open_lane(names[k]);
    if (!lane.facts || !other.facts) continue;
    gp_lane_event *begin, *end;
    double seconds = -1;
    bool done = false;
    CHECK_STATUS(lane.streams->event_new(&lane, true, &begin), GP_OK);
    CHECK_STATUS(lane.streams->event_new(&lane, true, &end), GP_OK);
    CHECK_STATUS(lane.streams->record(&lane, GP_STREAM_COMPUTE, begin), GP_OK);
    CHECK_STATUS(lane.streams->record(&lane, GP_STREAM_COMPUTE, end), GP_OK);
    CHECK_STATUS(other.streams->wait(&other, GP_STREAM_SEND, end), GP_OK);
    CHECK_STATUS(other.streams->sync(&other, GP_STREAM_SEND), GP_OK);
    CHECK_STATUS(lane.streams->is_done(&lane, end, &done), GP_OK);
    CHECK(done);
    CHECK_STATUS(lane.streams->seconds(&lane, begin, end, &seconds), GP_OK);
    CHECK(seconds >= 0 && seconds < 60);
    CHECK_STATUS(lane.streams->wait(&lane, GP_STREAM_COMPUTE, NULL),
                 GP_OK); /* threads: over at once */
    lane.streams->event_free(&lane, begin);
    lane.streams->event_free(&lane, end);
    gp_lane_close(&lane);
    gp_lane_close(&other);
  }
}

/* ---- work ---------------------------------------------------------------------------------- */

static gp_status no_piece(void *context, int64_t index, int thread) {
  (void)index;
  (void)thread;
  return ++*(int *)context, GP_OK;
}

/* CPU lanes run pieces, GPU lanes run ops: the other half of the table names itself and refuses. */
TEST(a_lane_refuses_the_half_that_it_does_not_work_by) {
  for (int k = 0; k < KINDS; k++) {
    gp_lane lane = open_lane(names[k]);
    if (!lane.facts) continue;
    int calls = 0;
    gp_status pieces = lane.work->pieces(&lane, 1, no_piece, &calls);
    CHECK(pieces == (lane.facts->at_once ? GP_OK : GP_EUNSUPPORTED));
    CHECK(calls == lane.facts->at_once);
    if (lane.facts->at_once) {
      size_t scratch = 1;
      CHECK_STATUS(lane.work->prepare(&lane, GP_OP_relu, NULL, &scratch), GP_OK);
      CHECK(scratch == 0); /* each thread has scratch of its own */
      CHECK_STATUS(lane.work->launch(&lane, &(gp_lane_call){.op = GP_OP_relu}), GP_EUNSUPPORTED);
      CHECK_TEXT(gp_error_text(), names[k]);
      CHECK_STATUS(lane.work->check_finite(&lane, NULL, NULL, 0), GP_EUNSUPPORTED);
    }
    CHECK_TEXT(gp_error_text(), names[k]);
    gp_lane_close(&lane);
  }
}

/* The search reports the first value that is not finite, by the smallest tag, in every float
 * dtype. */
TEST(a_queue_finds_the_first_value_that_is_not_finite) {
  static const gp_dtype dtypes[] = {GP_F32, GP_F64, GP_BF16, GP_F16};
  gp_lane lane = open_lane("cuda:0");
  if (!lane.facts) return;
  gp_lane_fault *fault = taken(&lane, sizeof *fault), found;
  char *data = taken(&lane, N * sizeof(double));
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
    gp_meta meta;
    size_t size = gp_dtype_size(dtypes[t]);
    CHECK_STATUS(gp_meta_make(dtypes[t], &(gp_shape){.rank = 1, .dim = {N - 1}}, &meta), GP_OK);
    gp_arg value = {.meta = &meta, .data = data};
    send(&lane, fault, &(gp_lane_fault){.key = GP_LANE_NO_FAULT}, sizeof *fault);
    CHECK_STATUS(gp_lane_fill(&lane, data, 0, N * sizeof(double)), GP_OK);
    CHECK_STATUS(lane.work->check_finite(&lane, &value, fault, 3), GP_OK);
    bring(&lane, &found, fault, sizeof found);
    CHECK(found.key == GP_LANE_NO_FAULT);
    CHECK_STATUS(gp_lane_fill(&lane, data + 7 * size, 0xff, size), GP_OK);
    CHECK_STATUS(gp_lane_fill(&lane, data + (N - 2) * size, 0xff, size), GP_OK);
    CHECK_STATUS(lane.work->check_finite(&lane, &value, fault, 5), GP_OK);
    CHECK_STATUS(lane.work->check_finite(&lane, &value, fault, 4), GP_OK);
    bring(&lane, &found, fault, sizeof found);
    CHECK(found.key == ((uint64_t)4 << 32 | 7));
  }
  gp_lane_free(&lane, fault, sizeof *fault);
  gp_lane_free(&lane, data, N * sizeof(double));
  gp_lane_close(&lane);
}

/* A mini-batch in which no row counts has loss 0, so its scale is 0 and not infinite. */
TEST(counts_settle_to_one_scale_for_all_micro_batches) {
  static const struct {
    int64_t counts[3];
    double inverse;
  } cases[] = {{{3, 0, 5}, 1.0 / 8}, {{0, 0, 0}, 0}, {{1, 0, 0}, 1}};
  for (int k = 0; k < KINDS; k++) {
    gp_lane lane = open_lane(names[k]);
    if (!lane.facts) continue;
    gp_step_block *blocks = taken(&lane, 3 * sizeof *blocks), got[3];
    int64_t *counts = taken(&lane, sizeof cases[0].counts);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      send(&lane, counts, cases[c].counts, sizeof cases[c].counts);
      CHECK_STATUS(lane.work->settle(&lane, counts, blocks, 3), GP_OK);
      bring(&lane, got, blocks, sizeof got);
      for (int i = 0; i < 3; i++) CHECK(got[i].inverse_count == cases[c].inverse);
    }
    gp_lane_free(&lane, blocks, 3 * sizeof *blocks);
    gp_lane_free(&lane, counts, sizeof cases[0].counts);
    gp_lane_close(&lane);
  }
}

typedef struct filled {
  const gp_lane *lane;
  void *memory;
} filled;

static gp_status fill_with_ones(void *context) {
  const filled *f = context;
  return gp_lane_fill(f->lane, f->memory, 1, N);
}

static void check_capture(const gp_lane *lane) {
  filled f = {lane, taken(lane, N)};
  gp_lane_graph *graph = NULL;
  char got[N];
  CHECK_STATUS(gp_lane_capture(lane, fill_with_ones, &f, &graph), GP_OK);
  CHECK(graph != NULL);
  bring(lane, got, f.memory, N);
  CHECK(got[N - 1] == 0);
  if (graph) CHECK_STATUS(lane->graphs->launch(lane, graph), GP_OK);
  bring(lane, got, f.memory, N);
  CHECK(got[N - 1] == 1);
  if (graph) lane->graphs->free(graph);
  gp_lane_free(lane, f.memory, N);
}

/* What is captured runs at each launch and not before; lanes of threads capture nothing. */
TEST(captured_work_runs_when_it_is_launched) {
  for (int k = 0; k < KINDS; k++) {
    gp_lane lane = open_lane(names[k]);
    if (!lane.facts) continue;
    CHECK((lane.graphs == NULL) == lane.facts->at_once);
    if (lane.graphs) check_capture(&lane);
    gp_lane_close(&lane);
  }
}

TEST_MAIN(names_of_no_device_open_nothing, memory_is_zeroed_filled_and_copied,
          lanes_fetch_from_those_that_they_reach, sums_are_those_of_every_element,
          events_happen_in_the_order_of_the_stream,
          a_lane_refuses_the_half_that_it_does_not_work_by,
          a_queue_finds_the_first_value_that_is_not_finite,
          counts_settle_to_one_scale_for_all_micro_batches, captured_work_runs_when_it_is_launched)
