/* device/cuda/memory.c - memory of the GPU and pinned memory of the host.
 *
 * The engine allocates few large blocks, before the first step; so a refusal has the time to say
 * what was asked for and what was free. */
#include <stdio.h>

#include "device/cuda/table.h"

/* Write "768.0 MiB" (bytes below 1 KiB as they are); returns text. */
enum { SIZE_TEXT = 24 };
static const char *print_size(size_t bytes, char text[SIZE_TEXT]) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double size = (double)bytes / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) size /= 1024;
  if (bytes < 1024)
    snprintf(text, SIZE_TEXT, "%zu bytes", bytes);
  else
    snprintf(text, SIZE_TEXT, "%.1f %s", size, units[unit]);
  return text;
}

/* ---- memory of the GPU ---------------------------------------------------------------------- */

static gp_status fail_memory(const gp_gpu *gpu, size_t bytes) {
  (void)cudaGetLastError();
  char name[GP_CUDA_NAME], wanted[SIZE_TEXT], available[SIZE_TEXT], whole[SIZE_TEXT];
  size_t vacant, total;
  gp_cuda_name(&gpu->spec, name);
  print_size(bytes, wanted);
  if (cudaMemGetInfo(&vacant, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    return gp_gpu_fail(GP_ENOMEM, "%s: out of memory: asked for %s", name, wanted);
  }
  return gp_gpu_fail(GP_ENOMEM, "%s: out of memory: asked for %s, free are %s of %s", name, wanted,
                     print_size(vacant, available), print_size(total, whole));
}

gp_status gp_cuda_alloc(gp_gpu *gpu, size_t bytes, void **memory) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  void *made = NULL;
  cudaError_t error = cudaMalloc(&made, bytes);
  if (error == cudaErrorMemoryAllocation) return fail_memory(gpu, bytes);
  GP_GPU_TRY(gp_gpu_check(gpu, error, "allocating memory"));
  *memory = made;
  return GP_OK;
}

void gp_cuda_free(gp_gpu *gpu, void *memory) {
  if (!memory) return;
  (void)gp_cuda_switch(gpu->spec.ordinal);
  (void)gp_gpu_check(gpu, cudaFree(memory), "freeing memory"); /* keeps a loss that shows here */
}

gp_status gp_cuda_free_bytes(gp_gpu *gpu, size_t *bytes) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  size_t vacant, total;
  GP_GPU_TRY(gp_gpu_check(gpu, cudaMemGetInfo(&vacant, &total), "asking for free memory"));
  *bytes = vacant;
  return GP_OK;
}

/* ---- memory of the host --------------------------------------------------------------------- */

/* Allocate memory that is pinned for every GPU ("portable"). The call needs a context; a thread
 * without one uses that of a GPU in use, because GPU 0 may be none of ours. */
gp_status gp_cuda_host_alloc(size_t bytes, void **memory) {
  int ordinal = gp_cuda_current();
  GP_GPU_TRY(gp_cuda_alive(ordinal));
  GP_GPU_TRY(gp_cuda_switch(ordinal));
  void *made = NULL;
  cudaError_t error = bytes ? cudaHostAlloc(&made, bytes, cudaHostAllocPortable) : cudaSuccess;
  if (error == cudaErrorMemoryAllocation) {
    char wanted[SIZE_TEXT];
    (void)cudaGetLastError();
    return gp_gpu_fail(GP_ENOMEM, "cuda: out of memory: asked for %s of pinned memory on the host",
                       print_size(bytes, wanted));
  }
  GP_GPU_TRY(gp_gpu_check(NULL, error, "allocating pinned memory"));
  *memory = made;
  return GP_OK;
}

void gp_cuda_host_free(void *memory) {
  if (!memory) return;
  (void)gp_cuda_switch(gp_cuda_current());
  (void)gp_gpu_check(NULL, cudaFreeHost(memory), "freeing pinned memory");
}

/* The memory is another process's, too, so a failure here is no reason to give up: the caller has
 * other ways. */
gp_status gp_cuda_host_pin(void *memory, size_t bytes) {
  int ordinal = gp_cuda_current();
  GP_GPU_TRY(gp_cuda_alive(ordinal));
  GP_GPU_TRY(gp_cuda_switch(ordinal));
  cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  return gp_gpu_check(NULL, error, "pinning memory of the host");
}

void gp_cuda_host_unpin(void *memory) {
  if (!memory) return;
  (void)gp_cuda_switch(gp_cuda_current());
  (void)gp_gpu_check(NULL, cudaHostUnregister(memory), "releasing pinned memory");
}
