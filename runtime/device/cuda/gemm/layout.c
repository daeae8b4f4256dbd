/* device/cuda/gemm/layout.c - describes a product to the library.
 *
 * The library is column-major. A row-major D = A B is to it D^T = B^T A^T, so the operands change
 * places and nothing else changes. Our bias has one value per column, which is one per row of the
 * library's D, as it requires. */
#include "device/cuda/gemm/plan.h"

/* ---- types --------------------------------------------------------------------------------- */

static cudaDataType_t data_type(gp_dtype dtype) {
  switch (dtype) {
  case GP_F64: return CUDA_R_64F;
  case GP_BF16: return CUDA_R_16BF;
  case GP_F16: return CUDA_R_16F;
  default: return CUDA_R_32F;
  }
}

/* True f32 unless the script allows TF32, which keeps 10 bits of each factor. */
static cublasComputeType_t compute_type(const gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  if (gemm->type == GP_F64) return CUBLAS_COMPUTE_64F;
  if (gemm->type == GP_F32 && gpu->math == GP_GPU_TF32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

size_t gp_gemm_element(gp_dtype dtype) {
#define BYTES(id, text, bytes, is_float) bytes,
  static const size_t sizes[] = {GP_DTYPE_LIST(BYTES)};
#undef BYTES
  return sizes[dtype];
}

/* ---- descriptors --------------------------------------------------------------------------- */

void gp_gemm_set(cublasStatus_t *status, cublasLtMatmulDesc_t product,
                 cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes) {
  if (*status != CUBLAS_STATUS_SUCCESS) return;
  *status = cublasLtMatmulDescSetAttribute(product, attribute, value, bytes);
}

static cublasStatus_t make_product(const gp_gpu *gpu, const gp_gpu_gemm *gemm,
                                   cublasLtMatmulDesc_t *product) {
  const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
  const cublasOperation_t *first = &ops[gemm->transpose_b], *second = &ops[gemm->transpose_a];
  const int32_t sms = gpu->info.sm_count;
  cudaDataType_t scale = gemm->type == GP_F64 ? CUDA_R_64F : CUDA_R_32F;
  cublasStatus_t s = cublasLtMatmulDescCreate(product, compute_type(gpu, gemm), scale);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  gp_gemm_set(&s, *product, CUBLASLT_MATMUL_DESC_TRANSA, first, sizeof *first);
  gp_gemm_set(&s, *product, CUBLASLT_MATMUL_DESC_TRANSB, second, sizeof *second);
  /* a hint: if the library refuses it, it plans for the whole GPU */
  if (gpu->spec.parts > 1 && s == CUBLAS_STATUS_SUCCESS)
    (void)cublasLtMatmulDescSetAttribute(*product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sms,
                                         sizeof sms);
  return s == CUBLAS_STATUS_SUCCESS
             ? gp_gemm_epilogue_set(gemm, (int32_t)data_type(gemm->d_type), *product)
             : s;
}

/* A stack of row-major matrices as the library sees it: `rows` are our columns. */
typedef struct stack {
  gp_dtype dtype;
  int64_t rows, columns, ld, stride;
} stack;

static cublasStatus_t make_layout(const gp_gpu_gemm *gemm, stack s,
                                  cublasLtMatrixLayout_t *layout) {
  const int32_t batch = (int32_t)gemm->batch;
  cublasStatus_t status = cublasLtMatrixLayoutCreate(layout, data_type(s.dtype), (uint64_t)s.rows,
                                                     (uint64_t)s.columns, s.ld);
  if (status != CUBLAS_STATUS_SUCCESS || batch <= 1) return status;
  status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                            sizeof batch);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &s.stride, sizeof s.stride);
}

/* Make the layouts. Our right operand is the library's first one. */
static cublasStatus_t make_layouts(const gp_gpu_gemm *g, gp_gemm_plan *plan) {
  const bool ta = g->transpose_a, tb = g->transpose_b;
  const stack b = {g->type, tb ? g->k : g->n, tb ? g->n : g->k, g->ldb, g->stride_b};
  const stack a = {g->type, ta ? g->m : g->k, ta ? g->k : g->m, g->lda, g->stride_a};
  const stack d = {g->d_type, g->n, g->m, g->ldd, g->stride_d};
  cublasStatus_t s = make_layout(g, b, &plan->a);
  if (s == CUBLAS_STATUS_SUCCESS) s = make_layout(g, a, &plan->b);
  return s == CUBLAS_STATUS_SUCCESS ? make_layout(g, d, &plan->d) : s;
}

cublasStatus_t gp_gemm_describe_product(const gp_gpu *gpu, const gp_gpu_gemm *gemm,
                                        gp_gemm_plan *plan) {
  const cublasStatus_t status = make_product(gpu, gemm, &plan->product);
  return status == CUBLAS_STATUS_SUCCESS ? make_layouts(gemm, plan) : status;
}
