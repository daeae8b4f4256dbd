/* tests/gpu/sm_ids.c - do parts of a GPU keep to multiprocessors of their own, launched and
 * replayed?
 *
 * The driver promises it for streams of a green context; no document says clearly whether a graph
 * that was captured from such a stream stays there. The plugin that GPIPE_CUDA_PLUGIN names opens
 * the parts, captures and launches; only the kernel is the test's. Prints figures as scripts/bench
 * does. The argument is how long a block lasts, in rounds of the kernel (2000). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/gpu.h"
#include "device/gpus.h"
#include "sm_ids.h"

enum { MOST_PARTS = 8, LAUNCHES = 5 };

typedef struct part {
  gp_gpu *gpu;
  unsigned char eager[MOST_SMS], replayed[MOST_SMS];
} part;

static const gp_gpu_api *api;
static int rounds = 2000;

static void stop(const char *doing) {
  printf("gpu.sms skipped: %s: %s\n", doing, gp_error_text());
  exit(1);
}

static void try(gp_status status, const char *doing) {
  if (status != GP_OK) stop(doing);
}

static void launch(const part *p, void *seen) {
  cudaError_t error = note_sm_ids(p->gpu->streams[GP_STREAM_COMPUTE], seen, rounds);
  if (error == cudaSuccess) return;
  printf("gpu.sms skipped: launching: %s\n", cudaGetErrorString(error));
  exit(1);
}

/* Copies where the launches of one kind ran into ids[MOST_SMS]. */
static void fetch(const part *p, void *seen, unsigned char *ids) {
  try(api->copy(p->gpu, GP_STREAM_COMPUTE, ids, seen, MOST_SMS), "copying");
  try(api->sync(p->gpu, GP_STREAM_COMPUTE), "waiting");
}

/* Launches a few times, then captures one launch and replays it as often. */
static void measure(part *p) {
  void *seen;
  gp_gpu_graph *graph;
  try(api->alloc(p->gpu, MOST_SMS, &seen), "allocating");
  try(api->fill(p->gpu, GP_STREAM_COMPUTE, seen, 0, MOST_SMS), "filling");
  for (int i = 0; i < LAUNCHES; i++) launch(p, seen);
  fetch(p, seen, p->eager);
  try(api->fill(p->gpu, GP_STREAM_COMPUTE, seen, 0, MOST_SMS), "filling");
  try(api->capture_begin(p->gpu), "beginning to capture");
  launch(p, seen);
  try(api->capture_end(p->gpu, &graph), "ending a capture");
  if (!graph) stop("capturing");
  for (int i = 0; i < LAUNCHES; i++) try(api->launch(p->gpu, graph), "replaying");
  fetch(p, seen, p->replayed);
  api->graph_free(graph);
  api->free(p->gpu, seen);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void print(int n, const char *name, int value, const char *what, int bound) {
  printf("gpu.sms.parts%d.%s %d %s", n, name, value, what);
  if (bound >= 0) printf(" must <= %d: %s", bound, value <= bound ? "met" : "short");
  printf("\n");
  fflush(stdout);
}

/* Counts the multiprocessors that two or more of the parts used. */
static int count_shared(const part *parts, int n, size_t kind) {
  int shared = 0;
  for (int id = 0; id < MOST_SMS; id++) {
    int users = 0;
    for (int k = 0; k < n; k++) users += ((const unsigned char *)&parts[k])[kind + (size_t)id];
    shared += users > 1;
  }
  return shared;
}

static void print_part(int n, int k, const part *p) {
  int eager = 0, replayed = 0;
  char name[64];
  for (int id = 0; id < MOST_SMS; id++) eager += p->eager[id], replayed += p->replayed[id];
  snprintf(name, sizeof name, "part%d.eager", k);
  print(n, name, eager, "multiprocessors ran blocks", -1);
  snprintf(name, sizeof name, "part%d.replayed", k);
  print(n, name, replayed, "multiprocessors ran blocks", -1);
}

static void check_parts(int n) {
  part parts[MOST_PARTS] = {0};
  gp_gpu_info info = {0};
  int outside = 0;
  for (int k = 0; k < n; k++) {
    try(api->open(&(gp_gpu_spec){0, k, n}, &parts[k].gpu), "opening a part");
    measure(&parts[k]);
    for (int id = 0; id < MOST_SMS; id++) outside += parts[k].replayed[id] && !parts[k].eager[id];
  }
  api->info(parts[0].gpu, &info);
  print(n, "size", info.sm_count, info.isolated ? "multiprocessors each" : "shared by all", -1);
  for (int k = 0; k < n; k++) print_part(n, k, &parts[k]);
  /* Parts that share all multiprocessors say so, and then nothing is promised. */
  int bound = info.isolated ? 0 : -1;
  print(n, "eager.shared", count_shared(parts, n, offsetof(part, eager)), "of two parts", bound);
  print(n, "replayed.shared", count_shared(parts, n, offsetof(part, replayed)), "of two parts",
        bound);
  print(n, "replayed.outside", outside, "that the part did not use before", bound);
  for (int k = 0; k < n; k++) api->close(parts[k].gpu);
}

int main(int argc, char **argv) {
  int count;
  if (argc > 1) rounds = atoi(argv[1]);
  if (gp_gpus_api(&api) || api->count(&count)) {
    printf("gpu.sms skipped: %s\n", gp_error_text());
    return 0;
  }
  for (int n = 1; n <= MOST_PARTS; n *= 2) check_parts(n);
  return 0;
}
