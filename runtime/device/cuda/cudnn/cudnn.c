/* device/cuda/cudnn/cudnn.c - see cudnn.h and cache.h.
 *
 * Plans belong to the process (shared.c); a device has a handle, which enqueues on its stream, and
 * a list of the plans that it uses. A refusal of the library is no error: the answer "not by cuDNN"
 * is kept with its reason, and our own kernels compute. Only a lost GPU, or a lack of host memory,
 * is an error. */
#include "device/cuda/cudnn/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cudnn/shared.h"

/* An answer that this device has received. */
typedef struct entry {
  gp_cudnn_shared *shared;
  bool usable;   /* there is a plan, and one of its engines runs */
  char why[300]; /* why it is not usable */
  struct entry *next;
} entry;

struct gp_cudnn_cache {
  gp_cudnn_device device; /* NULL in it: there is no library, or no handle; `missing` says why */
  char missing[300];
  entry *entries;
};

/* ---- opening ------------------------------------------------------------------------------- */

/* Make the handle, which enqueues on the compute stream. The library may refuse the stream of a
 * part of a GPU; no other stream would keep to the part. */
static cudnnStatus_t make_handle(gp_gpu *gpu, gp_cudnn_cache *cache, const char **call) {
  *call = "cudnnCreate";
  cudnnStatus_t s = cache->device.library->cudnnCreate(&cache->device.handle);
  if (s != CUDNN_STATUS_SUCCESS) return cache->device.handle = NULL, s;
  *call = "cudnnSetStream";
  s = cache->device.library->cudnnSetStream(cache->device.handle, gp_gpu_stream(gpu));
  if (s == CUDNN_STATUS_SUCCESS) return s;
  cache->device.library->cudnnDestroy(cache->device.handle);
  cache->device.handle = NULL;
  return s;
}

/* Open the library and a handle. If that fails, cache->missing says why. Errors: the GPU is
 * lost. */
static gp_status open_handle(gp_gpu *gpu, gp_cudnn_cache *cache) {
  const char *why, *call;
  cache->device.library = gp_cudnn_library_get(&why);
  if (!cache->device.library) {
    snprintf(cache->missing, sizeof cache->missing, "no cuDNN: %s", why);
    return GP_OK;
  }
  const cudnnStatus_t s = make_handle(gpu, cache, &call);
  if (s == CUDNN_STATUS_SUCCESS) return GP_OK;
  snprintf(cache->missing, sizeof cache->missing, "%s%s: %s", call,
           gpu->green ? " for a part of a GPU" : "", cache->device.library->cudnnGetErrorString(s));
  return gp_gpu_refused(gpu, call);
}

/* Open the cache; gpu->cudnn->device.handle is NULL if cuDNN cannot be used. Errors: GP_ENOMEM; the
 * GPU is lost. */
static gp_status open_library(gp_gpu *gpu) {
  if (gpu->cudnn) return GP_OK;
  gpu->cudnn = calloc(1, sizeof *gpu->cudnn);
  if (!gpu->cudnn) return gp_gpu_fail(GP_ENOMEM, "cuDNN: no memory on the host");
  return open_handle(gpu, gpu->cudnn);
}

/* The version number 91900 means 9.19.0. */
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
    gp_cudnn_shared_give(e->shared);
    free(e);
  }
  if (cache->device.handle) cache->device.library->cudnnDestroy(cache->device.handle);
  free(cache);
  gpu->cudnn = NULL;
}

/* ---- plans --------------------------------------------------------------------------------- */

/* A linear search is enough: a model has a few kinds of attention. */
static entry *find(const gp_cudnn_cache *cache, const gp_cudnn_key *key) {
  for (entry *e = cache->entries; e; e = e->next)
    if (memcmp(&e->shared->key, key, sizeof *key) == 0) return e;
  return NULL;
}

static gp_status add(gp_gpu *gpu, const gp_cudnn_request *request) {
  entry *e = calloc(1, sizeof *e);
  if (!e) return gp_gpu_fail(GP_ENOMEM, "cuDNN: no memory on the host");
  gp_status status = gp_cudnn_shared_take(gpu, &gpu->cudnn->device, request, &e->shared);
  if (status != GP_OK) return free(e), status;
  if (*e->shared->judge) gp_gpu_note_path(gpu, "engine", "a convolution", e->shared->judge, NULL);
  gp_cudnn_shared_why(e->shared, e->why, sizeof e->why);
  e->usable = !*e->why;
  e->next = gpu->cudnn->entries;
  gpu->cudnn->entries = e;
  return GP_OK;
}

gp_status gp_cudnn_prepare(gp_gpu *gpu, const gp_cudnn_request *request, gp_cudnn_answer *answer) {
  *answer = (gp_cudnn_answer){0};
  GP_GPU_TRY(open_library(gpu));
  answer->why = gpu->cudnn->missing;
  if (!gpu->cudnn->device.handle) return GP_OK;
  if (!find(gpu->cudnn, &request->key)) GP_GPU_TRY(add(gpu, request));
  const entry *e = find(gpu->cudnn, &request->key);
  answer->why = e->usable ? NULL : e->why;
  answer->workspace = e->usable ? e->shared->workspace : 0;
  return GP_OK;
}

bool gp_cudnn_has(const gp_gpu *gpu, const gp_cudnn_key *key) {
  const entry *e = gpu->cudnn ? find(gpu->cudnn, key) : NULL;
  return e && e->usable;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Write why the library refused, before it is asked anything else. */
static void write_refusal(const gp_gpu *gpu, cudnnStatus_t status, char *why, size_t size) {
  const gp_cudnn_library *library = gpu->cudnn->device.library;
  char text[160] = "";
  library->cudnnGetLastErrorString(text, sizeof text);
  text[strcspn(text, "\n")] = 0;
  snprintf(why, size, "cuDNN refused to run it: %s%s%s%s", library->cudnnGetErrorString(status),
           *text ? " (" : "", text, *text ? ")" : "");
}

/* Run the plan once. The caller holds the lock of the plan's runs. *next: the plan has taken its
 * next engine after a refusal, as it may where nothing is captured. Errors: the GPU is lost. */
static gp_status try_once(gp_gpu *gpu, gp_cudnn_plan *plan, const gp_cudnn_work *work,
                          char why[300], bool *next) {
  *why = 0, *next = false;
  const cudnnStatus_t s = gp_cudnn_plan_run(plan, gpu->cudnn->device.handle, work->operands,
                                            work->count, work->workspace);
  if (s == CUDNN_STATUS_SUCCESS) return GP_OK;
  write_refusal(gpu, s, why, 300);
  GP_GPU_TRY(gp_gpu_refused(gpu, work->doing));
  *next = !gpu->capturing && gp_cudnn_plan_next(plan);
  return GP_OK;
}

/* Do not use this plan any more, here and on devices that are opened later; devices that use it now
 * find out themselves. */
static void give_up(entry *e, const char *why) {
  snprintf(e->why, sizeof e->why, "%s", why);
  e->usable = false;
  gp_cudnn_shared_refuse(e->shared, e->why);
}

/* Another device may have used up the engines meanwhile. */
static gp_status run_locked(gp_gpu *gpu, gp_cudnn_plan *plan, const gp_cudnn_work *work,
                            char why[300], bool *next) {
  if (plan->node) return try_once(gpu, plan, work, why, next);
  snprintf(why, 300, "cuDNN refused to run it on another device");
  *next = false;
  return GP_OK;
}

/* A capture that the library refuses to join says nothing about the plan: the work runs launched
 * from now on. */
static gp_status spoil_capture(gp_gpu *gpu, const gp_cudnn_work *work, const char *why) {
  gpu->spoiled = true;
  gp_gpu_note_path(gpu, "graph", work->doing, "launched, not captured", why);
  return gp_gpu_fail(GP_EUNSUPPORTED, "cuda:%d: %s cannot be captured", gpu->spec.ordinal,
                     work->doing);
}

gp_status gp_cudnn_run(gp_gpu *gpu, const gp_cudnn_key *key, const gp_cudnn_work *work,
                       gp_cudnn_outcome *outcome) {
  entry *e = find(gpu->cudnn, key);
  char why[300];
  bool next;
  *outcome = (gp_cudnn_outcome){0};
  pthread_mutex_lock(&e->shared->running);
  const gp_status status = run_locked(gpu, &e->shared->plan, work, why, &next);
  pthread_mutex_unlock(&e->shared->running);
  if (status != GP_OK || !*why) return status;
  if (gpu->capturing) return spoil_capture(gpu, work, why);
  outcome->again = next;
  if (next)
    gp_gpu_note_path(gpu, "engine", work->doing, "the next one that cuDNN offers", why);
  else
    give_up(e, why), outcome->why = e->why;
  return GP_OK;
}
