/* device/cuda/libraries.c - the versions of the libraries that GPUs need: the first lines of a
 * report. */
#include <stdio.h>

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/gemm/gemm.h"
#include "device/cuda/table.h"

/* "13.0" from 13000. */
static void write_version(gp_gpu_library *to, const char *name, cudaError_t error, int version) {
  snprintf(to->name, sizeof to->name, "%s", name);
  if (error == cudaSuccess && version > 0)
    snprintf(to->version, sizeof to->version, "%d.%d", version / 1000, version % 1000 / 10);
  else if (error == cudaSuccess)
    snprintf(to->why, sizeof to->why, "none is installed (no libcuda.so.1 that works)");
  else
    snprintf(to->why, sizeof to->why, "%s", cudaGetErrorString(error));
  (void)cudaGetLastError();
}

/* The newest CUDA version that the driver supports. */
static void ask_driver(gp_gpu_library *to) {
  int version = 0;
  const cudaError_t error = cudaDriverGetVersion(&version);
  write_version(to, "CUDA driver", error, version);
}

static void ask_runtime(gp_gpu_library *to) {
  int version = 0;
  const cudaError_t error = cudaRuntimeGetVersion(&version);
  write_version(to, "CUDA runtime", error, version);
}

bool gp_cuda_library(int i, gp_gpu_library *library) {
  static void (*const ask[])(gp_gpu_library *) = {ask_driver, ask_runtime, gp_gemm_describe,
                                                  gp_cudnn_describe, gp_cuda_describe_nccl};
  if (i < 0 || i >= (int)(sizeof ask / sizeof *ask)) return false;
  *library = (gp_gpu_library){.name = ""};
  ask[i](library);
  return true;
}
