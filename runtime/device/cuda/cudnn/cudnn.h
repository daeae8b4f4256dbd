/* device/cuda/cudnn/cudnn.h - what the ops ask of cuDNN.
 *
 * libcudnn is opened with dlopen at the first question: the plugin works without it, and what has a
 * kernel of our own then uses that. Plans are made by prepare and found again by run. The parts:
 *   library.c        the library's functions
 *   graph.c          graphs of operations
 *   plan.c           an engine for a graph, and running it
 *   shared.c         the plans of the process
 *   cudnn.c          those that a device uses
 *   attention.c      graphs of attention
 *   attention_piece.c  how much of it at once, and its scratch
 *   attention_run.c  attention
 *   convolution/     graphs of convolutions, and running them
 *   missing.c        all of it, where the plugin is built without cuDNN's headers */
#ifndef GP_DEVICE_CUDA_CUDNN_H
#define GP_DEVICE_CUDA_CUDNN_H

#include "device/cuda/attention.h"
#include "device/cuda/convolution.h"

#ifdef __cplusplus
extern "C" {
#endif

void gp_cudnn_close(gp_gpu *gpu); /* NULL in gpu->cudnn is fine */

/* The library's version, or why there is none. */
void gp_cudnn_describe(gp_gpu_library *library);

/* Attention: halves, heads of a multiple of 8; masks, shared heads, dropout with our bits. *why
 * says why there is no plan (borrowed for the device's life); NULL: there is one, and *scratch its
 * bytes. Errors: GP_ENOMEM. Cost: a plan takes about a second to make. */
gp_status gp_cudnn_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch,
                                     const char **why);
/* Enqueue it, where there is a plan; *done says whether that was so. *why: NULL, or why the library
 * refused to run the plan, which it is not asked for again: *done is false then, and the outputs
 * are still to be written. Errors: GP_EDEVICE where the GPU is lost. */
gp_status gp_cudnn_attention_run(gp_gpu *gpu, const gp_attention *a, bool *done, const char **why);

/* Likewise: convolutions in f32, bf16 and f16. */
gp_status gp_cudnn_convolution_prepare(gp_gpu *gpu, const gp_convolution *c, size_t *scratch,
                                       const char **why);
gp_status gp_cudnn_convolution_run(gp_gpu *gpu, const gp_convolution *c, bool *done,
                                   const char **why);

#ifdef __cplusplus
}
#endif

#endif
