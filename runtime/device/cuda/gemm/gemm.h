/* device/cuda/gemm/gemm.h - matrix products on a GPU, row-major: D = op(A) op(B) [+ D] [+ bias].
 *
 * They come from cuBLASLt. Which algorithm is asked once in a process for each kind of product
 * (types, sizes, transposes, distances, alignment, epilogue, GPU) and kept, because asking takes
 * longer than a small product: prepare asks ahead of time, run finds the answer, or asks where
 * nobody prepared. Algorithms that sum with atomics are excluded; so the bits depend on the shape,
 * the GPU and its number of SMs only. What the library refuses has another way (plan.h). */
#ifndef GP_DEVICE_CUDA_GEMM_H
#define GP_DEVICE_CUDA_GEMM_H

#include "device/cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done to a product as it is written: halves only, not to stacks, K > 0. */
typedef enum gp_gemm_epilogue {
  GP_GEMM_PLAIN,
  /* D = gelu(product + bias), the tanh form; aux receives what was before it, with `keeps` */
  GP_GEMM_GELU,
  GP_GEMM_GELU_DX, /* D = product times the slope of that GELU at aux; no bias */
  /* aux[m], of D's type, receives the sums of op(A)'s rows: gradients of a bias; D is f32 */
  GP_GEMM_ROW_SUMS
} gp_gemm_epilogue;

/* One product, or a stack of `batch` of them. op(A) is m x k, op(B) k x n, D m x n. A and B have
 * one type; D has it too, or is f32 where they are halves. Halves are summed in f32. */
typedef struct gp_gpu_gemm {
  gp_dtype type, d_type;
  bool transpose_a, transpose_b; /* stored as k x m, as n x k */
  bool accumulate;               /* add to what D holds */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;                /* elements between rows as stored */
  int64_t batch;                        /* 0 is 1 */
  int64_t stride_a, stride_b, stride_d; /* elements between the matrices of a stack; 0: shared */
  const void *a, *b;                    /* may be NULL in prepare: then aligned to 16 bytes */
  void *d;
  const void *c;    /* with accumulate: what is added to in place of D, laid out as D; NULL: D */
  bool biased;      /* add bias[n], of D's type, to every row; not for f64 (see linear.cu) */
  const void *bias; /* with biased */
  gp_gemm_epilogue epilogue;
  bool keeps; /* of GELU: aux is wanted */
  void *aux;  /* see gp_gemm_epilogue; laid out as D, or [m] */
} gp_gpu_gemm;

/* Settle how a product is computed. Errors: GP_EUNSUPPORTED where what follows the product (an
 * epilogue, a bias) must be done apart; a product alone always has a way. GP_ENOMEM; GP_EDEVICE.
 * Threads: any, of different gp_gpu. */
gp_status gp_gemm_prepare(gp_gpu *gpu, const gp_gpu_gemm *gemm);
/* Enqueue it where ops go now. An empty D is no work; k = 0 gives zeros (no bias then).
 * Errors: as prepare. */
gp_status gp_gemm_run(gp_gpu *gpu, const gp_gpu_gemm *gemm);

/* Had the library no way for this product when it was first asked? Settled by that, whatever later
 * runs meet. */
bool gp_gemm_is_refused(gp_gpu *gpu, const gp_gpu_gemm *gemm);

/* Make a workspace for products on the side stream, once. Errors: GP_ENOMEM; GP_EDEVICE. */
gp_status gp_gemm_open_side(gp_gpu *gpu);
void gp_gemm_close(gp_gpu *gpu); /* give back its workspaces; NULL is fine */
/* The library and its version. */
void gp_gemm_describe(gp_gpu_library *library);
/* Write what product it is: "bf16 512x768 by 768x3072, the right one stored transposed, to f32". */
enum { GP_GEMM_NAME = 160 };
void gp_gemm_name(const gp_gpu_gemm *gemm, char text[GP_GEMM_NAME]);

#ifdef __cplusplus
}
#endif

#endif
