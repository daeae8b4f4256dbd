/* device/cuda/cudnn/cudnn.c - see cudnn.h and cache.h.
 *
 * Why there is no library is found out once and kept, like the plans: training asks for each of its
 * shapes at every start, and a search through folders or engines takes long. */
#include "device/cuda/cudnn/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An answer: a plan, or that there is none. */
typedef struct entry {
  gp_cudnn_key key;
  gp_cudnn_plan plan;
  char why[300]; /* there is no plan */
  struct entry *next;
} entry;

struct gp_cudnn_cache {
  const gp_cudnn_library *library; /* NULL: there is none */
  cudnnHandle_t handle;            /* NULL: there is none, because: */
  char missing[300];
  entry *entries;
};

/* ---- opening ------------------------------------------------------------------------------- */

/* The handle enqueues on one stream: that of computing. Failing is an answer too. */
static void open_handle(gp_gpu *gpu, gp_cudnn_cache *cache) {
  const char *why, *call = "cudnnCreate";
  cache->library = gp_cudnn_library_get(&why);
  if (!cache->library) {
    snprintf(cache->missing, sizeof cache->missing, "no cuDNN: %s", why);
    return;
  }
  cudnnStatus_t s = cache->library->cudnnCreate(&cache->handle);
  if (s == CUDNN_STATUS_SUCCESS) {
    call = "cudnnSetStream";
    s = cache->library->cudnnSetStream(cache->handle, gpu->streams[GP_STREAM_COMPUTE]);
  }
  if (s == CUDNN_STATUS_SUCCESS) return;
  snprintf(cache->missing, sizeof cache->missing, "%s: %s", call,
           cache->library->cudnnGetErrorString(s));
  if (cache->handle) cache->library->cudnnDestroy(cache->handle);
  cache->handle = NULL;
}

/* Errors: GP_ENOMEM; gpu->cudnn->handle says whether there is a library. */
static gp_status open_library(gp_gpu *gpu) {
  if (gpu->cudnn) return GP_OK;
  gpu->cudnn = calloc(1, sizeof *gpu->cudnn);
  if (!gpu->cudnn) return gp_gpu_fail(GP_ENOMEM, "cuDNN: no memory on the host");
  open_handle(gpu, gpu->cudnn);
  return GP_OK;
}

/* 91900 is 9.19.0. */
void gp_cudnn_describe(gp_gpu_library *library) {
  const char *why;
  const gp_cudnn_library *found = gp_cudnn_library_get(&why);
  snprintf(library->name, sizeof library->name, "cuDNN");
  if (!found) {
    snprintf(library->why, sizeof library->why, "%s", why);
    return;
  }
  const size_t version = found->cudnnGetVersion();
  snprintf(library->version, sizeof library->version, "%zu.%zu.%zu", version / 10000,
           version / 100 % 100, version % 100);
}

void gp_cudnn_close(gp_gpu *gpu) {
  gp_cudnn_cache *cache = gpu->cudnn;
  if (!cache) return;
  for (entry *e = cache->entries, *next; e; e = next) {
    next = e->next;
    gp_cudnn_plan_close(&e->plan);
    free(e);
  }
  if (cache->handle) cache->library->cudnnDestroy(cache->handle);
  free(cache);
  gpu->cudnn = NULL;
}

/* ---- plans --------------------------------------------------------------------------------- */

/* A model has a few kinds of attention: a list is enough. */
static entry *find(const gp_cudnn_cache *cache, const gp_cudnn_key *key) {
  for (entry *e = cache->entries; e; e = e->next)
    if (memcmp(&e->key, key, sizeof *key) == 0) return e;
  return NULL;
}

gp_cudnn_plan *gp_cudnn_find(gp_gpu *gpu, const gp_cudnn_key *key) {
  entry *e = gpu->cudnn ? find(gpu->cudnn, key) : NULL;
  return e && e->plan.node ? &e->plan : NULL;
}

/* The library's own words end in where its sources lie, and in line breaks. */
static void write_refusal(entry *e, const gp_cudnn_library *library) {
  char text[200] = "";
  library->cudnnGetLastErrorString(text, sizeof text);
  text[strcspn(text, "\n")] = 0;
  snprintf(e->why, sizeof e->why, "cuDNN has no deterministic plan: %s%s%s%s",
           library->cudnnGetErrorString(e->plan.graph.status), *text ? " (" : "", text,
           *text ? ")" : "");
}

/* A graph without a plan stays as an entry without one, and holds nothing. */
static gp_status add(gp_gpu *gpu, const gp_cudnn_request *request) {
  gp_cudnn_cache *cache = gpu->cudnn;
  const gp_cudnn_target target = {.handle = cache->handle,
                                  .sm_count = gpu->spec.parts > 1 ? gpu->info.sm_count : 0};
  entry *e = calloc(1, sizeof *e);
  if (!e) return gp_gpu_fail(GP_ENOMEM, "cuDNN: no memory on the host");
  e->key = request->key;
  e->plan.graph.library = cache->library;
  request->describe(&e->plan.graph, request->what);
  if (!gp_cudnn_plan_build(&e->plan, &target)) {
    write_refusal(e, cache->library);
    gp_cudnn_plan_close(&e->plan);
  }
  e->next = cache->entries;
  cache->entries = e;
  return GP_OK;
}

gp_status gp_cudnn_prepare(gp_gpu *gpu, const gp_cudnn_request *request, gp_cudnn_plan **plan,
                           const char **why) {
  *plan = NULL;
  GP_GPU_TRY(open_library(gpu));
  *why = gpu->cudnn->missing;
  if (!gpu->cudnn->handle) return GP_OK;
  if (!find(gpu->cudnn, &request->key)) GP_GPU_TRY(add(gpu, request));
  entry *e = find(gpu->cudnn, &request->key);
  if (e->plan.node)
    *plan = &e->plan, *why = NULL;
  else
    *why = e->why;
  return GP_OK;
}

gp_status gp_cudnn_run(gp_gpu *gpu, gp_cudnn_plan *plan, const gp_cudnn_operand *operands,
                       int count, void *workspace, const char *doing) {
  cudnnStatus_t s = gp_cudnn_plan_run(plan, gpu->cudnn->handle, operands, count, workspace);
  if (s == CUDNN_STATUS_SUCCESS) return GP_OK;
  /* What the driver says is closer to the cause than what the library makes of it. */
  GP_GPU_TRY(gp_gpu_check(gpu, cudaPeekAtLastError(), doing));
  char why[256] = "";
  gpu->cudnn->library->cudnnGetLastErrorString(why, sizeof why);
  return gp_gpu_fail(GP_EDEVICE, "cuda:%d: %s: cuDNN: %s (%s)", gpu->spec.ordinal, doing,
                     gpu->cudnn->library->cudnnGetErrorString(s), why);
}
