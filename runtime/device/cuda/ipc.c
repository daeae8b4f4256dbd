/* device/cuda/ipc.c - memory of a GPU that another process of this host writes to.
 *
 * The owner tells the driver's handle of the allocation, and where in it the memory begins; the
 * other process opens it on its own GPU, which may be the same one. As between GPUs of one process
 * (peers.c) the driver's word is not enough: memory of another GPU is used only after a pattern has
 * come back from it. GPIPE_IPC=0 lets no process open anything.
 *
 * The driver gives the memory back when both processes are done with it or gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/table.h"

enum { TRIED = 1 << 16 /* bytes of the pattern, at most */, PATIENCE = 2000 /* milliseconds */ };

static bool is_turned_off(void) {
  const char *wish = getenv("GPIPE_IPC");
  return wish && strcmp(wish, "0") == 0;
}

/* ---- the owner ------------------------------------------------------------------------------- */

#if CUDART_VERSION < 12050

static gp_status find_base(gp_gpu *gpu, const void *memory, uintptr_t *base) {
  (void)gpu, (void)memory, (void)base;
  return gp_gpu_fail(GP_EUNSUPPORTED, "the plugin was built with CUDA 12.4 or older");
}

#else
#include <cudaTypedefs.h> /* types of the driver's functions */

/* Find where the allocation begins that the memory lies in. */
static gp_status find_base(gp_gpu *gpu, const void *memory, uintptr_t *base) {
  void *address = NULL;
  CUdeviceptr begin = 0;
  enum cudaDriverEntryPointQueryResult found;
  PFN_cuMemGetAddressRange_v3020 range;
  cudaError_t error = cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &address, 3020,
                                                       cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || !address) {
    (void)cudaGetLastError();
    return gp_gpu_fail(GP_EUNSUPPORTED, "the driver has no cuMemGetAddressRange");
  }
  memcpy(&range, &address, sizeof range);
  const CUresult result = range(&begin, NULL, (CUdeviceptr)(uintptr_t)memory);
  *base = (uintptr_t)begin;
  return gp_gpu_check(gpu, (cudaError_t)result, "looking for an allocation");
}
#endif

gp_status gp_cuda_ipc_offer(gp_gpu *gpu, const void *memory, gp_gpu_offer *offer) {
  uintptr_t base = 0;
  cudaIpcMemHandle_t handle;
  _Static_assert(sizeof handle <= sizeof offer->handle, "the driver's handle has grown");
  if (is_turned_off()) return gp_gpu_fail(GP_EUNSUPPORTED, "GPIPE_IPC=0");
  GP_GPU_TRY(gp_cuda_use(gpu));
  GP_GPU_TRY(find_base(gpu, memory, &base));
  GP_GPU_TRY(gp_gpu_check(gpu, cudaIpcGetMemHandle(&handle, (void *)base),
                          "sharing memory with another process"));
  *offer = (gp_gpu_offer){.offset = (uintptr_t)memory - base};
  memcpy(offer->handle, &handle, sizeof handle);
  memcpy(offer->gpu, gpu->info.id, sizeof offer->gpu);
  return GP_OK;
}

/* ---- a trial --------------------------------------------------------------------------------- */

typedef struct trial {
  cudaStream_t stream;
  unsigned char *sent, *got; /* pinned memory of the host */
  void *there;               /* memory of this GPU */
  size_t bytes;
} trial;

/* Write a pattern to the other process's memory and read it back. */
static cudaError_t write_and_read(trial *t, char *memory) {
  cudaError_t error = cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = cudaHostAlloc((void **)&t->sent, t->bytes, 0);
  if (error == cudaSuccess) error = cudaHostAlloc((void **)&t->got, t->bytes, 0);
  if (error == cudaSuccess) error = cudaMalloc(&t->there, t->bytes);
  if (error != cudaSuccess) return error;
  for (size_t i = 0; i < t->bytes; i++) {
    t->sent[i] = (unsigned char)(i * 31 + 7);
    t->got[i] = 0;
  }
  error = cudaMemcpyAsync(t->there, t->sent, t->bytes, cudaMemcpyDefault, t->stream);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(memory, t->there, t->bytes, cudaMemcpyDefault, t->stream);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(t->got, memory, t->bytes, cudaMemcpyDefault, t->stream);
  return error;
}

/* Wait with patience; cudaErrorTimeout after that. */
static cudaError_t wait_for(const trial *t) {
  const struct timespec pause = {0, 1000000};
  cudaError_t error = cudaStreamQuery(t->stream);
  for (int ms = 0; error == cudaErrorNotReady; ms++) {
    (void)cudaGetLastError();
    if (ms == PATIENCE) return cudaErrorTimeout;
    nanosleep(&pause, NULL);
    error = cudaStreamQuery(t->stream);
  }
  return error;
}

static void give_back(const trial *t) {
  if (t->stream) (void)cudaStreamDestroy(t->stream);
  if (t->there) (void)cudaFree(t->there);
  if (t->sent) (void)cudaFreeHost(t->sent);
  if (t->got) (void)cudaFreeHost(t->got);
}

/* Returns why the memory is not trusted; NULL: it is. Copies that never end keep what they use. */
static const char *distrust(const gp_gpu *gpu, char *memory, size_t bytes) {
  trial t = {.bytes = bytes < TRIED ? bytes : TRIED};
  cudaError_t error = write_and_read(&t, memory);
  if (error == cudaSuccess) error = wait_for(&t);
  if (error == cudaErrorTimeout) return "a copy between them did not end within two seconds";
  const bool same = error == cudaSuccess && memcmp(t.sent, t.got, t.bytes) == 0;
  if (error != cudaSuccess) (void)gp_gpu_check(gpu, error, "trying memory of another process");
  give_back(&t);
  if (error != cudaSuccess) return "a copy between them failed";
  return same ? NULL : "a copy between them arrived with other bytes";
}

/* ---- the other process ----------------------------------------------------------------------- */

/* Open the memory; returns why not, or NULL. */
static const char *open_offer(gp_gpu *gpu, const gp_gpu_offer *offer, const gp_gpu_window *window,
                              char **memory) {
  cudaIpcMemHandle_t handle;
  void *base = NULL;
  memcpy(&handle, offer->handle, sizeof handle);
  if (window->refused) return window->refused;
  if (is_turned_off()) return "GPIPE_IPC=0";
  if (gp_cuda_use(gpu) != GP_OK) return "the GPU is lost";
  cudaError_t error = cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess);
  if (gp_gpu_check(gpu, error, "opening memory of another process") != GP_OK)
    return cudaGetErrorString(error);
  *memory = (char *)base + offer->offset;
  if (strncmp(offer->gpu, gpu->info.id, sizeof offer->gpu) == 0) return NULL;
  const char *why = distrust(gpu, *memory + window->at, window->bytes);
  if (why) (void)cudaIpcCloseMemHandle(base);
  return why;
}

gp_status gp_cuda_ipc_open(gp_gpu *gpu, const gp_gpu_offer *offer, const gp_gpu_window *window,
                           void **memory) {
  char *opened = NULL;
  const char *why = open_offer(gpu, offer, window, &opened);
  gp_gpu_note_path(gpu, "link", window->name, why ? "by way of the host" : "CUDA IPC", why);
  if (why) return gp_gpu_fail(GP_EUNSUPPORTED, "%s: %s", window->name, why);
  *memory = opened;
  return GP_OK;
}

void gp_cuda_ipc_close(gp_gpu *gpu, const gp_gpu_offer *offer, void *memory) {
  (void)gp_cuda_switch(gpu->spec.ordinal);
  (void)gp_gpu_check(gpu, cudaIpcCloseMemHandle((char *)memory - offer->offset),
                     "closing memory of another process");
}
