/* tests/cuda/libraries/cudnn.c - no cuDNN: there is never a plan, so kernels of our own run. */
#include "device/cuda/cudnn.h"

gp_status gp_cudnn_open(gp_gpu *gpu) {
  (void)gpu;
  return gp_gpu_fail(GP_EUNSUPPORTED, "cudnn: not in this test");
}

void gp_cudnn_close(gp_gpu *gpu) { (void)gpu; }

gp_status gp_cudnn_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch,
                                     bool *planned) {
  (void)gpu, (void)a, (void)scratch;
  *planned = false;
  return GP_OK;
}

gp_status gp_cudnn_attention_run(gp_gpu *gpu, const gp_attention *a, bool *planned) {
  (void)gpu, (void)a;
  *planned = false;
  return GP_OK;
}
