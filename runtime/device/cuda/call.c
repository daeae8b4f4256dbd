/* device/cuda/call.c - functions of the host that run in the order of a stream.
 *
 * A value that another process waits for can be sent when the copy before it is over, without a
 * thread that asks again and again. The driver has one thread for such calls, so they have to be
 * short. */
#include "device/cuda/table.h"

gp_status gp_cuda_call(gp_gpu *gpu, gp_stream stream, void (*function)(void *context),
                       void *context) {
  GP_GPU_TRY(gp_cuda_use(gpu));
  cudaError_t error = cudaLaunchHostFunc(gpu->streams[stream], function, context);
  return gp_gpu_check(gpu, error, "enqueueing a call");
}
