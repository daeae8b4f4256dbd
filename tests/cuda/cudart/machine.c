/* tests/cuda/cudart/machine.c - the GPUs that the stand-in claims to have, of compute capability
 * 9.0. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart.h"

enum { MOST_GPUS = 16, SM_COUNT = 132, VERSION = CUDART_VERSION, OLD = 11040 };

static const size_t SHARED = 48 << 10, MOST_SHARED = 227 << 10;

static _Thread_local int current;

int gp_cudart_device(void) { return current; }

/* ---- which there are ------------------------------------------------------------------------- */

static bool is_driver(const char *kind) {
  const char *text = getenv("GPIPE_TEST_GPUS");
  return text && strcmp(text, kind) == 0;
}

/* Counts the GPUs; -1: there is no driver, or it is too old. */
static int count_gpus(void) {
  const char *text = getenv("GPIPE_TEST_GPUS");
  if (!text) return 2;
  if (is_driver("none") || is_driver("old")) return -1;
  const int count = atoi(text);
  return count < MOST_GPUS ? count : MOST_GPUS;
}

size_t gp_cudart_capacity(void) {
  const char *text = getenv("GPIPE_TEST_GPU_MEMORY");
  return text ? (size_t)strtoull(text, NULL, 10) : (size_t)8 << 30;
}

static bool exists(int device) { return device >= 0 && device < count_gpus(); }

cudaError_t cudaDriverGetVersion(int *version) {
  GP_CUDART_ENTER();
  *version = is_driver("old") ? OLD : is_driver("none") ? 0 : VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  GP_CUDART_ENTER();
  const int found = count_gpus();
  *count = found < 0 ? 0 : found;
  if (found < 0) return gp_cudart_set(cudaErrorInsufficientDriver);
  return gp_cudart_set(found == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  GP_CUDART_ENTER();
  if (!exists(device)) return gp_cudart_set(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  GP_CUDART_ENTER();
  if (!gp_cudart_is_capturing()) return gp_queue_finish_all(), cudaSuccess;
  gp_cudart_spoil();
  return gp_cudart_set(cudaErrorStreamCaptureUnsupported);
}

/* ---- what they are --------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *found, int device) {
  GP_CUDART_ENTER();
  if (!exists(device)) return gp_cudart_set(cudaErrorInvalidDevice);
  memset(found, 0, sizeof *found);
  snprintf(found->name, sizeof found->name, "host %d (test)", device);
  found->pciBusID = device;
  found->totalGlobalMem = gp_cudart_capacity();
  found->major = 9;
  found->multiProcessorCount = SM_COUNT;
  found->warpSize = 32;
  found->maxThreadsPerBlock = 1024;
  found->sharedMemPerBlock = SHARED;
  found->sharedMemPerBlockOptin = MOST_SHARED;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  GP_CUDART_ENTER();
  if (!exists(device)) return gp_cudart_set(cudaErrorInvalidDevice);
  switch ((int)attribute) {
  case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
  case cudaDevAttrMultiProcessorCount: *value = SM_COUNT; return cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)SHARED; return cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)MOST_SHARED; return cudaSuccess;
  case cudaDevAttrWarpSize: *value = 32; return cudaSuccess;
  case cudaDevAttrMaxThreadsPerBlock: *value = 1024; return cudaSuccess;
  default: return gp_cudart_set(cudaErrorInvalidValue);
  }
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
  (void)version, (void)flags;
  *function = gp_ipc_driver(symbol);
  if (!*function) *function = gp_cudart_driver(symbol);
  if (result)
    *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

/* ---- peers ----------------------------------------------------------------------------------- */

static atomic_bool enabled[MOST_GPUS][MOST_GPUS];

static bool can_reach(int device, int peer) {
  const char *no = getenv("GPIPE_TEST_NOPEER");
  return device != peer && !(no && strcmp(no, "1") == 0);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  GP_CUDART_ENTER();
  if (!exists(device) || !exists(peer)) return gp_cudart_set(cudaErrorInvalidDevice);
  *can = can_reach(device, peer);
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  GP_CUDART_ENTER();
  if (!exists(peer) || flags != 0) return gp_cudart_set(cudaErrorInvalidDevice);
  if (!can_reach(current, peer)) return gp_cudart_set(cudaErrorPeerAccessUnsupported);
  const bool was = atomic_exchange(&enabled[current][peer], true);
  return gp_cudart_set(was ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  GP_CUDART_ENTER();
  if (!exists(peer)) return gp_cudart_set(cudaErrorInvalidDevice);
  atomic_store(&enabled[current][peer], false);
  return cudaSuccess;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Kernels that were allowed more shared memory than the default, and how much. */
static struct {
  const void *kernel;
  size_t bytes;
} allowed[512];
static int allowed_count;
static pthread_mutex_t allowed_lock = PTHREAD_MUTEX_INITIALIZER;

static int find_allowed(const void *kernel) {
  int i = 0;
  while (i < allowed_count && allowed[i].kernel != kernel) i++;
  return i;
}

bool gp_cudart_allowed(const void *kernel, size_t shared) {
  if (shared <= SHARED) return true;
  pthread_mutex_lock(&allowed_lock);
  const int i = find_allowed(kernel);
  const bool fits = i < allowed_count && shared <= allowed[i].bytes;
  pthread_mutex_unlock(&allowed_lock);
  return fits;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
  GP_CUDART_ENTER();
  const bool known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
  if (!known || value < 0 || (size_t)value > MOST_SHARED)
    return gp_cudart_set(cudaErrorInvalidValue);
  pthread_mutex_lock(&allowed_lock);
  const int i = find_allowed(kernel);
  const bool room = i < (int)(sizeof allowed / sizeof *allowed);
  if (room) {
    allowed[i].kernel = kernel, allowed[i].bytes = (size_t)value;
    if (i == allowed_count) allowed_count++;
  }
  pthread_mutex_unlock(&allowed_lock);
  return gp_cudart_set(room ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* The size of a kernel's own arrays is not known here: the compiler places them. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
  GP_CUDART_ENTER();
  (void)kernel;
  memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
