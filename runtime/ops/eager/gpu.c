/* ops/eager/gpu.c - an op at once on the GPU that its inputs lie on: for scripts and for tests of
 * kernels.
 *
 * A pipeline keeps a step block, a fault word and scratch ready for all of its ops; here they are
 * made for one op, which is then waited for. */
#include "base/tensor.h"
#include "device/gpus.h"
#include "ops/eager/eager.h"
#include "ops/ids.h"

/* Device memory beside the operands. */
typedef struct bench {
  gp_step_block step;
  gp_gpu_fault fault;
} bench;

enum { SCRATCH_AT = GP_GPU_ALIGNMENT }; /* behind the bench */
_Static_assert(sizeof(bench) <= SCRATCH_AT, "the bench lies in front of the scratch");

/* Run the kernel, wait, and read the fault that it may have found. */
static gp_status run(const gp_application *a, const gp_step_block *step, char *memory) {
  const gp_gpu_api *api;
  gp_gpu *gpu = gp_space_gpu(a->space);
  bench here = {.step = *step, .fault = {.key = GP_GPU_NO_FAULT}};
  GP_TRY(gp_gpus_api(&api));
  GP_TRY(a->space->write(a->space, memory, &here, sizeof here));
  gp_gpu_call call = {.op = gp_application_call(a, &((bench *)memory)->step),
                      .scratch = memory + SCRATCH_AT,
                      .fault = &((bench *)memory)->fault};
  GP_TRY(api->run(gpu, a->op, &call));
  GP_TRY(a->space->read(a->space, &here, memory, sizeof here));
  if (here.fault.key == GP_GPU_NO_FAULT) return GP_OK;
  call.op.step = step;
  return gp_id_fault(a->op, &call.op, (int64_t)(here.fault.key & UINT32_MAX), here.fault.value);
}

gp_status gp_eager_run_gpu(const gp_application *a, const gp_step_block *step) {
  const gp_gpu_api *api;
  size_t scratch = 0;
  void *memory;
  gp_call call = gp_application_call(a, step);
  GP_TRY(gp_gpus_api(&api));
  GP_TRY(api->prepare(gp_space_gpu(a->space), a->op, &call, &scratch));
  GP_TRY(gp_space_scratch(a->space, SCRATCH_AT + scratch, &memory));
  return run(a, step, memory);
}
