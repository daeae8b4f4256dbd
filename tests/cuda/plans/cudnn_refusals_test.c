/* tests/cuda/plans/cudnn_refusals_test.c - when cuDNN refuses, at whichever call, the plugin falls
 * back without an error, and remembers the refusal with its reason.
 *
 * The library is a stand-in whose calls only count, and refuse on request; neither cuDNN nor CUDA
 * is needed. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/table.h"
#include "rest_of_plugin.h"
#include "stand_in.h"
#include "test.h"

/* ---- training ------------------------------------------------------------------------------ */

/* Makes attention of B x 4 heads, T = 32, D = 64, contiguous; forward, or backward. */
static gp_attention attention_of(int64_t batches, bool backward) {
  static char memory[64];
  void *data = (void *)(((uintptr_t)memory + 15) / 16 * 16);
  const gp_attention_value v = {data, 4 * 32 * 64, 32 * 64, 64, 1};
  return (gp_attention){.dtype = GP_BF16,
                        .backward = backward,
                        .causal = true,
                        .batches = batches,
                        .heads = 4,
                        .groups = 4,
                        .queries = 32,
                        .keys = 32,
                        .width = 64,
                        .scale = 0.125,
                        .q = v,
                        .k = v,
                        .v = v,
                        .o = v,
                        .d_o = v,
                        .d_q = v,
                        .d_k = v,
                        .d_v = v,
                        .lse = {data, 4 * 32, 32, 1, 0},
                        .scratch = data};
}

/* The computations: attention and its gradient, the passes of a convolution, and the first two of
 * those with a bias. */
enum { FORWARD, BACKWARD, MAP, IMAGE, WEIGHT, MAP_BIAS, IMAGE_BIAS, KINDS };

static gp_convolution convolution_as(int64_t rows, int kind) {
  const bool biased = kind >= MAP_BIAS;
  return convolution_of(rows, (gp_convolution_pass)(kind - (biased ? MAP_BIAS : MAP)), biased);
}

static gp_status prepare(gp_gpu *gpu, int64_t batches, int kind, const char **why) {
  size_t scratch;
  if (kind <= BACKWARD) {
    const gp_attention a = attention_of(batches, kind == BACKWARD);
    return gp_cudnn_attention_prepare(gpu, &a, &scratch, why);
  }
  const gp_convolution c = convolution_as(batches, kind);
  return gp_cudnn_convolution_prepare(gpu, &c, &scratch, why);
}

static gp_status run(gp_gpu *gpu, int64_t batches, int kind, bool *ran, const char **why) {
  if (kind <= BACKWARD) {
    const gp_attention a = attention_of(batches, kind == BACKWARD);
    return gp_cudnn_attention_run(gpu, &a, ran, why);
  }
  const gp_convolution c = convolution_as(batches, kind);
  return gp_cudnn_convolution_run(gpu, &c, ran, why);
}

/* Prepares, then runs three times; returns how often cuDNN did the work. A refusal must be no
 * error. */
static int train(gp_gpu *gpu, int64_t batches, int kind, const char **reason) {
  const char *why;
  int done = 0;
  CHECK(prepare(gpu, batches, kind, &why) == GP_OK);
  *reason = why;
  for (int i = 0; i < 3; i++) {
    bool ran;
    CHECK(run(gpu, batches, kind, &ran, &why) == GP_OK);
    CHECK(!(ran && why));
    if (why) CHECK(!*reason), *reason = why;
    done += ran;
  }
  return done;
}

/* Returns a GPU with a new number, or a part of another size, which the cache of the process has
 * not seen. */
static gp_gpu fresh(void) {
  static int count;
  const int ordinal = count % GP_CUDA_MOST, round = count++ / GP_CUDA_MOST;
  return (gp_gpu){.spec = {.ordinal = ordinal, .parts = round ? 2 : 1},
                  .info = {.sm_count = 132 - round}};
}

static void expect(call refused, int nth) {
  for (int c = 0; c < CALLS; c++) stand_in.count[c] = 0;
  stand_in.refused = refused, stand_in.nth = nth, stand_in.last = 0;
}

/* The N-th run is refused, and every later one: each plan has two engines. */
static void refuse_all(int nth) {
  expect(CALL_cudnnBackendExecute, nth);
  stand_in.last = INT_MAX;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Refuses each call that training makes, at its first, a middle and its last time. */
static void refuse_each(call c, int kind) {
  const char *why;
  gp_gpu healthy = fresh();
  expect(c, 0);
  CHECK(train(&healthy, 2, kind, &why) == 3 && !why);
  gp_cudnn_close(&healthy);
  const int calls = stand_in.count[c];
  for (int i = 0; i < 3; i++) {
    const int nth = i == 0 ? 1 : i == 1 ? calls / 2 + 1 : calls, handles = stand_in.handles;
    gp_gpu gpu = fresh();
    expect(c, nth);
    const int done = train(&gpu, 2, kind, &why);
    if (done == 3) /* another engine, or another form of the call, served */
      CHECK(!why);
    else
      CHECK(why && *why && !strchr(why, '\n'));
    const int again = stand_in.count[c];
    const char *same;
    if (done < 3 && why) CHECK(train(&gpu, 2, kind, &same) == 0 && strcmp(same, why) == 0);
    if (done < 3 && c == CALL_cudnnBackendFinalize) CHECK(stand_in.count[c] == again);
    gp_cudnn_close(&gpu);
    CHECK(stand_in.handles <= handles + 1); /* the handle that makes plans stays open */
    if (test_failures) printf("%s:%d kind %d\n", call_names[c], nth, kind);
    if (test_failures) return;
  }
}

TEST(no_refusal_ends_training) {
  static const call asked[] = {CALL_cudnnCreate,
                               CALL_cudnnSetStream,
                               CALL_cudnnBackendCreateDescriptor,
                               CALL_cudnnBackendSetAttribute,
                               CALL_cudnnBackendGetAttribute,
                               CALL_cudnnBackendFinalize,
                               CALL_cudnnBackendExecute};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
    for (int kind = 0; kind < KINDS; kind++) refuse_each(asked[i], kind);
}

TEST(a_bias_lies_in_the_result_before) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnBackendExecute, 0);
  stand_in.biases = 0;
  CHECK(train(&gpu, 2, MAP, &why) == 3 && !why && stand_in.biases == 0);
  CHECK(train(&gpu, 2, MAP_BIAS, &why) == 3 && !why && stand_in.biases == 3);
  expect(CALL_cudnnBackendExecute, 2); /* the next engine adds to a bias that is written anew */
  CHECK(train(&gpu, 2, IMAGE_BIAS, &why) == 3 && !why && stand_in.biases == 3 + 4);
  gp_cudnn_close(&gpu);
}

TEST(an_engine_that_is_refused_gives_way_to_the_next) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnBackendExecute, 2);
  stand_in.notes = 0;
  CHECK(train(&gpu, 2, FORWARD, &why) == 3 && !why && stand_in.notes == 1);
  CHECK(stand_in.count[CALL_cudnnBackendExecute] == 4);
  const int lists = stand_in.count[CALL_cudnnBackendFinalize];
  CHECK(train(&gpu, 2, FORWARD, &why) == 3 && !why && stand_in.notes == 1);
  CHECK(stand_in.count[CALL_cudnnBackendFinalize] == lists + 3); /* a variant pack per run */
  gp_cudnn_close(&gpu);
}

TEST(a_refusal_to_be_captured_keeps_the_plan) {
  const char *why;
  for (int kind = 0; kind < KINDS; kind++) {
    gp_gpu gpu = fresh();
    bool ran;
    refuse_all(1);
    CHECK(prepare(&gpu, 2, kind, &why) == GP_OK && !why);
    gpu.capturing = true;
    CHECK(run(&gpu, 2, kind, &ran, &why) == GP_EUNSUPPORTED && !ran);
    CHECK(gpu.spoiled && stand_in.count[CALL_cudnnBackendExecute] == 1);
    gpu.capturing = false;
    expect(CALL_cudnnBackendExecute, 0);
    CHECK(train(&gpu, 2, kind, &why) == 3 && !why);
    gp_cudnn_close(&gpu);
  }
}

TEST(a_refusal_to_run_is_remembered_by_the_process) {
  const char *why;
  gp_gpu first = fresh(), second = first;
  refuse_all(2);
  CHECK(train(&first, 2, false, &why) == 1 && why && strstr(why, "refused"));
  const int tried = stand_in.count[CALL_cudnnBackendExecute]; /* parts are offered more engines */
  CHECK(tried == (first.spec.parts > 1 ? 5 : 3));
  CHECK(train(&second, 2, false, &why) == 0 && why && strstr(why, "refused"));
  CHECK(stand_in.count[CALL_cudnnBackendExecute] == tried);
  gp_cudnn_close(&first), gp_cudnn_close(&second);
}

TEST(a_gpu_that_is_lost_is_an_error) {
  const gp_attention a = attention_of(2, false);
  gp_gpu gpu = fresh();
  const char *why;
  size_t scratch;
  bool done;
  expect(CALL_cudnnBackendExecute, 1);
  CHECK(gp_cudnn_attention_prepare(&gpu, &a, &scratch, &why) == GP_OK);
  stand_in.lost = true;
  CHECK(gp_cudnn_attention_run(&gpu, &a, &done, &why) == GP_EDEVICE);
  gp_cudnn_close(&gpu);
  gpu = fresh();
  expect(CALL_cudnnBackendFinalize, 1);
  CHECK(gp_cudnn_attention_prepare(&gpu, &a, &scratch, &why) == GP_EDEVICE);
  stand_in.lost = false;
  gp_cudnn_close(&gpu);
}

TEST(without_the_library_there_is_a_reason) {
  const char *why;
  gp_gpu gpu = fresh();
  stand_in.missing = true;
  CHECK(train(&gpu, 2, false, &why) == 0 && why && strstr(why, "it is not there"));
  stand_in.missing = false;
  gp_cudnn_close(&gpu);
}

static void ask_for_own(const char *variable, int kind) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnCreate, 0);
  setenv(variable, "own", 1);
  CHECK(train(&gpu, 2, kind, &why) == 0 && why && strstr(why, variable));
  CHECK(stand_in.count[CALL_cudnnCreate] == 0);
  setenv(variable, "", 1);
  CHECK(train(&gpu, 2, kind, &why) == 3 && !why);
  gp_cudnn_close(&gpu);
}

TEST(our_own_kernels_may_be_asked_for) {
  ask_for_own("GPIPE_ATTENTION", FORWARD);
  ask_for_own("GPIPE_CONVOLUTION", WEIGHT);
}

TEST(the_backward_pass_alone_may_be_ours) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnCreate, 0);
  setenv("GPIPE_ATTENTION", "own-backward", 1);
  CHECK(train(&gpu, 2, FORWARD, &why) == 3 && !why);
  CHECK(train(&gpu, 2, BACKWARD, &why) == 0 && why && strstr(why, "own-backward"));
  setenv("GPIPE_ATTENTION", "", 1);
  gp_cudnn_close(&gpu);
}

TEST(a_plan_is_made_once_for_a_gpu_a_size_and_a_shape) {
  const char *why;
  gp_gpu first = fresh(), second = first, part = first;
  part.spec.parts = 2, part.info.sm_count = 64;
  expect(CALL_cudnnBackendFinalize, 0);
  CHECK(train(&first, 3, false, &why) == 3);
  const int made = stand_in.count[CALL_cudnnBackendFinalize];
  gp_cudnn_close(&first); /* the next pipeline finds the plan */
  CHECK(train(&second, 3, false, &why) == 3);
  const int runs = stand_in.count[CALL_cudnnBackendFinalize] - made; /* a variant pack per run */
  CHECK(runs == 3);
  CHECK(train(&part, 3, false, &why) == 3);
  CHECK(stand_in.count[CALL_cudnnBackendFinalize] == 2 * made + runs);
  CHECK(train(&second, 4, false, &why) == 3);
  CHECK(stand_in.count[CALL_cudnnBackendFinalize] == 3 * made + runs);
  gp_cudnn_close(&second), gp_cudnn_close(&part);
}

/* Shapes are always new, one device after the other. */
TEST(plans_that_nobody_holds_are_bounded) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnBackendFinalize, 0);
  int most = 0;
  for (int64_t b = 1; b <= 450; b++) {
    gp_gpu next = gpu;
    CHECK(train(&next, b, false, &why) == 3);
    gp_cudnn_close(&next);
    if (b == 200) most = stand_in.live;
  }
  CHECK(stand_in.live <= most);
}

static void *train_many(void *gpu) {
  const char *why;
  for (int64_t b = 1; b <= 20; b++) CHECK(train(gpu, b, (int)b % KINDS, &why) == 3);
  return NULL;
}

TEST(threads_share_plans) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  gp_gpu gpus[THREADS] = {fresh()};
  expect(CALL_cudnnBackendFinalize, 0);
  for (int i = 1; i < THREADS; i++) gpus[i] = gpus[0], gpus[i].cudnn = NULL;
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, train_many, &gpus[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < THREADS; i++) gp_cudnn_close(&gpus[i]);
}

TEST_MAIN(no_refusal_ends_training, a_bias_lies_in_the_result_before,
          an_engine_that_is_refused_gives_way_to_the_next, a_refusal_to_be_captured_keeps_the_plan,
          a_refusal_to_run_is_remembered_by_the_process, a_gpu_that_is_lost_is_an_error,
          without_the_library_there_is_a_reason, our_own_kernels_may_be_asked_for,
          the_backward_pass_alone_may_be_ours, a_plan_is_made_once_for_a_gpu_a_size_and_a_shape,
          plans_that_nobody_holds_are_bounded, threads_share_plans)
