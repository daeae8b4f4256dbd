/* tests/cuda/gpu_memory.h - the plugin that GPIPE_CUDA_PLUGIN names, called directly: its table of
 * functions, and values in the memory of its first GPU.
 *
 * Tests that include it run on the plugin compiled for the host, and on a GPU with the real one. */
#ifndef GP_TESTS_CUDA_GPU_MEMORY_H
#define GP_TESTS_CUDA_GPU_MEMORY_H

#include "device/gpus.h"
#include "ops/op_support.h"

static const gp_gpu_api *api;
static gp_gpu *gpu;

/* Opens the plugin once; false where it fails, which is a failed check. */
static inline bool open_gpu(void) {
  gp_space *space = NULL;
  if (api) return true;
  CHECK_STATUS(gp_gpus_api(&api), GP_OK);
  if (api) CHECK_STATUS(gp_gpus_space(0, &space), GP_OK);
  if (space) gpu = gp_space_gpu(space);
  return space != NULL;
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Allocates at least one byte, so that there is an address; all bits are set, which is NaN. */
static inline void *gpu_alloc(size_t bytes) {
  void *memory = NULL;
  CHECK_STATUS(api->alloc(gpu, bytes ? bytes : 1, &memory), GP_OK);
  CHECK_STATUS(api->fill(gpu, GP_STREAM_COMPUTE, memory, 255, bytes), GP_OK);
  return memory;
}

static inline void gpu_copy(void *to, const void *from, size_t bytes) {
  CHECK_STATUS(api->copy(gpu, GP_STREAM_COMPUTE, to, from, bytes), GP_OK);
  CHECK_STATUS(api->sync(gpu, GP_STREAM_COMPUTE), GP_OK);
}

/* ---- values -------------------------------------------------------------------------------- */

/* A value and its allocation, which begins some elements before the value and ends with it. */
typedef struct gpu_value {
  gp_meta meta;
  char *memory;
  void *data;
} gpu_value;

/* Allocates a contiguous value, `shift` elements behind an aligned address. */
static inline gpu_value gpu_room(const gp_meta *meta, int shift) {
  gpu_value value = {.meta = *meta};
  size_t before = (size_t)shift * gp_dtype_size(meta->dtype);
  value.memory = gpu_alloc(before + gp_meta_bytes(meta));
  value.data = value.memory + before;
  return value;
}

/* Copies a contiguous tensor to the GPU, with its dims in the same or in reverse order in
 * memory. */
static inline gpu_value gpu_value_of(gp_tensor *from, int shift, bool turned) {
  gp_tensor *view = turned ? reversed(from) : gp_tensor_retain(from);
  gp_tensor *flat = apply(GP_OP_copy, &no_attrs, view, NULL, NULL);
  gpu_value value = gpu_room(gp_tensor_meta(flat), shift);
  gpu_copy(value.data, gp_tensor_data(flat), gp_meta_bytes(&value.meta));
  if (turned) {
    gp_tensor *back = reversed(flat);
    value.meta = *gp_tensor_meta(back);
    gp_tensor_free(back);
  }
  gp_tensor_free(view), gp_tensor_free(flat);
  return value;
}

/* Returns a contiguous value as a tensor on the host, which the caller frees. */
static inline gp_tensor *gpu_fetch(const gpu_value *value) {
  gp_tensor *tensor = new_tensor(value->meta.dtype, value->meta.shape);
  gpu_copy(gp_tensor_data(tensor), value->data, gp_meta_bytes(&value->meta));
  return tensor;
}

static inline void gpu_drop(gpu_value *value) { api->free(gpu, value->memory); }

#endif
