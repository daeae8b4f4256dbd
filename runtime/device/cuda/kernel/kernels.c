/* device/cuda/kernel/kernels.c - the table of kernels, made from ops.def, and the device's other
 * work.
 *
 * A kernel that is not written is a missing symbol, which the linker names. The functions here make
 * the GPU current, so kernels need not. */
#include "device/cuda/kernel/kernel.h"
#include "device/cuda/table.h"
#include "device/cuda/kernel/work.h"

#define GP_OP(name, ...) [GP_OP_##name] = &gp_gpu_##name,
static const gp_gpu_kernel *const kernels[GP_OP_COUNT] = {
#include "ops/rows.def"
};
#undef GP_OP

/* Find an op's kernel; NULL, with a text, if the number is no op. */
static const gp_gpu_kernel *find(gp_op op) {
  if ((unsigned)op < GP_OP_COUNT) return kernels[op];
  gp_gpu_fail(GP_EINVAL, "cuda: op %d is none of the %d in the table", (int)op, (int)GP_OP_COUNT);
  return NULL;
}

gp_status gp_cuda_prepare(gp_gpu *gpu, gp_op op, const gp_call *call, size_t *scratch) {
  const gp_gpu_kernel *kernel = find(op);
  if (!kernel) return GP_EINVAL;
  GP_GPU_TRY(gp_cuda_use(gpu));
  size_t bytes = 0;
  if (kernel->prepare) GP_GPU_TRY(kernel->prepare(gpu, call, &bytes));
  *scratch = bytes;
  return GP_OK;
}

/* Run an op; a view has nothing to run. */
gp_status gp_cuda_run(gp_gpu *gpu, gp_op op, const gp_gpu_call *call) {
  const gp_gpu_kernel *kernel = find(op);
  if (!kernel) return GP_EINVAL;
  GP_GPU_TRY(gp_cuda_use(gpu));
  return kernel->run ? kernel->run(gpu, call) : GP_OK;
}

/* ---- work that is no op (work.h) ------------------------------------------------------------ */

gp_status gp_cuda_check_finite(gp_gpu *gpu, const gp_arg *value, gp_gpu_fault *fault,
                               uint32_t tag) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_work_check_finite(gpu, value, fault, tag);
}

gp_status gp_cuda_settle(gp_gpu *gpu, const int64_t *counts, gp_step_block *blocks, int count) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_work_settle(gpu, counts, blocks, count);
}

gp_status gp_cuda_update(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                         const gp_optim_slice *slices, int count) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_work_update(gpu, hyper, step, slices, count);
}

gp_status gp_cuda_add(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *to, const void *from) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_work_add(gpu, dtype, n, to, from);
}

gp_status gp_cuda_scale(gp_gpu *gpu, const gp_gpu_run *runs, int count, double factor) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_work_scale(gpu, runs, count, factor);
}

gp_status gp_cuda_sum_squares(gp_gpu *gpu, const gp_gpu_run *runs, int count, double *sums,
                              void *scratch) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_work_sum_squares(gpu, runs, count, sums, scratch);
}
