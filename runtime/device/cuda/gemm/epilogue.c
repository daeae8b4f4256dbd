/* device/cuda/gemm/epilogue.c - what a product does to its result while it writes it, and whether
 * it should.
 *
 * The library's GELU is the tanh form, in the precision of halves; for f32 and f64 our own
 * kernel is used. Before Hopper, a product with GELU was measured slower than the two separately
 * (llm.c), so only Hopper and later use it by default. GPIPE_GEMM_EPILOGUES lists the epilogues
 * that may be used: gelu, gelu_dx, row_sums; empty: none. The choice is fixed for a GPU, so that
 * the bits are. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/gemm/plan.h"

enum { HOPPER = 9, AUX_COLUMNS = 8 }; /* aux has a multiple of this number of columns */

/* ---- whether ------------------------------------------------------------------------------- */

static const char *const names[] = {"", "gelu", "gelu_dx", "row_sums"};

/* Is it a word of the list? */
static bool is_listed(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (; *list; list += strspn(list, ",")) {
    const size_t n = strcspn(list, ",");
    if (n == length && strncmp(list, name, n) == 0) return true;
    list += n;
  }
  return false;
}

unsigned gp_gemm_epilogues(const gp_gpu *gpu) {
  const char *asked = getenv("GPIPE_GEMM_EPILOGUES");
  const bool modern = gpu->info.major >= HOPPER;
  unsigned set = 1u << GP_GEMM_PLAIN;
  if (!asked && modern) set |= 1u << GP_GEMM_GELU | 1u << GP_GEMM_GELU_DX;
  if (!asked) set |= 1u << GP_GEMM_ROW_SUMS;
  for (int i = GP_GEMM_GELU; asked && i <= GP_GEMM_ROW_SUMS; i++)
    if (is_listed(asked, names[i])) set |= 1u << i;
  return set;
}

bool gp_gemm_epilogue_fits(const gp_gemm_tools *tools, const gp_gpu_gemm *g) {
  if (g->epilogue == GP_GEMM_PLAIN) return true;
  const bool half = g->type == GP_BF16 || g->type == GP_F16, sums = g->epilogue == GP_GEMM_ROW_SUMS;
  const bool types = half && g->d_type == (sums ? GP_F32 : g->type);
  const bool layout = sums || (g->ldd % AUX_COLUMNS == 0 && !g->accumulate);
  return tools->epilogues >> g->epilogue & 1 && types && layout && g->batch <= 1;
}

/* ---- how ----------------------------------------------------------------------------------- */

static cublasLtEpilogue_t epilogue_of(const gp_gpu_gemm *g) {
  switch (g->epilogue) {
  case GP_GEMM_GELU:
    if (g->biased) return g->keeps ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
    return g->keeps ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU;
  case GP_GEMM_GELU_DX: return CUBLASLT_EPILOGUE_DGELU;
  case GP_GEMM_ROW_SUMS: return CUBLASLT_EPILOGUE_BGRADB; /* our left operand is its right one */
  default: return g->biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

/* The address of the bias; row sums use the same slot. */
static const void *row_of(const gp_gpu_gemm *g) {
  return g->epilogue == GP_GEMM_ROW_SUMS ? g->aux : g->bias;
}

static bool has_row(const gp_gpu_gemm *g) { return g->biased || g->epilogue == GP_GEMM_ROW_SUMS; }

static bool has_aux(const gp_gpu_gemm *g) {
  return g->epilogue == GP_GEMM_GELU_DX || (g->epilogue == GP_GEMM_GELU && g->keeps);
}

cublasStatus_t gp_gemm_epilogue_point(const gp_gpu_gemm *g, cublasLtMatmulDesc_t product) {
  const void *row = row_of(g), *aux = g->aux;
  cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
  if (has_row(g)) gp_gemm_set(&s, product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &row, sizeof row);
  if (has_aux(g))
    gp_gemm_set(&s, product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
  return s;
}

/* Give the product some addresses, which the library wants when it is asked for algorithms, aligned
 * as those of the runs. */
static gp_gpu_gemm with_addresses(const gp_gpu_gemm *g) {
  gp_gpu_gemm made = *g;
  void *some = (void *)(uintptr_t)4096;
  if (!made.bias) made.bias = some;
  if (!made.aux) made.aux = some;
  return made;
}

cublasStatus_t gp_gemm_epilogue_set(const gp_gpu_gemm *g, int32_t row_type,
                                    cublasLtMatmulDesc_t product) {
  const cublasLtEpilogue_t epilogue = epilogue_of(g);
  const gp_gpu_gemm made = with_addresses(g);
  cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return s;
  gp_gemm_set(&s, product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  if (has_row(g))
    gp_gemm_set(&s, product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &row_type, sizeof row_type);
  if (has_aux(g))
    gp_gemm_set(&s, product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &g->ldd, sizeof g->ldd);
  return s == CUBLAS_STATUS_SUCCESS ? gp_gemm_epilogue_point(&made, product) : s;
}
