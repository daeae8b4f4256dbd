/* device/cpu/gemm.h - matrix products, row-major: C = alpha * op(A) * op(B) + beta * C.
 *
 * f32 comes from oneDNN (loaded with dlopen at the first call, one thread per call); where it is
 * missing, under GPIPE_GEMM=plain, and for f64 our own kernel runs. Every caller cuts its work by
 * shape only, so the bits are the machine's, not the thread count's. A product with beta = 1
 * accumulates in place: the one way to accumulate everywhere. */
#ifndef GP_DEVICE_CPU_GEMM_H
#define GP_DEVICE_CPU_GEMM_H

#include "base/status.h"

typedef struct gp_gemm {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  int64_t lda, ldb, ldc; /* elements between rows as stored */
  double alpha, beta;
} gp_gemm;

gp_status gp_gemm_f32(const gp_gemm *g, const float *a, const float *b, float *c);
gp_status gp_gemm_f64(const gp_gemm *g, const double *a, const double *b, double *c);

/* Around products that follow each other within milliseconds: the calling thread gets no signal
 * between the two calls. On the script's thread that costs two system calls, which every product
 * would make by itself. They nest. Threads of ours never get signals: for them it is free. */
void gp_gemm_hold(void);
void gp_gemm_release(void);

#endif
