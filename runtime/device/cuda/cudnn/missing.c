/* device/cuda/cudnn/missing.c - cudnn.h for plugins that are built without cuDNN's headers.
 *
 * This replaces the other cudnn files, and is empty if they are built: our own kernels compute. */
#include "device/cuda/cudnn/cudnn.h"

#ifndef GP_HAVE_CUDNN
#include <stdio.h>

void gp_cudnn_close(gp_gpu *gpu) { (void)gpu; }

static const char missing[] = "the plugin was built without cuDNN's headers";

void gp_cudnn_describe(gp_gpu_library *library) {
  snprintf(library->name, sizeof library->name, "cuDNN");
  snprintf(library->why, sizeof library->why, "%s", missing);
}

gp_status gp_cudnn_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch,
                                     const char **why) {
  (void)gpu, (void)a, (void)scratch;
  *why = missing;
  return GP_OK;
}

gp_status gp_cudnn_attention_run(gp_gpu *gpu, const gp_attention *a, bool *done, const char **why) {
  (void)gpu, (void)a;
  *done = false, *why = NULL;
  return GP_OK;
}

gp_status gp_cudnn_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch,
                                       const char **why) {
  (void)gpu, (void)c, (void)scratch;
  *why = missing;
  return GP_OK;
}

gp_status gp_cudnn_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done,
                                   const char **why) {
  (void)gpu, (void)c;
  *done = false, *why = NULL;
  return GP_OK;
}

#endif
