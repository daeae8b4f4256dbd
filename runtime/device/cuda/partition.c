/* device/cuda/partition.c - several logical devices on one GPU, each with its own multiprocessors.
 *
 * This uses the driver's green contexts: the multiprocessors of a GPU are split into groups, and a
 * stream made in the context of a group runs only there. Memory, events and the primary context
 * stay common, so memory and events are valid in every part. The functions come from the driver at
 * run time: nothing here links libcuda. If driver, GPU or toolkit cannot do it, or a part's streams
 * do not take events and captures (probe.c), parts are plain streams that share all
 * multiprocessors; info.isolated says so, and a note of paths.c why.
 *
 * Parts 0..n-1 of n come from one split, which is kept while any of them is open, because two
 * splits by the driver may not give disjoint groups. Parts of different n overlap. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/table.h"

/* ---- plain streams --------------------------------------------------------------------------- */

void gp_cuda_streams_close(gp_gpu *gpu) {
  for (int i = 0; i < GP_STREAMS; i++) {
    if (gpu->streams[i]) (void)cudaStreamDestroy(gpu->streams[i]);
    gpu->streams[i] = NULL;
  }
}

gp_status gp_cuda_streams_open(gp_gpu *gpu) {
  for (int i = 0; i < GP_STREAMS; i++) {
    cudaError_t error = cudaStreamCreateWithFlags(&gpu->streams[i], cudaStreamNonBlocking);
    if (error == cudaSuccess) continue;
    gpu->streams[i] = NULL;
    gp_cuda_streams_close(gpu);
    return gp_gpu_check(gpu, error, "making a stream");
  }
  return GP_OK;
}

/* Open a part without multiprocessors of its own, and note why. */
static gp_status open_shared(gp_gpu *gpu, const char *why) {
  char name[GP_CUDA_NAME];
  gp_gpu_note_path(gpu, "part", gp_cuda_name(&gpu->spec, name),
                   "shares all multiprocessors with other parts", why);
  return gp_cuda_streams_open(gpu);
}

#if CUDART_VERSION < 12050 /* streams of green contexts came with CUDA 12.5 */

gp_status gp_cuda_part_open(gp_gpu *gpu) {
  return open_shared(gpu, "the plugin was built with CUDA 12.4 or older");
}

void gp_cuda_part_close(gp_gpu *gpu) { (void)gpu; }

#else
#include <cudaTypedefs.h> /* types of the driver's functions */

/* ---- the driver ------------------------------------------------------------------------------ */

typedef struct driver {
  PFN_cuDeviceGet_v2000 device;
  PFN_cuDeviceGetDevResource_v12040 resource;
  PFN_cuDevSmResourceSplitByCount_v12040 split;
  PFN_cuDevResourceGenerateDesc_v12040 describe;
  PFN_cuGreenCtxCreate_v12040 create;
  PFN_cuGreenCtxDestroy_v12040 destroy;
  PFN_cuGreenCtxStreamCreate_v12050 stream;
} driver;

/* Get the address of a driver function from the runtime, into *function; false if this driver has
 * none. */
static bool find(const char *name, unsigned version, void *function) {
  void *address = NULL;
  enum cudaDriverEntryPointQueryResult found;
  cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found);
  (void)cudaGetLastError();
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || !address) return false;
  memcpy(function, &address, sizeof address);
  return true;
}

static bool find_driver(driver *d) {
  return find("cuDeviceGet", 2000, &d->device) &&
         find("cuDeviceGetDevResource", 12040, &d->resource) &&
         find("cuDevSmResourceSplitByCount", 12040, &d->split) &&
         find("cuDevResourceGenerateDesc", 12040, &d->describe) &&
         find("cuGreenCtxCreate", 12040, &d->create) &&
         find("cuGreenCtxDestroy", 12040, &d->destroy) &&
         find("cuGreenCtxStreamCreate", 12050, &d->stream);
}

/* The runtime's errors have the same numbers as the driver's. */
static cudaError_t as_runtime(CUresult result) { return (cudaError_t)result; }

/* Does the answer mean "not on this GPU", so that parts share it? */
static bool is_refusal(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_RESOURCE_TYPE ||
         result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

/* ---- splits ---------------------------------------------------------------------------------- */

typedef struct split {
  struct split *next;
  int ordinal, parts;
  int users;    /* how many of its parts are open */
  unsigned sms; /* of each part; 0: all parts share them */
  driver driver;
  CUdevResource groups[]; /* [parts] */
} split;

static split *splits; /* of the process, guarded by the lock */
static pthread_mutex_t splits_lock = PTHREAD_MUTEX_INITIALIZER;

/* Get *step and *least: sizes of groups are multiples of *step, and at least *least. Newer drivers
 * report both; for older ones the numbers are NVIDIA's.
 * Source: CUDA driver API, green contexts. */
static void get_grain(const gp_gpu *gpu, const CUdevResource *all, unsigned *least,
                      unsigned *step) {
  *least = gpu->info.major >= 9 ? 8 : 4;
  *step = gpu->info.major >= 9 ? 8 : 2;
#if CUDART_VERSION >= 13000
  if (all->sm.minSmPartitionSize) *least = all->sm.minSmPartitionSize;
  if (all->sm.smCoscheduledAlignment) *step = all->sm.smCoscheduledAlignment;
#else
  (void)all;
#endif
}

/* Make `parts` groups, as large as possible. The driver may make fewer groups of a size than
 * division suggests, because groups follow the GPU's own clusters. */
static CUresult split_groups(split *s, const gp_gpu *gpu) {
  CUdevice device;
  CUdevResource all = {0};
  CUresult result = s->driver.device(&device, s->ordinal);
  if (result == CUDA_SUCCESS) result = s->driver.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (result != CUDA_SUCCESS) return result;
  unsigned least, step, parts = (unsigned)s->parts;
  get_grain(gpu, &all, &least, &step);
  for (unsigned size = all.sm.smCount / parts / step * step; size >= least; size -= step) {
    unsigned count = parts;
    result = s->driver.split(s->groups, &count, &all, NULL, 0, size);
    if (result == CUDA_SUCCESS && count == parts) {
      s->sms = s->groups[0].sm.smCount;
      return CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS && !is_refusal(result)) return result;
  }
  return CUDA_ERROR_NOT_SUPPORTED; /* more parts than groups */
}

static gp_status make_split(const gp_gpu *gpu, split **out) {
  size_t parts = (size_t)gpu->spec.parts;
  split *s = calloc(1, sizeof *s + parts * sizeof *s->groups);
  if (!s) return gp_gpu_fail(GP_ENOMEM, "cuda: no memory for %zu parts of a GPU", parts);
  s->ordinal = gpu->spec.ordinal;
  s->parts = gpu->spec.parts;
  CUresult result = find_driver(&s->driver) ? split_groups(s, gpu) : CUDA_ERROR_NOT_SUPPORTED;
  if (result != CUDA_SUCCESS && !is_refusal(result)) {
    free(s);
    return gp_gpu_check(gpu, as_runtime(result), "splitting its multiprocessors");
  }
  *out = s;
  return GP_OK;
}

static split **find_split(const gp_gpu_spec *spec) {
  split **at = &splits;
  while (*at && ((*at)->ordinal != spec->ordinal || (*at)->parts != spec->parts)) at = &(*at)->next;
  return at;
}

/* Get the split that the part belongs to, with one more user. */
static gp_status take_split(const gp_gpu *gpu, split **out) {
  gp_status status = GP_OK;
  pthread_mutex_lock(&splits_lock);
  split **at = find_split(&gpu->spec);
  if (!*at) status = make_split(gpu, at);
  if (status == GP_OK) (*at)->users++, *out = *at;
  pthread_mutex_unlock(&splits_lock);
  return status;
}

static void give_split(const gp_gpu *gpu) {
  pthread_mutex_lock(&splits_lock);
  split **at = find_split(&gpu->spec), *s = *at;
  if (s && --s->users == 0) {
    *at = s->next;
    free(s);
  }
  pthread_mutex_unlock(&splits_lock);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static CUresult open_streams(gp_gpu *gpu, const split *s) {
  for (int i = 0; i < GP_STREAMS; i++) {
    CUstream stream = NULL;
    CUresult result = s->driver.stream(&stream, gpu->green, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS) {
      gp_cuda_streams_close(gpu);
      return result;
    }
    gpu->streams[i] = stream;
  }
  return CUDA_SUCCESS;
}

static CUresult open_green(gp_gpu *gpu, split *s) {
  CUdevice device;
  CUdevResourceDesc desc;
  CUgreenCtx green;
  CUresult result = s->driver.device(&device, s->ordinal);
  if (result == CUDA_SUCCESS) result = s->driver.describe(&desc, &s->groups[gpu->spec.part], 1);
  if (result == CUDA_SUCCESS)
    result = s->driver.create(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM);
  if (result != CUDA_SUCCESS) return result;
  gpu->green = green;
  result = open_streams(gpu, s);
  if (result != CUDA_SUCCESS) {
    (void)s->driver.destroy(green);
    gpu->green = NULL;
    return result;
  }
  return CUDA_SUCCESS;
}

/* Give the part back: first its streams, then its context. */
static void close_green(gp_gpu *gpu, const split *s) {
  gp_cuda_streams_close(gpu);
  (void)s->driver.destroy(gpu->green);
  gpu->green = NULL;
}

/* Keep the part if all works that a step needs; else its multiprocessors are shared. */
static gp_status try_green(gp_gpu *gpu, const split *s) {
  char why[GP_CUDA_PROBE];
  if (gp_cuda_probe(gpu, why)) {
    gpu->info.isolated = true;
    gpu->info.sm_count = (int)s->sms;
    return GP_OK;
  }
  close_green(gpu, s);
  GP_GPU_TRY(gp_cuda_alive(gpu->spec.ordinal));
  return open_shared(gpu, why);
}

gp_status gp_cuda_part_open(gp_gpu *gpu) {
  split *s;
  gp_status status;
  GP_GPU_TRY(take_split(gpu, &s));
  const CUresult result = s->sms ? open_green(gpu, s) : CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS)
    status = try_green(gpu, s);
  else if (is_refusal(result))
    status = open_shared(gpu, "the driver does not split this GPU into so many parts");
  else
    status = gp_gpu_check(gpu, as_runtime(result), "opening a part of it");
  if (status != GP_OK) give_split(gpu);
  return status;
}

void gp_cuda_part_close(gp_gpu *gpu) {
  if (gpu->spec.parts <= 1) return;
  PFN_cuGreenCtxDestroy_v12040 destroy;
  if (gpu->green && find("cuGreenCtxDestroy", 12040, &destroy)) (void)destroy(gpu->green);
  gpu->green = NULL;
  give_split(gpu);
}

#endif
