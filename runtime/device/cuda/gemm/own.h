/* device/cuda/gemm/own.h - a product by a kernel of ours (own.cu), the last of all ways. */
#ifndef GP_DEVICE_CUDA_GEMM_OWN_H
#define GP_DEVICE_CUDA_GEMM_OWN_H

#include "device/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueue a product without epilogue, of at least one element; a bias is no matter. */
gp_status gp_gemm_own(gp_gpu *gpu, const gp_gpu_gemm *gemm);

#ifdef __cplusplus
}
#endif

#endif
