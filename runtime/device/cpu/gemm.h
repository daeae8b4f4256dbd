/* device/cpu/gemm.h - matrix products, row-major: C = alpha * op(A) * op(B) + beta * C.
 *
 * f32 products come from oneDNN, which is loaded with dlopen at the first call and held to one
 * thread per call; those of linear layers with large weights may be panels.h's instead. Our own
 * kernel computes f64, and f32 if oneDNN is missing or GPIPE_GEMM=plain is set. Every caller cuts
 * its work by shape only, so the bits depend on the machine and not on the number of threads. A
 * product with beta = 1 accumulates in place: the one way to accumulate everywhere. */
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

/* Block the calling thread's signals during products that follow each other within milliseconds. On
 * the script's thread each product would otherwise make two system calls to block them; these calls
 * make two for all of them. They nest. Our own threads never get signals: there both calls do
 * nothing. */
void gp_gemm_hold(void);
void gp_gemm_release(void);

#endif
