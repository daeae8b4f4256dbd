/* device/cuda/cudnn/tune.h - engines by the clock instead of in the library's order.
 *
 * Off unless GPIPE_CONVOLUTION=timed, since the fastest engine may differ from run to run, and with
 * it the bits. So a choice is kept (choices.h), and whoever asks next takes it untimed. */
#ifndef GP_DEVICE_CUDA_CUDNN_TUNE_H
#define GP_DEVICE_CUDA_CUDNN_TUNE_H

#include "device/cuda/cudnn/cache.h"

/* May the engines of this request be timed? */
bool gp_cudnn_tunes(const gp_cudnn_request *request);
/* Give a plan that was built, and that nobody has used yet, the engine that was chosen before for
 * the same work on the same kind of GPU; or else the fastest one, and keep that choice. How it was
 * chosen is written into `judge`. If nothing could be timed, the plan stays as it is. The library
 * may refuse again what it accepted: then the plan has no engine, and its graph says why. Errors:
 * the GPU is lost. Cost: seconds. Threads: the caller holds the lock of the process's plans. */
gp_status gp_cudnn_tune(gp_gpu *gpu, cudnnHandle_t handle, const gp_cudnn_request *request,
                        gp_cudnn_plan *plan, char judge[80]);

#endif
