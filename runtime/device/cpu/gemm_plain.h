/* device/cpu/gemm_plain.h - our own matrix product: for f64, and for f32 without oneDNN. */
#ifndef GP_DEVICE_CPU_GEMM_PLAIN_H
#define GP_DEVICE_CPU_GEMM_PLAIN_H

#include "device/cpu/gemm.h"

/* C += alpha * op(A) * op(B), with checked arguments: beta has been applied. Allocates nothing;
 * uses up to 256 KiB of stack. Every element is summed over k in ascending order in blocks of 256,
 * whatever m and n are: cutting C in pieces changes no bit. */
void gp_gemm_plain_f32(const gp_gemm *g, const float *a, const float *b, float *c);
void gp_gemm_plain_f64(const gp_gemm *g, const double *a, const double *b, double *c);

#endif
