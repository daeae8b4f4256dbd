/* device/cuda/cudnn/shared.c - see shared.h. */
#include "device/cuda/cudnn/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cudnn/tune.h"
#include "device/cuda/table.h"

/* How many plans without users are kept for the next pipeline: ResNet-50 has 68 kinds of
 * convolution. */
enum { KEPT = 192 };

static struct {
  pthread_mutex_t lock; /* guards what follows, and the making of plans */
  gp_cudnn_shared *first;
  uint64_t clock;
  cudnnHandle_t makers[GP_CUDA_MOST]; /* per GPU; never destroyed */
} plans = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- making --------------------------------------------------------------------------------- */

/* Write why there is no plan. The library's own text ends with line breaks and its source's path,
 * so only its first line is used. */
static void write_refusal(gp_cudnn_shared *s, const gp_cudnn_library *library) {
  char text[200] = "";
  library->cudnnGetLastErrorString(text, sizeof text);
  text[strcspn(text, "\n")] = 0;
  snprintf(s->why, sizeof s->why, "cuDNN has no deterministic plan: %s%s%s%s",
           library->cudnnGetErrorString(s->plan.graph.status), *text ? " (" : "", text,
           *text ? ")" : "");
}

/* The handle that makes the plans of a GPU; NULL if there is none, and s->why says why. */
static cudnnHandle_t maker_of(gp_cudnn_shared *s, const gp_cudnn_library *library) {
  cudnnHandle_t *maker = &plans.makers[s->ordinal];
  if (*maker) return *maker;
  const cudnnStatus_t made = library->cudnnCreate(maker);
  if (made == CUDNN_STATUS_SUCCESS) return *maker;
  snprintf(s->why, sizeof s->why, "cudnnCreate: %s", library->cudnnGetErrorString(made));
  return *maker = NULL;
}

/* Make the plan; a graph for which there is none is released. Errors: the GPU is lost. */
static gp_status make_plan(gp_gpu *gpu, gp_cudnn_shared *s, const gp_cudnn_device *device,
                           const gp_cudnn_request *request) {
  const gp_cudnn_target target = {.handle = maker_of(s, device->library), .sm_count = s->sm_count};
  gp_status status = GP_OK;
  if (!target.handle) return GP_OK;
  s->plan.graph.library = device->library;
  s->plan.limits = request->limits;
  request->describe(&s->plan.graph, request->what);
  if (gp_cudnn_plan_build(&s->plan, &target) && gp_cudnn_tunes(request))
    status = gp_cudnn_tune(gpu, device->handle, request, &s->plan, s->judge);
  s->workspace = s->plan.workspace;
  if (s->plan.node) return status;
  write_refusal(s, device->library);
  gp_cudnn_plan_close(&s->plan);
  return status;
}

static void free_shared(gp_cudnn_shared *s) {
  gp_cudnn_plan_close(&s->plan);
  pthread_mutex_destroy(&s->running);
  free(s);
}

/* The caller holds the lock. Drop the plan that was unused for longest, if too many are unused. */
static void drop_oldest(void) {
  gp_cudnn_shared **oldest = NULL;
  int idle = 0;
  for (gp_cudnn_shared **at = &plans.first; *at; at = &(*at)->next) {
    if ((*at)->users > 0) continue;
    idle++;
    if (!oldest || (*at)->used < (*oldest)->used) oldest = at;
  }
  if (idle <= KEPT) return;
  gp_cudnn_shared *gone = *oldest;
  *oldest = gone->next;
  free_shared(gone);
}

/* ---- finding -------------------------------------------------------------------------------- */

static gp_cudnn_shared *find(int ordinal, int32_t sm_count, const gp_cudnn_key *key) {
  for (gp_cudnn_shared *s = plans.first; s; s = s->next)
    if (s->ordinal == ordinal && s->sm_count == sm_count && memcmp(&s->key, key, sizeof *key) == 0)
      return s;
  return NULL;
}

/* The caller holds the lock. Do not keep a refusal if its cause is that the GPU was lost. */
static gp_status add(gp_gpu *gpu, const gp_cudnn_device *device, const gp_cudnn_request *request,
                     int32_t sm_count, gp_cudnn_shared **added) {
  gp_cudnn_shared *s = calloc(1, sizeof *s);
  if (!s) return gp_gpu_fail(GP_ENOMEM, "cuDNN: no memory on the host");
  s->key = request->key, s->ordinal = gpu->spec.ordinal, s->sm_count = sm_count;
  pthread_mutex_init(&s->running, NULL);
  gp_status status = make_plan(gpu, s, device, request);
  if (status == GP_OK && *s->why) status = gp_gpu_refused(gpu, "planning a graph of cuDNN");
  if (status != GP_OK) return free_shared(s), status;
  s->next = plans.first;
  plans.first = *added = s;
  return GP_OK;
}

gp_status gp_cudnn_shared_take(gp_gpu *gpu, const gp_cudnn_device *device,
                               const gp_cudnn_request *request, gp_cudnn_shared **taken) {
  const int32_t sm_count = gpu->spec.parts > 1 ? gpu->info.sm_count : 0;
  gp_status status = GP_OK;
  pthread_mutex_lock(&plans.lock);
  gp_cudnn_shared *s = find(gpu->spec.ordinal, sm_count, &request->key);
  if (!s) status = add(gpu, device, request, sm_count, &s);
  if (status == GP_OK) s->users++, s->used = ++plans.clock, *taken = s;
  pthread_mutex_unlock(&plans.lock);
  return status;
}

void gp_cudnn_shared_give(gp_cudnn_shared *shared) {
  pthread_mutex_lock(&plans.lock);
  shared->users--;
  drop_oldest();
  pthread_mutex_unlock(&plans.lock);
}

void gp_cudnn_shared_refuse(gp_cudnn_shared *shared, const char *why) {
  pthread_mutex_lock(&plans.lock);
  if (!*shared->why) snprintf(shared->why, sizeof shared->why, "%s", why);
  pthread_mutex_unlock(&plans.lock);
}

void gp_cudnn_shared_why(gp_cudnn_shared *shared, char *why, size_t size) {
  pthread_mutex_lock(&plans.lock);
  snprintf(why, size, "%s", shared->why);
  pthread_mutex_unlock(&plans.lock);
}
