/* device/cuda/gpu.c - open and close a logical device, and make it a thread's current one.
 *
 * The CUDA runtime keeps the current GPU per thread. Every function of the table sets it, so that
 * callers need not care; a thread remembers what it set last, because setting it can cost more than
 * a launch. */
#include <stdatomic.h>
#include <stdlib.h>

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/gemm/gemm.h"
#include "device/cuda/table.h"

#ifndef GP_CUDA_OLDEST
#define GP_CUDA_OLDEST 0 /* compute capability of the oldest kernels, 80 for 8.0; 0: unknown */
#endif

/* ---- the current GPU ------------------------------------------------------------------------- */

static _Thread_local int current = -1; /* of this thread; -1: not set yet */
static atomic_int opened;              /* the GPU that this process opened last */

int gp_cuda_current(void) { return current >= 0 ? current : atomic_load(&opened); }

gp_status gp_cuda_switch(int ordinal) {
  if (current == ordinal) return GP_OK;
  cudaError_t error = cudaSetDevice(ordinal);
  if (error != cudaSuccess) {
    int count;
    GP_GPU_TRY(gp_cuda_count(&count)); /* its text is better if there is no GPU at all */
    gp_gpu_spec spec = {.ordinal = ordinal, .parts = 1};
    return gp_cuda_check_spec(&spec, error, "making it current");
  }
  current = ordinal;
  return GP_OK;
}

gp_status gp_cuda_use(const gp_gpu *gpu) {
  GP_GPU_TRY(gp_cuda_alive(gpu->spec.ordinal));
  return gp_cuda_switch(gpu->spec.ordinal);
}

/* ---- open ------------------------------------------------------------------------------------ */

static gp_status check_spec(const gp_gpu_spec *spec) {
  if (spec->parts >= 1 && spec->part >= 0 && spec->part < spec->parts) return GP_OK;
  return gp_gpu_fail(GP_EINVAL, "cuda:%d/%dof%d: no such part, expected 0of%d to %dof%d",
                     spec->ordinal, spec->part, spec->parts, spec->parts, spec->parts - 1,
                     spec->parts);
}

/* Refuse a GPU older than the kernels: it would fail at the first kernel, with a worse text. */
static gp_status check_age(const gp_gpu *gpu) {
  if (gpu->info.major * 10 + gpu->info.minor >= GP_CUDA_OLDEST) return GP_OK;
  return gp_gpu_fail(GP_EDEVICE,
                     "cuda:%d (%s): its compute capability is %d.%d, this build has kernels for "
                     "%d.%d and newer (CMAKE_CUDA_ARCHITECTURES)",
                     gpu->spec.ordinal, gpu->info.name, gpu->info.major, gpu->info.minor,
                     GP_CUDA_OLDEST / 10, GP_CUDA_OLDEST % 10);
}

static gp_status open_into(gp_gpu *gpu) {
  GP_GPU_TRY(gp_cuda_describe(gpu->spec.ordinal, &gpu->info));
  GP_GPU_TRY(check_age(gpu));
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gpu->spec.parts > 1 ? gp_cuda_part_open(gpu) : gp_cuda_streams_open(gpu);
}

gp_status gp_cuda_open(const gp_gpu_spec *spec, gp_gpu **gpu) {
  GP_GPU_TRY(check_spec(spec));
  gp_gpu *made = calloc(1, sizeof *made);
  if (!made) return gp_gpu_fail(GP_ENOMEM, "cuda:%d: no memory to describe it", spec->ordinal);
  made->spec = *spec;
  gp_status status = open_into(made);
  if (status != GP_OK) {
    free(made);
    return status;
  }
  atomic_store(&opened, spec->ordinal);
  *gpu = made;
  return GP_OK;
}

/* ---- close ----------------------------------------------------------------------------------- */

/* Errors are ignored: what fails here has failed before, or nothing can be done about it. */
void gp_cuda_close(gp_gpu *gpu) {
  if (!gpu) return;
  (void)gp_cuda_switch(gpu->spec.ordinal);
  if (gpu->capturing) gp_cuda_capture_drop(gpu);
  for (int i = 0; i < GP_STREAMS; i++) (void)cudaStreamSynchronize(gpu->streams[i]);
  gp_cudnn_close(gpu);
  gp_gemm_close(gpu);
  gp_cuda_paths_close(gpu);
  gp_cuda_streams_close(gpu);
  gp_cuda_part_close(gpu);
  (void)cudaGetLastError();
  free(gpu);
}

void gp_cuda_info(const gp_gpu *gpu, gp_gpu_info *info) { *info = gpu->info; }

void gp_cuda_set_math(gp_gpu *gpu, gp_gpu_math math) { gpu->math = math; }
