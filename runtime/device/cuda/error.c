/* device/cuda/error.c - CUDA's errors as statuses with a text.
 *
 * Most errors concern one call. After some (a kernel that touched foreign memory, a GPU that fell
 * off the bus) every further call of the process on that GPU fails. Such an error is kept per GPU,
 * and gp_cuda_alive returns its text again, so that users read what happened first and not its
 * consequences. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "device/cuda/kernel/kernel.h"
#include "device/cuda/table.h"

enum { TEXT = 512 };

/* The text goes to the core, which keeps one per thread. */
gp_status gp_gpu_fail(gp_status status, const char *format, ...) {
  char text[TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return gp_host.fail(status, text);
}

const char *gp_cuda_name(const gp_gpu_spec *spec, char text[GP_CUDA_NAME]) {
  if (!spec)
    snprintf(text, GP_CUDA_NAME, "cuda");
  else if (spec->parts > 1)
    snprintf(text, GP_CUDA_NAME, "cuda:%d/%dof%d", spec->ordinal, spec->part, spec->parts);
  else
    snprintf(text, GP_CUDA_NAME, "cuda:%d", spec->ordinal);
  return text;
}

/* ---- GPUs that are lost ---------------------------------------------------------------------- */

/* A GPU's context belongs to the process, and so does its loss. A text is written once, before
 * `set`. */
static struct {
  atomic_bool set;
  char text[TEXT];
} lost[GP_CUDA_MOST];

static pthread_mutex_t lost_lock = PTHREAD_MUTEX_INITIALIZER;

/* Older toolkits have no names for these errors, which newer drivers report. */
enum { CONTAINED = 226, TENSOR_MEMORY_LEAK = 721 };

bool gp_cuda_is_sticky(cudaError_t error) {
  switch ((int)error) {
  case CONTAINED:
  case TENSOR_MEMORY_LEAK:
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchTimeout:
  case cudaErrorContextIsDestroyed:
  case cudaErrorAssert:
  case cudaErrorHardwareStackError:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorLaunchFailure:
  case cudaErrorMpsRpcFailure:
  case cudaErrorMpsClientTerminated:
  case cudaErrorExternalDevice: return true;
  default: return false;
  }
}

/* An unknown error may concern one call, or everything from now on: the next call tells. */
static bool is_lost(cudaError_t error) {
  size_t vacant, total;
  if (error != cudaErrorUnknown) return gp_cuda_is_sticky(error);
  const bool again = cudaMemGetInfo(&vacant, &total) == cudaErrorUnknown;
  (void)cudaGetLastError();
  return again;
}

/* The context is gone: keep the first text, and report it from now on. */
static gp_status lose(int ordinal, const char *what) {
  pthread_mutex_lock(&lost_lock);
  if (!atomic_load(&lost[ordinal].set)) {
    snprintf(lost[ordinal].text, TEXT,
             "%s; nothing more can run on this GPU: the process must be started anew", what);
    atomic_store(&lost[ordinal].set, true);
  }
  pthread_mutex_unlock(&lost_lock);
  return gp_cuda_alive(ordinal);
}

gp_status gp_cuda_alive(int ordinal) {
  if (ordinal < 0 || ordinal >= GP_CUDA_MOST || !atomic_load(&lost[ordinal].set)) return GP_OK;
  return gp_host.fail(GP_EDEVICE, lost[ordinal].text);
}

/* ---- errors of calls ------------------------------------------------------------------------- */

gp_status gp_cuda_check_spec(const gp_gpu_spec *spec, cudaError_t error, const char *doing) {
  if (error == cudaSuccess) return GP_OK;
  (void)cudaGetLastError(); /* else the next launch would report it again */
  char name[GP_CUDA_NAME], what[TEXT - 80];
  snprintf(what, sizeof what, "%s: %s: %s (%s)", gp_cuda_name(spec, name), doing,
           cudaGetErrorString(error), cudaGetErrorName(error));
  int ordinal = spec ? spec->ordinal : gp_cuda_current();
  if (is_lost(error) && ordinal >= 0 && ordinal < GP_CUDA_MOST) return lose(ordinal, what);
  return gp_host.fail(error == cudaErrorMemoryAllocation ? GP_ENOMEM : GP_EDEVICE, what);
}

gp_status gp_gpu_check(const gp_gpu *gpu, cudaError_t error, const char *doing) {
  return gp_cuda_check_spec(gpu ? &gpu->spec : NULL, error, doing);
}

gp_status gp_gpu_refused(const gp_gpu *gpu, const char *doing) {
  (void)gp_gpu_check(gpu, cudaPeekAtLastError(), doing);
  return gp_cuda_alive(gpu->spec.ordinal);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Check a launch. A bad launch fails at once; a kernel's own fault shows at a later call. */
gp_status gp_gpu_launched(const gp_gpu *gpu, const char *kernel) {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return GP_OK;
  char doing[160];
  if (error == cudaErrorNoKernelImageForDevice)
    snprintf(doing, sizeof doing, "kernel %.80s (built for others than compute capability %d.%d)",
             kernel, gpu->info.major, gpu->info.minor);
  else
    snprintf(doing, sizeof doing, "kernel %.80s", kernel);
  return gp_gpu_check(gpu, error, doing);
}

/* The most shared memory that a kernel may request on this GPU: the limit of a block minus the
 * kernel's own arrays. Every caller gets the same number, so threads cannot lower each other's. */
static gp_status most_shared(gp_gpu *gpu, const void *kernel, size_t *bytes) {
  int most;
  GP_GPU_TRY(gp_gpu_check(
      gpu,
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu->spec.ordinal),
      "asking for the size of shared memory"));
  struct cudaFuncAttributes attributes;
  GP_GPU_TRY(
      gp_gpu_check(gpu, cudaFuncGetAttributes(&attributes, kernel), "asking what a kernel needs"));
  size_t own = attributes.sharedSizeBytes;
  *bytes = (size_t)most > own ? (size_t)most - own : 0;
  return GP_OK;
}

gp_status gp_gpu_allow_shared(gp_gpu *gpu, const void *kernel, size_t bytes) {
  enum { ALWAYS = 48 << 10, KNOWN = 64 };
  static _Thread_local struct {
    const void *kernel;
    int ordinal;
    size_t bytes;
  } known[KNOWN]; /* what was allowed already, because asking takes microseconds */
  if (bytes <= ALWAYS) return GP_OK;
  size_t slot = ((uintptr_t)kernel >> 4) % KNOWN;
  if (known[slot].kernel == kernel && known[slot].ordinal == gpu->spec.ordinal &&
      bytes <= known[slot].bytes)
    return GP_OK;
  size_t most;
  GP_GPU_TRY(most_shared(gpu, kernel, &most));
  if (bytes > most) {
    char name[GP_CUDA_NAME];
    return gp_gpu_fail(GP_EDEVICE,
                       "%s: a kernel wants %zu bytes of shared memory, a block can have %zu",
                       gp_cuda_name(&gpu->spec, name), bytes, most);
  }
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  GP_GPU_TRY(gp_gpu_check(gpu, error, "allowing a kernel more shared memory"));
  known[slot].kernel = kernel;
  known[slot].ordinal = gpu->spec.ordinal;
  known[slot].bytes = most;
  return GP_OK;
}
