/* device/cuda/kernel/work.h - what a GPU does for the engine besides ops: updates, checks, counts.
 *
 * Signatures and meaning are those of gp_gpu_api. All of it is enqueued on the compute stream, and
 * the plugin makes the GPU current first. (gp_gpu_add is an op.)
 *
 *   optim/update.cu                update
 *   optim/gradients.cu             add, scale, sum_squares
 *   device/cuda/kernel/status.cu   check_finite, settle */
#ifndef GP_DEVICE_CUDA_WORK_H
#define GP_DEVICE_CUDA_WORK_H

#include "device/cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Errors: GP_EDTYPE for dtypes other than f32 and f64, GP_ERANGE for a step before the first. */
gp_status gp_gpu_work_update(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                             const gp_optim_slice *slices, int count);
/* to[n] += from[n], in any float dtype; so are the next two functions. */
gp_status gp_gpu_work_add(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *to, const void *from);
gp_status gp_gpu_work_scale(gp_gpu *gpu, const gp_gpu_run *runs, int count, double factor);
gp_status gp_gpu_work_sum_squares(gp_gpu *gpu, const gp_gpu_run *runs, int count, double *sums,
                                  void *scratch);
/* Values that are not floats count as finite. */
gp_status gp_gpu_work_check_finite(gp_gpu *gpu, const gp_arg *value, gp_gpu_fault *fault,
                                   uint32_t tag);
gp_status gp_gpu_work_settle(gp_gpu *gpu, const int64_t *counts, gp_step_block *blocks, int count);

#ifdef __cplusplus
}
#endif

#endif
