/* device/cpu/gemm.c - matrix products: checks, the cases without a product, the choice of kernel.
 *
 * The cases k = 0 and alpha = 0 are handled here, so that their result does not depend on the
 * library in use: C = beta * C, and zeros if beta = 0, whatever C held before. */
#include "device/cpu/gemm.h"

#include "device/cpu/gemm_library.h"
#include "device/cpu/gemm_plain.h"

static gp_status check_stride(const char *name, int64_t stride, int64_t width) {
  if (stride >= width && stride > 0) return GP_OK;
  return gp_fail(GP_EINVAL, "gemm: %s is %lld, expected at least %lld", name, (long long)stride,
                 (long long)(width > 1 ? width : 1));
}

static gp_status check(const gp_gemm *g) {
  if (g->m < 0 || g->n < 0 || g->k < 0)
    return gp_fail(GP_EINVAL, "gemm: sizes are %lldx%lldx%lld, expected none below 0",
                   (long long)g->m, (long long)g->n, (long long)g->k);
  GP_TRY(check_stride("lda", g->lda, g->transpose_a ? g->m : g->k));
  GP_TRY(check_stride("ldb", g->ldb, g->transpose_b ? g->k : g->n));
  return check_stride("ldc", g->ldc, g->n);
}

/* C *= beta. If beta is 0, C is set to zero, even where it holds NaN. */
#define SCALE(name, T)                                                                             \
  static void name(const gp_gemm *g, T *c) {                                                       \
    T beta = (T)g->beta;                                                                           \
    if (g->beta == 1) return;                                                                      \
    for (int64_t i = 0; i < g->m; i++)                                                             \
      for (int64_t j = 0; j < g->n; j++)                                                           \
        c[i * g->ldc + j] = g->beta == 0 ? 0 : beta * c[i * g->ldc + j];                           \
  }
SCALE(scale_f32, float)
SCALE(scale_f64, double)

/* Is there anything to add to beta * C? */
static bool has_product(const gp_gemm *g) {
  return g->m > 0 && g->n > 0 && g->k > 0 && g->alpha != 0;
}

gp_status gp_gemm_f32(const gp_gemm *g, const float *a, const float *b, float *c) {
  bool usable = false;
  GP_TRY(check(g));
  if (has_product(g)) GP_TRY(gp_gemm_library_prepare(&usable));
  if (usable) return gp_gemm_library_run(g, a, b, c);
  scale_f32(g, c);
  if (has_product(g)) gp_gemm_plain_f32(g, a, b, c);
  return GP_OK;
}

gp_status gp_gemm_f64(const gp_gemm *g, const double *a, const double *b, double *c) {
  GP_TRY(check(g));
  scale_f64(g, c);
  if (has_product(g)) gp_gemm_plain_f64(g, a, b, c);
  return GP_OK;
}
