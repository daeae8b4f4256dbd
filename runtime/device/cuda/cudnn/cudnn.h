/* device/cuda/cudnn/cudnn.h - what the ops ask of cuDNN.
 *
 * The first call opens libcudnn with dlopen: the plugin works without it, and our own kernels then
 * compute what they can. prepare makes plans, run finds them again. The parts:
 *
 *   library.c          the library's functions
 *   graph.c            graphs of operations
 *   plan.c             an engine for a graph, and running it
 *   tune.c             engines by the clock, on request
 *   choices.c          which engines it chose, between processes
 *   shared.c           the plans of the process
 *   cudnn.c            the plans that a device uses
 *   attention.c        graphs of attention
 *   attention_piece.c  how much attention is computed at once, and its scratch
 *   attention_run.c    running attention
 *   convolution/       graphs of convolutions, and running them
 *   missing.c          stands in for all of these if the plugin is built without cuDNN's headers */
#ifndef GP_DEVICE_CUDA_CUDNN_H
#define GP_DEVICE_CUDA_CUDNN_H

#include "device/cuda/attention.h"
#include "device/cuda/convolution.h"

#ifdef __cplusplus
extern "C" {
#endif

void gp_cudnn_close(gp_gpu *gpu); /* NULL in gpu->cudnn is fine */

/* Get the library's version, or why there is none. */
void gp_cudnn_describe(gp_gpu_library *library);

/* Prepare attention: halves, heads of a multiple of 8; masks, shared heads, dropout with our bits.
 * *why says why there is no plan (borrowed for the device's life); NULL: there is a plan, and
 * *scratch receives its bytes. Errors: GP_ENOMEM. Cost: a plan takes about a second to make. */
gp_status gp_cudnn_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch,
                                     const char **why);
/* Enqueue the attention if there is a plan; *done says whether it was. *why: NULL, or why every
 * engine of the library refused to run the plan, which is not tried again: then *done is false, and
 * the outputs are still to be written. Errors: GP_EDEVICE if the GPU is lost; GP_EUNSUPPORTED if
 * the library refuses to be captured, which spoils the capture. */
gp_status gp_cudnn_attention_run(gp_gpu *gpu, const gp_attention *a, bool *done, const char **why);

/* The same for convolutions in f32, bf16 and f16. */
gp_status gp_cudnn_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch,
                                       const char **why);
gp_status gp_cudnn_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done,
                                   const char **why);

#ifdef __cplusplus
}
#endif

#endif
