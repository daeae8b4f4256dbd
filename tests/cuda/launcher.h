/* tests/cuda/launcher.h - a device, memory, and the functions of the plugin that launchers need,
 * for tests that launch kernels directly on the host. */
#ifndef GP_TESTS_LAUNCHER_H
#define GP_TESTS_LAUNCHER_H

#include "device/cuda/kernel/device.cuh"

/* ---- in place of the plugin ------------------------------------------------------------------ */

gp_status gp_gpu_launched(gp_gpu *, const char *) {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? GP_OK : error == cudaErrorMemoryAllocation ? GP_ENOMEM : GP_EDEVICE;
}

gp_status gp_gpu_allow_shared(gp_gpu *, const void *kernel, size_t bytes) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  return GP_OK;
}

struct device {
  gp_gpu gpu{};

  device() { cudaStreamCreateWithFlags(&gpu.streams[GP_STREAM_COMPUTE], 0); }
  ~device() { cudaStreamDestroy(gpu.streams[GP_STREAM_COMPUTE]); }
};

template <typename T> struct array {
  T *data = NULL;
  size_t n;

  explicit array(size_t count) : n(count) { cudaMalloc((void **)&data, count * sizeof(T)); }
  ~array() { cudaFree(data); }
  T &operator[](size_t i) { return data[i]; }
};

#endif
