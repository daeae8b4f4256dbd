/* tests/cuda/plans/rest_of_plugin.h - what files about cuDNN call of the plugin and of the CUDA
 * runtime: calls that do nothing, or count; and a convolution for them. */
#ifndef GP_TESTS_REST_OF_PLUGIN_H
#define GP_TESTS_REST_OF_PLUGIN_H

#include <math.h>
#include <string.h>

#include "device/cuda/cudnn/cudnn.h"
#include "device/cuda/table.h"
#include "stand_in.h"

/* ---- the plugin ---------------------------------------------------------------------------- */

gp_status gp_gpu_fail(gp_status status, const char *format, ...) { return (void)format, status; }

gp_status gp_gpu_refused(const gp_gpu *gpu, const char *doing) {
  (void)gpu, (void)doing;
  return stand_in.lost ? GP_EDEVICE : GP_OK;
}

void gp_gpu_note_path(gp_gpu *gpu, const char *kind, const char *shape, const char *path,
                      const char *why) {
  (void)gpu, (void)shape, (void)path, (void)why;
  stand_in.notes += strcmp(kind, "engine") == 0;
}

gp_status gp_attention_stage_mask(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_value *to) {
  return (void)gpu, (void)a, (void)to, GP_OK;
}
gp_status gp_attention_write_kept(gp_gpu *gpu, const gp_attention *a,
                                  const gp_attention_words *words, void *to) {
  return (void)gpu, (void)a, (void)words, (void)to, GP_OK;
}
gp_status gp_attention_clear_rows(gp_gpu *gpu, const gp_attention *a) {
  return (void)gpu, (void)a, GP_OK;
}

gp_status gp_convolution_turn(gp_gpu *gpu, const gp_convolution *c, void *to) {
  return (void)gpu, (void)c, (void)to, GP_OK;
}
gp_status gp_convolution_turn_back(gp_gpu *gpu, const gp_convolution *c, const void *from) {
  return (void)gpu, (void)c, (void)from, GP_OK;
}
gp_status gp_convolution_write_bias(gp_gpu *gpu, const gp_convolution *c) {
  return (void)gpu, (void)c, stand_in.biases++, GP_OK;
}

/* ---- CUDA ---------------------------------------------------------------------------------- */

/* Memory is that of the host; events measure what the stand-in says of the engine that ran last. */
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  if (stand_in.no_memory) return cudaErrorMemoryAllocation;
  *memory = malloc(bytes), stand_in.blocks++;
  return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
  stand_in.blocks -= memory != NULL;
  free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  return (void)stream, memset(memory, value, bytes), cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
  *event = malloc(1), stand_in.blocks++;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event), stand_in.blocks--;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return (void)event, (void)stream, cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return (void)event, cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  (void)from, (void)to, stand_in.timed++;
  return *milliseconds = stand_in.time[stand_in.ran], cudaSuccess;
}

/* ---- work ---------------------------------------------------------------------------------- */

/* Makes a convolution of B x 8 channels of 9 x 9, with windows of 3 x 3. */
static inline gp_convolution convolution_of(int64_t rows, gp_convolution_pass pass, bool biased) {
  static char memory[64];
  void *data = (void *)(((uintptr_t)memory + 15) / 16 * 16);
  const gp_convolution_axis axis = {9, 9, 3, 1, 1, 1};
  return (gp_convolution){.pass = pass,
                          .dtype = GP_BF16,
                          .biased = biased,
                          .rows = rows,
                          .groups = 1,
                          .image_c = 8,
                          .map_c = 16,
                          .h = axis,
                          .w = axis,
                          .image = data,
                          .map = data,
                          .weight = data,
                          .bias = biased ? data : NULL,
                          .weight_dtype = GP_F32,
                          .scratch = data};
}

#endif
