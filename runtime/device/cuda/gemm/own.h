/* device/cuda/gemm/own.h - our own kernel for products (own.cu), used when all else is refused. */
#ifndef GP_DEVICE_CUDA_GEMM_OWN_H
#define GP_DEVICE_CUDA_GEMM_OWN_H

#include "device/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueue a product without epilogue, with at least one element; the bias is optional. */
gp_status gp_gemm_own(gp_gpu *gpu, const gp_gpu_gemm *gemm);

#ifdef __cplusplus
}
#endif

#endif
