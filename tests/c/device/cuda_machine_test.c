/* tests/c/device/cuda_machine_test.c - GPUs, drivers and parts of GPUs that refuse or lack
 * something.
 *
 * Only the plugin compiled for the host can be told what the machine is like (tests/cuda/cudart),
 * by environment variables that it reads once: each case is a child process that opens it. With
 * another plugin, or none, nothing is tested. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "device/plugin.h"
#include "device/rows_version.h"
#include "test.h"

enum { PARTS = 4, MOST = 4 };

static const gp_gpu_api *api;

static gp_status fail(gp_status status, const char *text) { return gp_fail_text(status, text); }

static void open_plugin(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = handle ? dlsym(handle, GP_PLUGIN_ENTRY) : NULL;
  gp_plugin_open open;
  gp_plugin_host host = {.version = GP_PLUGIN_VERSION, .ops = gp_rows_version(), .fail = fail};
  memcpy(&open, &symbol, sizeof open);
  CHECK(symbol != NULL);
  if (symbol) CHECK_STATUS(open(&host, &api), GP_OK);
}

/* What a machine is like: NAME=VALUE. */
typedef struct machine {
  const char *variables[MOST];
} machine;

/* Runs a check on such a machine in a child; the check receives context. */
static void on(machine m, void (*check)(const void *context), const void *context) {
  const char *path = getenv("GPIPE_CUDA_PLUGIN");
  if (!path || !strstr(path, "cuda_host")) {
    printf("not the plugin's form for the host: nothing is tested\n");
    return;
  }
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    test_failures = 0;
    for (int i = 0; i < MOST && m.variables[i]; i++) putenv((char *)m.variables[i]);
    open_plugin(path);
    if (api) check(context);
    exit(test_failures > 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status) printf("on a machine with %s\n", m.variables[0]);
  CHECK(status == 0);
}

/* ---- machines without a GPU ---------------------------------------------------------------- */

static void check_none(const void *context) {
  int count = -1;
  gp_gpu *gpu = NULL;
  gp_gpu_spec spec = {.parts = 1};
  CHECK_STATUS(api->count(&count), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), context);
  CHECK(count == -1);
  gp_fail(GP_EIO, "another");
  CHECK_STATUS(api->open(&spec, &gpu), GP_EDEVICE);
  CHECK(gpu == NULL);
}

/* Each text says what to do about it. */
TEST(a_machine_without_gpus_says_why) {
  static const struct {
    machine machine;
    const char *text;
  } cases[] = {
      {{{"GPIPE_TEST_GPUS=none"}}, "no NVIDIA driver"},
      {{{"GPIPE_TEST_GPUS=old"}}, "it knows CUDA 11.4"},
      {{{"GPIPE_TEST_GPUS=0"}}, "no GPU that it can see"},
      {{{"GPIPE_TEST_GPUS=0", "CUDA_VISIBLE_DEVICES=7"}}, "CUDA_VISIBLE_DEVICES is \"7\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    on(cases[i].machine, check_none, cases[i].text);
  }
}

/* Only the first call fails; the next one finds the GPUs. */
static void check_count(const void *context) {
  int count = -1;
  CHECK_STATUS(api->count(&count), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), context);
  CHECK_STATUS(api->count(&count), GP_OK);
  CHECK(count == 2);
}

TEST(what_the_runtime_answers_is_said_in_words) {
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaGetDeviceCount:1:802"}}, check_count, "fabric manager");
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaGetDeviceCount:1:999"}}, check_count, "cudaErrorUnknown");
}

static void check_only(const void *context) {
  gp_gpu_info info;
  (void)context;
  CHECK_STATUS(api->describe(3, &info), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), "cuda:3: no such GPU, expected cuda:0 (the only one)");
  CHECK_STATUS(api->describe(0, &info), GP_OK);
}

TEST(the_only_gpu_is_named) { on((machine){{"GPIPE_TEST_GPUS=1"}}, check_only, NULL); }

/* ---- calls that fail ----------------------------------------------------------------------- */

/* A failed attempt leaves nothing half open: the next attempt works. */
static void check_open(const void *context) {
  gp_gpu *gpu = NULL;
  gp_gpu_spec spec = {.ordinal = 1, .parts = 1};
  CHECK_STATUS(api->open(&spec, &gpu), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), "cuda:1");
  CHECK_TEXT(gp_error_text(), context);
  CHECK_STATUS(api->open(&spec, &gpu), GP_OK);
  api->close(gpu);
}

TEST(a_gpu_that_cannot_be_opened_can_be_later) {
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaSetDevice:1:46"}}, check_open, "making it current");
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaStreamCreateWithFlags:2:999"}}, check_open, "stream");
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaGetDeviceProperties:1:999"}}, check_open, "properties");
}

static void check_memory(const void *context) {
  gp_gpu *gpu = NULL;
  gp_gpu_spec spec = {.parts = 1};
  void *memory = NULL;
  (void)context;
  CHECK_STATUS(api->open(&spec, &gpu), GP_OK);
  CHECK_STATUS(api->alloc(gpu, (size_t)1 << 45, &memory), GP_ENOMEM);
  CHECK_TEXT(gp_error_text(), "cuda:0: out of memory: asked for 32.0 TiB");
  CHECK(memory == NULL && !strstr(gp_error_text(), "free are"));
  api->close(gpu);
}

TEST(what_is_free_is_left_out_where_the_gpu_does_not_say) {
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaMemGetInfo:1:999"}}, check_memory, NULL);
}

/* Another library in the script may have enabled the access before. */
static void check_peers(const void *context) {
  gp_gpu *gpus[2];
  for (int i = 0; i < 2; i++) {
    gp_gpu_spec spec = {.ordinal = i, .parts = 1};
    CHECK_STATUS(api->open(&spec, &gpus[i]), GP_OK);
  }
  CHECK(api->reaches(gpus[0], gpus[1]) == (context != NULL));
  CHECK(api->reaches(gpus[0], gpus[1]) == (context != NULL)); /* the first answer is remembered */
  for (int i = 0; i < 2; i++) api->close(gpus[i]);
}

TEST(access_that_there_is_already_is_access) {
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaDeviceEnablePeerAccess:1:704"}}, check_peers, "yes");
  on((machine){{"GPIPE_TEST_CUDA_FAIL=cudaDeviceEnablePeerAccess:1:217"}}, check_peers, NULL);
  on((machine){{"GPIPE_TEST_NOPEER=1"}}, check_peers, NULL);
}

/* ---- parts of a GPU ------------------------------------------------------------------------ */

/* The expected parts of a GPU: multiprocessors of each; 0: they share all. */
typedef struct parts {
  gp_status status;
  const char *text; /* the error of the first attempt; the second succeeds */
  int sms;
} parts;

static void close_all(gp_gpu **open) {
  for (int i = 0; i < PARTS; i++) api->close(open[i]);
}

/* Opens all parts; returns the first error. */
static gp_status open_all(gp_gpu **open) {
  gp_status status = GP_OK;
  for (int i = 0; i < PARTS && !status; i++) {
    gp_gpu_spec spec = {.part = i, .parts = PARTS};
    status = api->open(&spec, &open[i]);
  }
  return status;
}

static void check_parts(const void *context) {
  const parts *wanted = context;
  gp_gpu *open[PARTS] = {NULL};
  gp_gpu_info info, whole;
  CHECK_STATUS(api->describe(0, &whole), GP_OK);
  CHECK_STATUS(open_all(open), wanted->status);
  if (wanted->status) {
    CHECK_TEXT(gp_error_text(), "cuda:0/");
    CHECK_TEXT(gp_error_text(), wanted->text);
    close_all(open);
    memset(open, 0, sizeof open);
    CHECK_STATUS(open_all(open), GP_OK);
  }
  for (int i = 0; i < PARTS && open[i]; i++) {
    api->info(open[i], &info);
    CHECK(info.isolated == (wanted->sms > 0));
    CHECK(info.sm_count == (wanted->sms ? wanted->sms : whole.sm_count));
    CHECK_STATUS(api->sync(open[i], GP_STREAM_COMPUTE), GP_OK);
  }
  close_all(open);
}

/* Four parts of 132 multiprocessors: of groups of 32 there are only three, so each gets 24. */
TEST(parts_have_multiprocessors_of_their_own_where_the_driver_can) {
  static const struct {
    const char *fails; /* "NAME:CALL:CODE" of the driver */
    parts parts;
  } cases[] = {
      {"none:0", {GP_OK, NULL, 24}},
      {"split:1:914", {GP_OK, NULL, 24}},       /* the driver refuses this size */
      {"get_resource:1:801", {GP_OK, NULL, 0}}, /* the GPU cannot be split: the parts share it */
      {"get_device:1:999", {GP_EDEVICE, "splitting its multiprocessors", 24}},
      {"split:1:999", {GP_EDEVICE, "splitting its multiprocessors", 24}},
      {"describe:2:999", {GP_EDEVICE, "opening a part of it", 24}},
      {"create:3:2", {GP_ENOMEM, "opening a part of it", 24}},
      {"make_stream:5:2", {GP_ENOMEM, "opening a part of it", 24}},
      /* The streams of parts are refused what a step needs, at every step of the probe. */
      {"cudaEventCreateWithFlags:1+:400", {GP_OK, NULL, 0}},
      {"cudaEventRecordWithFlags:1+:400", {GP_OK, NULL, 0}},
      {"cudaStreamWaitEvent:1+:400", {GP_OK, NULL, 0}},
      {"cudaStreamBeginCapture:1+:801", {GP_OK, NULL, 0}},
      {"cudaGraphInstantiate:1+:801", {GP_OK, NULL, 0}},
      {"cudaGraphLaunch:1+:400", {GP_OK, NULL, 0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char fails[64];
    snprintf(fails, sizeof fails, "GPIPE_TEST_CUDA_FAIL=%s", cases[i].fails);
    on((machine){{"GPIPE_TEST_GREEN=1", fails}}, check_parts, &cases[i].parts);
  }
  on((machine){{"GPIPE_TEST_GPUS=1"}}, check_parts, &(parts){GP_OK, NULL, 0}); /* an old driver */
}

/* Finds the note of that kind on a device; false: there is none. */
static bool find_note(const gp_gpu *gpu, const char *kind, gp_work_path *found) {
  for (int i = 0; api->path(gpu, i, found); i++)
    if (strcmp(found->kind, kind) == 0) return true;
  return false;
}

/* The first part is refused multiprocessors of its own, so it shares those of the others. */
static void check_first(const void *context) {
  gp_gpu *open[PARTS] = {NULL};
  gp_gpu_info info;
  (void)context;
  CHECK_STATUS(open_all(open), GP_OK);
  for (int i = 0; i < PARTS && open[i]; i++) {
    api->info(open[i], &info);
    gp_work_path note;
    CHECK(info.isolated == (i > 0));
    CHECK(find_note(open[i], "part", &note) == (i == 0));
    if (i == 0) CHECK_TEXT(note.why, "driver");
  }
  close_all(open);
}

TEST(a_part_that_is_refused_shares_the_gpu_and_says_so) {
  on((machine){{"GPIPE_TEST_GREEN=1", "GPIPE_TEST_CUDA_FAIL=create:1:801"}}, check_first, NULL);
}

/* Opens one of more parts than there are groups of the least size. */
static void check_many(const void *context) {
  gp_gpu *gpu = NULL;
  gp_gpu_info info;
  gp_gpu_spec spec = {.part = 19, .parts = 20};
  (void)context;
  CHECK_STATUS(api->open(&spec, &gpu), GP_OK);
  api->info(gpu, &info);
  CHECK(!info.isolated);
  api->close(gpu);
}

TEST(more_parts_than_groups_share_the_gpu) {
  on((machine){{"GPIPE_TEST_GREEN=1"}}, check_many, NULL);
}

static void check_note_of_probe(const void *context) {
  gp_gpu *open[PARTS] = {NULL};
  gp_work_path note;
  (void)context;
  CHECK_STATUS(open_all(open), GP_OK);
  CHECK(find_note(open[0], "part", &note));
  CHECK_TEXT(note.why, "beginning to capture on its streams: operation not supported");
  close_all(open);
}

TEST(a_part_whose_streams_refuse_a_capture_says_so) {
  on((machine){{"GPIPE_TEST_GREEN=1", "GPIPE_TEST_CUDA_FAIL=cudaStreamBeginCapture:1+:801"}},
     check_note_of_probe, NULL);
}

/* ---- pairs of GPUs ------------------------------------------------------------------------- */

/* Two GPUs reach each other unless the context says why not. */
static void check_pair(const void *context) {
  const char *why = context;
  gp_gpu *open[2] = {NULL};
  gp_work_path note;
  for (int i = 0; i < 2; i++) {
    gp_gpu_spec spec = {.ordinal = i, .parts = 1};
    CHECK_STATUS(api->open(&spec, &open[i]), GP_OK);
  }
  for (int i = 0; i < 2; i++) CHECK(api->reaches(open[0], open[1]) == !why); /* asked once */
  CHECK(find_note(open[0], "peers", &note) == (why != NULL));
  if (why) CHECK_TEXT(note.why, why);
  if (why) CHECK_TEXT(note.shape, "cuda:1 to cuda:0");
  for (int i = 0; i < 2; i++) api->close(open[i]);
}

TEST(a_pair_of_gpus_is_trusted_after_a_pattern_has_arrived) {
  static const struct {
    const char *variable, *why;
  } cases[] = {{"GPIPE_TEST_NOTHING=1", NULL},
               {"GPIPE_TEST_NOPEER=1", "do not reach each other"},
               {"GPIPE_TEST_BAD_PEER=1", "arrived with other bytes"},
               {"GPIPE_PEERS=0", "GPIPE_PEERS=0"},
               {"GPIPE_TEST_CUDA_FAIL=cudaMemcpyPeerAsync:1:1", "a copy between them failed"},
               {"GPIPE_TEST_CUDA_FAIL=cudaHostAlloc:1:2", "a copy between them failed"},
               {"GPIPE_TEST_CUDA_FAIL=cudaEventQuery:1+:600", "did not end within two seconds"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    on((machine){{"GPIPE_TEST_GPUS=2", cases[i].variable}}, check_pair, cases[i].why);
}

/* ---- errors -------------------------------------------------------------------------------- */

/* Copies fail with the error of the context; then the GPU is lost, or it is not. */
static void check_lost(const void *context) {
  const bool lost = *(const bool *)context;
  gp_gpu *gpu = NULL;
  gp_gpu_spec spec = {.parts = 1};
  char from[8] = {0}, to[8];
  CHECK_STATUS(api->open(&spec, &gpu), GP_OK);
  CHECK_STATUS(api->copy(gpu, GP_STREAM_COMPUTE, to, from, sizeof to), GP_EDEVICE);
  const gp_status next = api->copy(gpu, GP_STREAM_COMPUTE, to, from, sizeof to);
  CHECK_STATUS(next, lost ? GP_EDEVICE : GP_OK);
  if (lost) CHECK_TEXT(gp_error_text(), "nothing more can run on this GPU");
  api->close(gpu);
}

TEST(a_gpu_is_lost_after_errors_that_stay) {
  static const struct {
    const char *fails, *also;
    bool lost;
  } cases[] = {{"cudaMemcpyAsync:1:700", "", true},
               {"cudaMemcpyAsync:1:226", "", true},
               {"cudaMemcpyAsync:1:721", "", true},
               {"cudaMemcpyAsync:1:225", "", false},
               {"cudaMemcpyAsync:1:999", "", false},
               {"cudaMemcpyAsync:1:999", ",cudaMemGetInfo:1+:999", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char fails[96];
    snprintf(fails, sizeof fails, "GPIPE_TEST_CUDA_FAIL=%s%s", cases[i].fails, cases[i].also);
    on((machine){{"GPIPE_TEST_GPUS=1", fails}}, check_lost, &cases[i].lost);
  }
}

TEST_MAIN(a_machine_without_gpus_says_why, what_the_runtime_answers_is_said_in_words,
          the_only_gpu_is_named, a_gpu_that_cannot_be_opened_can_be_later,
          what_is_free_is_left_out_where_the_gpu_does_not_say,
          access_that_there_is_already_is_access,
          parts_have_multiprocessors_of_their_own_where_the_driver_can,
          a_part_that_is_refused_shares_the_gpu_and_says_so, more_parts_than_groups_share_the_gpu,
          a_part_whose_streams_refuse_a_capture_says_so,
          a_pair_of_gpus_is_trusted_after_a_pattern_has_arrived,
          a_gpu_is_lost_after_errors_that_stay)
