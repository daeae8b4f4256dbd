/* device/cuda/machine.c - which GPUs there are, or why there is none.
 *
 * Without a driver, with an old one or inside a container, the runtime answers with a number. This
 * file turns it into a sentence that says what it means and what to do about it, which
 * --list-devices prints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/table.h"

/* ---- why there is none ----------------------------------------------------------------------- */

static const struct {
  cudaError_t error;
  const char *meaning;
} meanings[] = {
    {cudaErrorInitializationError,
     "the NVIDIA driver could not be initialised (after a fork, without /dev/nvidia* in a "
     "container, or with its kernel module not loaded)"},
    {cudaErrorStubLibrary,
     "the libcuda.so.1 that was found is the toolkit's stub, not the driver's"},
    {cudaErrorDevicesUnavailable, "every GPU is busy or reserved for another process"},
    {cudaErrorInvalidDevice, "the driver knows no GPU of that number"},
    {cudaErrorSystemNotReady,
     "the system is not ready: is NVIDIA's fabric manager running? (NVSwitch needs it)"},
    {cudaErrorSystemDriverMismatch, "the driver's library and its kernel module are of different "
                                    "versions (a reboot after an update helps)"},
    {cudaErrorCompatNotSupportedOnDevice,
     "a forward-compatibility libcuda.so.1 was found, which this kind of GPU does not support"},
    {cudaErrorMpsConnectionFailed, "the MPS server cannot be reached"},
    {cudaErrorOperatingSystem, "the operating system refused the driver (see dmesg)"},
};

/* 13 from 13000. */
static int major_of(int version) { return version / 1000; }

/* The runtime reports "insufficient" both if there is no driver and if it is too old. */
static gp_status fail_driver(void) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return gp_gpu_fail(GP_EDEVICE, "no NVIDIA driver on this machine (no libcuda.so.1 that works)");
  return gp_gpu_fail(
      GP_EDEVICE, "the NVIDIA driver is too old: it knows CUDA %d.%d, this build wants %d.%d",
      major_of(driver), driver % 1000 / 10, major_of(CUDART_VERSION), CUDART_VERSION % 1000 / 10);
}

static gp_status fail_invisible(void) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (!visible)
    return gp_gpu_fail(GP_EDEVICE, "there is an NVIDIA driver, but no GPU that it can see");
  return gp_gpu_fail(GP_EDEVICE, "no GPU is visible: CUDA_VISIBLE_DEVICES is \"%.60s\"", visible);
}

static gp_status fail_missing(cudaError_t error) {
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) return fail_driver();
  if (error == cudaErrorNoDevice) return fail_invisible();
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
    if (meanings[i].error == error)
      return gp_gpu_fail(GP_EDEVICE, "%s (%s)", meanings[i].meaning, cudaGetErrorName(error));
  return gp_cuda_check_spec(NULL, error, "looking for GPUs");
}

/* ---- what there is --------------------------------------------------------------------------- */

gp_status gp_cuda_count(int *count) {
  int found = 0;
  cudaError_t error = cudaGetDeviceCount(&found);
  if (error == cudaSuccess && found < 1) error = cudaErrorNoDevice;
  if (error != cudaSuccess) return fail_missing(error);
  *count = found < GP_CUDA_MOST ? found : GP_CUDA_MOST;
  return GP_OK;
}

static gp_status check_ordinal(int ordinal) {
  int count;
  GP_GPU_TRY(gp_cuda_count(&count));
  if (ordinal >= 0 && ordinal < count) return GP_OK;
  if (count == 1)
    return gp_gpu_fail(GP_EDEVICE, "cuda:%d: no such GPU, expected cuda:0 (the only one)", ordinal);
  return gp_gpu_fail(GP_EDEVICE, "cuda:%d: no such GPU, expected cuda:0 to cuda:%d", ordinal,
                     count - 1);
}

/* Two processes may give the same GPU different numbers. */
static void write_id(const struct cudaDeviceProp *found, char id[64]) {
  int used = 0;
  for (size_t i = 0; i < sizeof found->uuid.bytes; i++)
    used += snprintf(id + used, 64 - (size_t)used, "%02x", (unsigned char)found->uuid.bytes[i]);
  snprintf(id + used, 64 - (size_t)used, " %x:%x:%x", (unsigned)found->pciDomainID,
           (unsigned)found->pciBusID, (unsigned)found->pciDeviceID);
}

gp_status gp_cuda_describe(int ordinal, gp_gpu_info *info) {
  GP_GPU_TRY(check_ordinal(ordinal));
  struct cudaDeviceProp found;
  gp_gpu_spec spec = {.ordinal = ordinal, .parts = 1};
  GP_GPU_TRY(gp_cuda_check_spec(&spec, cudaGetDeviceProperties(&found, ordinal),
                                "asking for its properties"));
  *info = (gp_gpu_info){.major = found.major,
                        .minor = found.minor,
                        .sm_count = found.multiProcessorCount,
                        .memory = found.totalGlobalMem};
  snprintf(info->name, sizeof info->name, "%.95s", found.name);
  write_id(&found, info->id);
  return GP_OK;
}
