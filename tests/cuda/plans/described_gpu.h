/* tests/cuda/plans/described_gpu.h - descriptions of GPUs, for which cuDNN makes plans on a machine
 * without one. */
#ifndef GP_TESTS_DESCRIBED_GPU_H
#define GP_TESTS_DESCRIBED_GPU_H

#include <stdio.h>

#include "device/cuda/cudnn/library.h"
#include "test.h"

/* What cuDNN asks of a GPU; the values on which plans depend are filled in. */
static const char description[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"cudaDeviceId\":0,"
    "\"deviceVer\":%d,\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"driverVer\":13000,"
    "\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxSharedMemoryPerSM\":%d,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,"
    "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":"
    "3201000,"
    "\"l2CacheSize\":62914560,\"totalGlobalMem\":85899345920,\"deviceName\":\"%s\"}";

typedef struct gpu_kind {
  const char *name;
  int version, sms, shared; /* compute capability, multiprocessors, bytes of shared memory of one */
} gpu_kind;

static const gpu_kind ampere = {"NVIDIA A100", 800, 108, 167936};
static const gpu_kind hopper = {"NVIDIA H200", 900, 132, 233472};

/* Makes the properties descriptor, which the caller destroys. */
static inline cudnnBackendDescriptor_t properties_of(const gp_cudnn_library *library,
                                                     const gpu_kind *kind) {
  char text[2048];
  cudnnBackendDescriptor_t node = NULL;
  int length = snprintf(text, sizeof text, description, kind->version, kind->sms,
                        kind->shared - 1024, kind->shared, kind->name);
  CHECK(!library->cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &node));
  CHECK(!library->cudnnBackendSetAttribute(node, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                           CUDNN_TYPE_CHAR, length, text));
  CHECK(!library->cudnnBackendFinalize(node));
  return node;
}

#endif
