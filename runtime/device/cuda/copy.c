/* device/cuda/copy.c - moving bytes on a stream, between host, GPU and GPU.
 *
 * Two GPUs copy to each other directly if the bus and the driver allow it; the process asks once
 * per pair and remembers the answer. */
#include <stdatomic.h>

#include "device/cuda/table.h"

gp_status gp_cuda_copy(gp_gpu *gpu, gp_stream stream, void *to, const void *from, size_t bytes) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  if (bytes == 0) return GP_OK;
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpu->streams[stream]);
  return gp_gpu_check(gpu, error, "copying");
}

gp_status gp_cuda_copy_peer(gp_gpu *gpu, gp_stream stream, void *to, const gp_gpu *source,
                            const void *from, size_t bytes) {
  if (gp_cuda_same_memory(gpu, source)) return gp_cuda_copy(gpu, stream, to, from, bytes);
  GP_GPU_TRY(gp_cuda_alive(source->spec.ordinal));
  GP_GPU_TRY(gp_cuda_use(gpu));
  if (bytes == 0) return GP_OK;
  cudaError_t error = cudaMemcpyPeerAsync(to, gpu->spec.ordinal, from, source->spec.ordinal, bytes,
                                          gpu->streams[stream]);
  return gp_gpu_check(gpu, error, "copying from another GPU");
}

gp_status gp_cuda_fill(gp_gpu *gpu, gp_stream stream, void *to, int byte, size_t bytes) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  if (bytes == 0) return GP_OK;
  return gp_gpu_check(gpu, cudaMemsetAsync(to, byte, bytes, gpu->streams[stream]), "filling");
}

gp_status gp_cuda_sync(gp_gpu *gpu, gp_stream stream) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  return gp_gpu_check(gpu, cudaStreamSynchronize(gpu->streams[stream]), "waiting for a stream");
}

/* ---- peers ----------------------------------------------------------------------------------- */

bool gp_cuda_same_memory(const gp_gpu *a, const gp_gpu *b) {
  return a->spec.ordinal == b->spec.ordinal;
}

/* Let the GPU read the other one's memory. Access belongs to the process: a library may have
 * enabled it before. */
static bool enable(const gp_gpu *gpu, const gp_gpu *other) {
  int can = 0;
  cudaError_t error = cudaDeviceCanAccessPeer(&can, gpu->spec.ordinal, other->spec.ordinal);
  if (error == cudaSuccess && can) {
    error = cudaDeviceEnablePeerAccess(other->spec.ordinal, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      (void)cudaGetLastError();
      return true;
    }
  }
  return gp_gpu_check(gpu, error, "asking for access to another GPU") == GP_OK && can;
}

bool gp_cuda_reaches(const gp_gpu *gpu, const gp_gpu *other) {
  enum { UNKNOWN, YES, NO };
  static atomic_char known[GP_CUDA_MOST][GP_CUDA_MOST]; /* [reader][owner of the memory] */
  if (gp_cuda_same_memory(gpu, other)) return true;
  atomic_char *pair = &known[gpu->spec.ordinal][other->spec.ordinal];
  char answer = atomic_load(pair);
  if (answer == UNKNOWN) {
    if (gp_cuda_use(gpu) != GP_OK) return false;
    answer = enable(gpu, other) ? YES : NO;
    atomic_store(pair, answer);
  }
  return answer == YES;
}
