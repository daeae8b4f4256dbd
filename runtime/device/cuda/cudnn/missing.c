/* device/cuda/cudnn/missing.c - cudnn.h where the plugin is built without cuDNN's headers.
 *
 * Takes the place of the other cudnn files, and is empty beside them: attention uses our own
 * kernels. */
#include "device/cuda/cudnn/cudnn.h"

#ifndef GP_HAVE_CUDNN

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

#endif
