/* device/cuda/copy.c - moving bytes on a stream, between host, GPU and GPU. */
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

bool gp_cuda_same_memory(const gp_gpu *a, const gp_gpu *b) {
  return a->spec.ordinal == b->spec.ordinal;
}
