/* tests/c/device/cuda_plugin_test.c - the table of libgpipe_cuda.so, called as the core calls it.
 *
 * The plugin is the one that GPIPE_CUDA_PLUGIN names, else the one beside this program; without one
 * nothing is tested. Tests that need a GPU check first whether there is one; the plugin compiled
 * for the host (tests/cuda) always has some. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "device/plugin.h"
#include "device/rows_version.h"
#include "test.h"

enum { N = 1000 };

static const gp_gpu_api *api; /* NULL: no plugin */
static int gpus;

static gp_status fail(gp_status status, const char *text) { return gp_fail_text(status, text); }

static gp_plugin_open find_plugin(void) {
  char path[4096];
  const char *named = getenv("GPIPE_CUDA_PLUGIN");
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
  if (length <= 0) return NULL;
  path[length] = 0;
  strcpy(strrchr(path, '/') + 1, "libgpipe_cuda.so");
  if (!named && access(path, R_OK)) {
    printf("this build has no CUDA plugin: nothing is tested\n");
    return NULL;
  }
  void *handle = dlopen(named ? named : path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) printf("%s\n", dlerror());
  CHECK(handle != NULL);
  void *symbol = handle ? dlsym(handle, GP_PLUGIN_ENTRY) : NULL;
  gp_plugin_open open;
  memcpy(&open, &symbol, sizeof open);
  return open;
}

static gp_gpu *open_part(int ordinal, int part, int parts) {
  gp_gpu *gpu = NULL;
  gp_gpu_spec spec = {.ordinal = ordinal, .part = part, .parts = parts};
  CHECK_STATUS(api->open(&spec, &gpu), GP_OK);
  return gpu;
}

/* ---- what needs no GPU ----------------------------------------------------------------------- */

TEST(compares_versions_and_ops) {
  gp_plugin_open open = find_plugin();
  if (!open) return;
  gp_plugin_host host = {.version = GP_PLUGIN_VERSION + 1, .ops = gp_rows_version(), .fail = fail};
  const gp_gpu_api *found = NULL;
  CHECK_STATUS(open(&host, &found), GP_EUNSUPPORTED);
  CHECK_TEXT(gp_error_text(), "different builds");
  host.version = GP_PLUGIN_VERSION;
  host.ops ^= 1;
  CHECK_STATUS(open(&host, &found), GP_EUNSUPPORTED);
  CHECK_TEXT(gp_error_text(), "other ops or structs");
  CHECK(found == NULL);
  host.ops ^= 1;
  CHECK_STATUS(open(&host, &api), GP_OK);
}

TEST(says_why_there_is_no_gpu) {
  if (!api) return;
  if (api->count(&gpus) == GP_OK) {
    CHECK(gpus > 0);
    return;
  }
  gpus = 0; /* the other tests then have nothing to do */
  gp_gpu_info info;
  gp_gpu *gpu = NULL;
  gp_gpu_spec spec = {.parts = 1};
  void *memory = NULL;
  char why[400];
  snprintf(why, sizeof why, "%s", gp_error_text());
  printf("no GPU: %s\n", why);
  CHECK_STATUS(api->describe(0, &info), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), why);
  CHECK_STATUS(api->open(&spec, &gpu), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), why);
  CHECK_STATUS(api->host_alloc(64, &memory), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), why);
}

TEST(ranges_may_be_pushed_anywhere) {
  if (!api) return;
  api->range_push("2F0", 0);
  api->range_pop();
}

/* ---- opening --------------------------------------------------------------------------------- */

TEST(refuses_what_is_not_there) {
  if (!gpus) return;
  gp_gpu *gpu = NULL;
  gp_gpu_info info;
  gp_gpu_spec spec = {.ordinal = gpus, .parts = 1};
  CHECK_STATUS(api->open(&spec, &gpu), GP_EDEVICE);
  CHECK_TEXT(gp_error_text(), "no such GPU");
  CHECK_STATUS(api->describe(-1, &info), GP_EDEVICE);
  spec = (gp_gpu_spec){.part = 4, .parts = 4};
  CHECK_STATUS(api->open(&spec, &gpu), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "expected 0of4 to 3of4");
  CHECK(gpu == NULL);
  api->close(NULL);
}

/* Isolated parts are disjoint: together they have no more multiprocessors than the GPU. */
TEST(parts_of_a_gpu_add_up) {
  if (!gpus) return;
  enum { PARTS = 4 };
  gp_gpu_info whole, info;
  gp_gpu *parts[PARTS];
  int count = 0;
  CHECK_STATUS(api->describe(0, &whole), GP_OK);
  for (int i = 0; i < PARTS; i++) {
    parts[i] = open_part(0, i, PARTS);
    if (!parts[i]) return;
    api->info(parts[i], &info);
    count += info.isolated ? info.sm_count : whole.sm_count / PARTS;
  }
  CHECK(count > 0 && count <= whole.sm_count);
  CHECK(api->same_memory(parts[0], parts[3]) && api->reaches(parts[0], parts[3]));
  for (int i = 0; i < PARTS; i++) api->close(parts[i]);
}

/* ---- memory, streams, events ----------------------------------------------------------------- */

/* The refusal does not last: an allocation that fits succeeds afterwards. */
TEST(out_of_memory_says_how_much) {
  if (!gpus) return;
  gp_gpu *gpu = open_part(0, 0, 1);
  size_t before, after;
  void *memory = NULL;
  CHECK_STATUS(api->free_bytes(gpu, &before), GP_OK);
  CHECK_STATUS(api->alloc(gpu, (size_t)1 << 45, &memory), GP_ENOMEM);
  CHECK_TEXT(gp_error_text(), "cuda:0: out of memory: asked for 32.0 TiB, free are ");
  CHECK(memory == NULL);
  CHECK_STATUS(api->alloc(gpu, 1 << 20, &memory), GP_OK);
  CHECK((uintptr_t)memory % GP_GPU_ALIGNMENT == 0);
  api->free(gpu, memory);
  api->free(gpu, NULL);
  /* A driver may give back memory of its own meanwhile. */
  CHECK_STATUS(api->free_bytes(gpu, &after), GP_OK);
  CHECK(before > 0 && after > 0);
  api->close(gpu);
}

/* Two devices with a piece of memory each and a piece of the host's. */
typedef struct pair {
  gp_gpu *a, *b;
  float *host;
  void *on_a, *on_b;
  gp_gpu_event *a_done, *b_done;
} pair;

static pair open_pair(void) {
  pair p = {.a = open_part(0, 0, 1), .b = open_part(gpus - 1, 0, 1)};
  void *host = NULL;
  CHECK_STATUS(api->host_alloc(N * sizeof *p.host, &host), GP_OK);
  p.host = host;
  CHECK_STATUS(api->alloc(p.a, N * sizeof *p.host, &p.on_a), GP_OK);
  CHECK_STATUS(api->alloc(p.b, N * sizeof *p.host, &p.on_b), GP_OK);
  CHECK_STATUS(api->event_new(p.a, true, &p.a_done), GP_OK);
  CHECK_STATUS(api->event_new(p.b, false, &p.b_done), GP_OK);
  for (int i = 0; i < N; i++) p.host[i] = (float)i;
  CHECK_STATUS(api->copy(p.a, GP_STREAM_COMPUTE, p.on_a, host, N * sizeof *p.host), GP_OK);
  CHECK_STATUS(api->sync(p.a, GP_STREAM_COMPUTE), GP_OK);
  return p;
}

static void close_pair(pair *p) {
  api->event_free(p->a_done);
  api->event_free(p->b_done);
  api->free(p->a, p->on_a);
  api->free(p->b, p->on_b);
  api->host_free(p->host);
  api->close(p->a);
  api->close(p->b);
}

/* Sends what a computed to b, and from there to the host. */
static void send(pair *p) {
  size_t bytes = N * sizeof *p->host;
  CHECK_STATUS(api->wait(p->b, GP_STREAM_RECEIVE, p->a_done), GP_OK);
  CHECK_STATUS(api->copy_peer(p->b, GP_STREAM_RECEIVE, p->on_b, p->a, p->on_a, bytes), GP_OK);
  CHECK_STATUS(api->record(p->b, GP_STREAM_RECEIVE, p->b_done), GP_OK);
  CHECK_STATUS(api->wait(p->b, GP_STREAM_SEND, p->b_done), GP_OK);
  CHECK_STATUS(api->copy(p->b, GP_STREAM_SEND, p->host, p->on_b, bytes), GP_OK);
  CHECK_STATUS(api->record(p->b, GP_STREAM_SEND, p->b_done), GP_OK);
  CHECK_STATUS(api->finish(p->b_done), GP_OK);
}

/* Only events stand between the three streams that this value passes. */
TEST(events_order_streams_and_gpus) {
  if (!gpus) return;
  pair p = open_pair();
  gp_gpu_event *begin = NULL;
  double seconds = -1;
  bool done = false;
  CHECK_STATUS(api->event_new(p.a, true, &begin), GP_OK);
  CHECK_STATUS(api->record(p.a, GP_STREAM_COMPUTE, begin), GP_OK);
  CHECK_STATUS(api->scale(p.a, &(gp_gpu_run){GP_F32, N, p.on_a}, 1, 2), GP_OK);
  CHECK_STATUS(api->record(p.a, GP_STREAM_COMPUTE, p.a_done), GP_OK);
  send(&p);
  CHECK(p.host[1] == 2 && p.host[N - 1] == 2 * (N - 1));
  CHECK_STATUS(api->done(p.b_done, &done), GP_OK);
  CHECK(done);
  CHECK_STATUS(api->seconds(begin, p.a_done, &seconds), GP_OK);
  CHECK(seconds >= 0);
  api->event_free(begin);
  close_pair(&p);
}

TEST(fills_and_ignores_empty_work) {
  if (!gpus) return;
  pair p = open_pair();
  CHECK_STATUS(api->fill(p.a, GP_STREAM_COMPUTE, p.on_a, 0, N * sizeof *p.host), GP_OK);
  CHECK_STATUS(api->fill(p.a, GP_STREAM_COMPUTE, p.on_a, 1, 0), GP_OK);
  CHECK_STATUS(api->copy(p.a, GP_STREAM_COMPUTE, NULL, NULL, 0), GP_OK);
  CHECK_STATUS(api->copy_peer(p.b, GP_STREAM_COMPUTE, NULL, p.a, NULL, 0), GP_OK);
  CHECK_STATUS(api->record(p.a, GP_STREAM_COMPUTE, p.a_done), GP_OK);
  send(&p);
  CHECK(p.host[1] == 0 && p.host[N - 1] == 0);
  close_pair(&p);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

TEST(a_graph_runs_again_with_its_events) {
  if (!gpus) return;
  pair p = open_pair();
  gp_gpu_graph *graph = NULL;
  CHECK_STATUS(api->capture_begin(p.a), GP_OK);
  CHECK_STATUS(api->scale(p.a, &(gp_gpu_run){GP_F32, N, p.on_a}, 1, 2), GP_OK);
  CHECK_STATUS(api->record(p.a, GP_STREAM_COMPUTE, p.a_done), GP_OK);
  CHECK_STATUS(api->capture_end(p.a, &graph), GP_OK);
  CHECK(graph != NULL);
  for (int i = 0; graph && i < 3; i++) {
    CHECK_STATUS(api->launch(p.a, graph), GP_OK);
    send(&p);
    CHECK(p.host[3] == (float)(3 << (i + 1))); /* nothing ran while it was captured */
  }
  api->graph_free(graph);
  api->graph_free(NULL);
  close_pair(&p);
}

/* A capture forbids waiting for its stream. */
TEST(a_spoilt_capture_leaves_the_stream_usable) {
  if (!gpus) return;
  pair p = open_pair();
  gp_gpu_graph *graph = NULL;
  CHECK_STATUS(api->capture_begin(p.a), GP_OK);
  CHECK_STATUS(api->scale(p.a, &(gp_gpu_run){GP_F32, N, p.on_a}, 1, 2), GP_OK);
  CHECK(api->sync(p.a, GP_STREAM_COMPUTE) != GP_OK);
  CHECK_STATUS(api->capture_end(p.a, &graph), GP_OK);
  CHECK(graph == NULL);
  CHECK_STATUS(api->record(p.a, GP_STREAM_COMPUTE, p.a_done), GP_OK);
  send(&p);
  CHECK(p.host[3] == 3);
  close_pair(&p);
}

TEST(closing_leaves_a_capture) {
  if (!gpus) return;
  gp_gpu *gpu = open_part(0, 0, 1);
  void *memory = NULL;
  CHECK_STATUS(api->capture_begin(gpu), GP_OK);
  api->close(gpu);
  gpu = open_part(0, 0, 1);
  CHECK_STATUS(api->alloc(gpu, 64, &memory), GP_OK); /* refused during a capture */
  api->free(gpu, memory);
  api->close(gpu);
}

/* ---- ops ------------------------------------------------------------------------------------- */

TEST(refuses_an_op_that_is_none) {
  if (!gpus) return;
  gp_gpu *gpu = open_part(0, 0, 1);
  gp_gpu_call call = {0};
  size_t scratch = 1;
  CHECK_STATUS(api->run(gpu, GP_OP_COUNT, &call), GP_EINVAL);
  CHECK_STATUS(api->prepare(gpu, GP_OP_COUNT, &call.op, &scratch), GP_EINVAL);
  CHECK_STATUS(api->run(gpu, GP_OP_reshape, &call), GP_OK); /* a view: nothing runs */
  CHECK_STATUS(api->prepare(gpu, GP_OP_reshape, &call.op, &scratch), GP_OK);
  CHECK(scratch == 0);
  api->close(gpu);
}

TEST_MAIN(compares_versions_and_ops, says_why_there_is_no_gpu, ranges_may_be_pushed_anywhere,
          refuses_what_is_not_there, parts_of_a_gpu_add_up, out_of_memory_says_how_much,
          events_order_streams_and_gpus, fills_and_ignores_empty_work,
          a_graph_runs_again_with_its_events, a_spoilt_capture_leaves_the_stream_usable,
          closing_leaves_a_capture, refuses_an_op_that_is_none)
