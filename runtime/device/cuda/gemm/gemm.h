/* device/cuda/gemm/gemm.h - matrix products on a GPU, row-major: D = op(A) op(B) [+ D] [+ bias].
 *
 * They come from cuBLASLt. The library is asked for an algorithm once in a process for each kind of
 * product (types, sizes, transposes, distances, alignment, epilogue, GPU), and the answer is kept,
 * because asking takes longer than a small product. prepare asks ahead of time; run finds the
 * answer, or asks if no prepare did. Algorithms that sum with atomics are excluded, so the bits
 * depend only on the shape, the GPU and its number of SMs. A product that the library refuses is
 * computed another way (plan.h). */
#ifndef GP_DEVICE_CUDA_GEMM_H
#define GP_DEVICE_CUDA_GEMM_H

#include "device/cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a product does while it writes its result: for halves only, not for stacks, K > 0. */
typedef enum gp_gemm_epilogue {
  GP_GEMM_PLAIN,
  /* D = gelu(product + bias), the tanh form; with `keeps`, aux receives the input of gelu */
  GP_GEMM_GELU,
  GP_GEMM_GELU_DX, /* D = product times the slope of that GELU at aux; no bias */
  /* aux[m], of D's type, receives the sums of op(A)'s rows: gradients of a bias; D is f32 */
  GP_GEMM_ROW_SUMS
} gp_gemm_epilogue;

/* One product, or a stack of `batch` products. op(A) is m x k, op(B) k x n, D m x n. A and B have
 * one type; D has the same type, or f32 if they are halves. Halves are summed in f32. */
typedef struct gp_gpu_gemm {
  gp_dtype type, d_type;
  bool transpose_a, transpose_b; /* stored as k x m, and as n x k */
  bool accumulate;               /* add to what D holds */
  int64_t m, n, k;
  int64_t lda, ldb, ldd;                /* elements between rows as stored */
  int64_t batch;                        /* 0 means 1 */
  int64_t stride_a, stride_b, stride_d; /* elements between the matrices of a stack; 0: shared */
  const void *a, *b;                    /* may be NULL in prepare: then aligned to 16 bytes */
  void *d;
  const void *c;    /* with accumulate: add to this instead of D, laid out like D; NULL: D */
  bool biased;      /* add bias[n], of D's type, to every row; not for f64 (see linear.cu) */
  const void *bias; /* with biased */
  gp_gemm_epilogue epilogue;
  bool keeps; /* for GELU: aux is wanted */
  void *aux;  /* see gp_gemm_epilogue; laid out as D, or [m] */
} gp_gpu_gemm;

/* Decide how a product is computed. Errors: GP_EUNSUPPORTED if the caller must compute what follows
 * the product (an epilogue, a bias) separately; a product alone can always be computed. GP_ENOMEM;
 * GP_EDEVICE. Threads: any, on different gp_gpu. */
gp_status gp_gemm_prepare(gp_gpu *gpu, const gp_gpu_gemm *gemm);
/* Enqueue the product on the compute stream. An empty D is no work; k = 0 gives zeros (no
 * bias then). Errors: as prepare. */
gp_status gp_gemm_run(gp_gpu *gpu, const gp_gpu_gemm *gemm);

/* Did the library refuse this product when it was first asked? Later runs do not change the
 * answer. */
bool gp_gemm_is_refused(gp_gpu *gpu, const gp_gpu_gemm *gemm);

void gp_gemm_close(gp_gpu *gpu); /* free its workspace; NULL is fine */
/* Get the library's name and version. */
void gp_gemm_describe(gp_gpu_library *library);
/* Describe the product: "bf16 512x768 by 768x3072, the right one stored transposed, to f32". */
enum { GP_GEMM_NAME = 160 };
void gp_gemm_name(const gp_gpu_gemm *gemm, char text[GP_GEMM_NAME]);

#ifdef __cplusplus
}
#endif

#endif
