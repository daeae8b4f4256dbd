/* tests/cuda/plans/cudnn_refusals_test.c - whatever cuDNN refuses, at whichever call, is an answer
 * and no error: kept, and with a reason.
 *
 * The library is a stand-in whose calls do nothing but count and refuse on request; neither cuDNN
 * nor CUDA is needed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/cudnn/library.h"
#include "test.h"

/* ---- the stand-in -------------------------------------------------------------------------- */

#define NAME_OF(name) CALL_##name,
typedef enum call { GP_CUDNN_FUNCTIONS(NAME_OF) CALLS } call;

#define TEXT_OF(name) #name,
static const char *const names[] = {GP_CUDNN_FUNCTIONS(TEXT_OF)};

static struct {
  atomic_int count[CALLS];
  atomic_int live;    /* descriptors */
  atomic_int handles; /* open ones */
  call refused;
  int nth; /* from 1; 0: nothing is refused */
  bool lost, missing;
} stand_in;

static cudnnStatus_t come(call c) {
  const int n = ++stand_in.count[c];
  return c == stand_in.refused && n == stand_in.nth ? CUDNN_STATUS_NOT_SUPPORTED
                                                    : CUDNN_STATUS_SUCCESS;
}

static size_t get_version(void) { return 91900; }
static const char *error_string(cudnnStatus_t status) { return status ? "refused" : "fine"; }
static void last_error(char *text, size_t size) { snprintf(text, size, "on request\nand more"); }

static cudnnStatus_t create(cudnnHandle_t *handle) {
  const cudnnStatus_t s = come(CALL_cudnnCreate);
  if (s) return s;
  *handle = malloc(1), stand_in.handles++;
  return s;
}

static cudnnStatus_t destroy(cudnnHandle_t handle) {
  free(handle), stand_in.handles--;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
  (void)handle, (void)stream;
  return come(CALL_cudnnSetStream);
}

static cudnnStatus_t make_descriptor(cudnnBackendDescriptorType_t type,
                                     cudnnBackendDescriptor_t *made) {
  (void)type;
  const cudnnStatus_t s = come(CALL_cudnnBackendCreateDescriptor);
  if (s) return s;
  *made = malloc(1), stand_in.live++;
  return s;
}

static cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t d) {
  free(d), stand_in.live--;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_attribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count,
                                   const void *value) {
  (void)d, (void)name, (void)type, (void)count, (void)value;
  return come(CALL_cudnnBackendSetAttribute);
}

/* One engine, without notes, that wants 64 bytes. */
static cudnnStatus_t get_attribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t most, int64_t *count,
                                   void *value) {
  (void)d, (void)type, (void)most;
  *count = name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? 0 : 1;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) *(int64_t *)value = 64;
  return come(CALL_cudnnBackendGetAttribute);
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t d) {
  (void)d;
  return come(CALL_cudnnBackendFinalize);
}

static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t pack) {
  (void)handle, (void)plan, (void)pack;
  return come(CALL_cudnnBackendExecute);
}

/* In place of library.c. */
const gp_cudnn_library *gp_cudnn_library_get(const char **why) {
  static const gp_cudnn_library library = {.cudnnGetVersion = get_version,
                                           .cudnnGetErrorString = error_string,
                                           .cudnnGetLastErrorString = last_error,
                                           .cudnnCreate = create,
                                           .cudnnDestroy = destroy,
                                           .cudnnSetStream = set_stream,
                                           .cudnnBackendCreateDescriptor = make_descriptor,
                                           .cudnnBackendDestroyDescriptor = destroy_descriptor,
                                           .cudnnBackendSetAttribute = set_attribute,
                                           .cudnnBackendGetAttribute = get_attribute,
                                           .cudnnBackendFinalize = finalize,
                                           .cudnnBackendExecute = execute};
  *why = "it is not there";
  return stand_in.missing ? NULL : &library;
}

/* ---- the rest of the plugin ---------------------------------------------------------------- */

gp_status gp_gpu_fail(gp_status status, const char *format, ...) { return (void)format, status; }

gp_status gp_gpu_refused(const gp_gpu *gpu, const char *doing) {
  (void)gpu, (void)doing;
  return stand_in.lost ? GP_EDEVICE : GP_OK;
}

gp_status gp_attention_stage_mask(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_value *to) {
  return (void)gpu, (void)a, (void)to, GP_OK;
}
gp_status gp_attention_write_kept(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_words *words, void *to) {
  return (void)gpu, (void)a, (void)words, (void)to, GP_OK;
}
gp_status gp_attention_clear_rows(gp_gpu *gpu, const gp_attention *a) {
  return (void)gpu, (void)a, GP_OK;
}
gp_status gp_attention_add_heads(gp_gpu *gpu, const gp_attention *a, const float *const sums[2]) {
  return (void)gpu, (void)a, (void)sums, GP_OK;
}

/* ---- training ------------------------------------------------------------------------------ */

/* B x 4 heads, T = 32, D = 64, contiguous; forward, or backward. */
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

/* Prepare, then run three times; how often cuDNN did it. Whatever happens is no error. */
static int train(gp_gpu *gpu, int64_t batches, bool backward, const char **reason) {
  const gp_attention a = attention_of(batches, backward);
  const char *why;
  size_t scratch;
  int done = 0;
  CHECK(gp_cudnn_attention_prepare(gpu, &a, &scratch, &why) == GP_OK);
  *reason = why;
  for (int i = 0; i < 3; i++) {
    bool ran;
    CHECK(gp_cudnn_attention_run(gpu, &a, &ran, &why) == GP_OK);
    CHECK(!(ran && why));
    if (why) CHECK(!*reason), *reason = why;
    done += ran;
  }
  return done;
}

/* GPUs of other numbers have not been seen by the cache of the process. */
static gp_gpu fresh(void) {
  static int ordinal;
  return (gp_gpu){.spec = {.ordinal = ordinal++, .parts = 1}, .info = {.sm_count = 132}};
}

static void expect(call refused, int nth) {
  for (int c = 0; c < CALLS; c++) stand_in.count[c] = 0;
  stand_in.refused = refused, stand_in.nth = nth;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Every call that training makes, at its first, a middle and its last time. */
static void refuse_each(call c, bool backward) {
  const char *why;
  gp_gpu healthy = fresh();
  expect(c, 0);
  CHECK(train(&healthy, 2, backward, &why) == 3 && !why);
  gp_cudnn_close(&healthy);
  const int calls = stand_in.count[c];
  for (int i = 0; i < 3; i++) {
    const int nth = i == 0 ? 1 : i == 1 ? calls / 2 + 1 : calls, handles = stand_in.handles;
    gp_gpu gpu = fresh();
    expect(c, nth);
    const int done = train(&gpu, 2, backward, &why);
    if (done == 3) /* another engine, or another form of the same question, was taken */
      CHECK(!why);
    else
      CHECK(why && *why && !strchr(why, '\n'));
    const int again = stand_in.count[c];
    const char *same;
    if (done < 3 && why) CHECK(train(&gpu, 2, backward, &same) == 0 && strcmp(same, why) == 0);
    if (done < 3 && c == CALL_cudnnBackendFinalize) CHECK(stand_in.count[c] == again);
    gp_cudnn_close(&gpu);
    CHECK(stand_in.handles <= handles + 1); /* that which plans are made with stays */
    if (test_failures) printf("%s:%d backward %d\n", names[c], nth, backward);
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
    for (int backward = 0; backward < 2; backward++) refuse_each(asked[i], backward != 0);
}

TEST(a_refusal_to_run_is_remembered_by_the_process) {
  const char *why;
  gp_gpu first = fresh(), second = first;
  expect(CALL_cudnnBackendExecute, 2);
  CHECK(train(&first, 2, false, &why) == 1 && why && strstr(why, "refused"));
  CHECK(stand_in.count[CALL_cudnnBackendExecute] == 2);
  CHECK(train(&second, 2, false, &why) == 0 && why && strstr(why, "refused"));
  CHECK(stand_in.count[CALL_cudnnBackendExecute] == 2);
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

TEST(our_own_kernels_may_be_asked_for) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnCreate, 0);
  setenv("GPIPE_ATTENTION", "own", 1);
  CHECK(train(&gpu, 2, false, &why) == 0 && why && strstr(why, "GPIPE_ATTENTION"));
  CHECK(stand_in.count[CALL_cudnnCreate] == 0);
  setenv("GPIPE_ATTENTION", "", 1);
  CHECK(train(&gpu, 2, false, &why) == 3 && !why);
  gp_cudnn_close(&gpu);
}

TEST(a_plan_is_made_once_for_a_gpu_a_size_and_a_shape) {
  const char *why;
  gp_gpu first = fresh(), second = first, part = first;
  part.spec.parts = 2, part.info.sm_count = 64;
  expect(CALL_cudnnBackendFinalize, 0);
  CHECK(train(&first, 3, false, &why) == 3);
  const int made = stand_in.count[CALL_cudnnBackendFinalize];
  gp_cudnn_close(&first); /* the next pipeline finds it too */
  CHECK(train(&second, 3, false, &why) == 3);
  const int runs = stand_in.count[CALL_cudnnBackendFinalize] - made; /* one pack for each run */
  CHECK(runs == 3);
  CHECK(train(&part, 3, false, &why) == 3);
  CHECK(stand_in.count[CALL_cudnnBackendFinalize] == 2 * made + runs);
  CHECK(train(&second, 4, false, &why) == 3);
  CHECK(stand_in.count[CALL_cudnnBackendFinalize] == 3 * made + runs);
  gp_cudnn_close(&second), gp_cudnn_close(&part);
}

/* Ever new shapes, one device after the other. */
TEST(plans_that_nobody_holds_are_bounded) {
  const char *why;
  gp_gpu gpu = fresh();
  expect(CALL_cudnnBackendFinalize, 0);
  int most = 0;
  for (int64_t b = 1; b <= 300; b++) {
    gp_gpu next = gpu;
    CHECK(train(&next, b, false, &why) == 3);
    gp_cudnn_close(&next);
    if (b == 100) most = stand_in.live;
  }
  CHECK(stand_in.live <= most);
}

static void *train_many(void *gpu) {
  const char *why;
  for (int64_t b = 1; b <= 20; b++) CHECK(train(gpu, b, b % 2 != 0, &why) == 3);
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

TEST_MAIN(no_refusal_ends_training, a_refusal_to_run_is_remembered_by_the_process,
          a_gpu_that_is_lost_is_an_error, without_the_library_there_is_a_reason,
          our_own_kernels_may_be_asked_for, a_plan_is_made_once_for_a_gpu_a_size_and_a_shape,
          plans_that_nobody_holds_are_bounded, threads_share_plans)
