/* device/cuda/gemm/plan.c - see plan.h.
 *
 * The library counts columns first. What lies in memory as a row-major D = A B is to it D^T = B^T
 * A^T by columns, so the operands trade places and nothing else changes; the bias, one value a
 * column of ours, is one a row of its D, as it wants it.
 *
 * Reduction schemes: sums over parts of K go through the workspace in the type of the computation,
 * never by atomics into D. */
#include "device/cuda/gemm/plan.h"

enum { CANDIDATES = 8 };

/* ---- types --------------------------------------------------------------------------------- */

static cudaDataType_t data_type(gp_dtype dtype) {
  switch (dtype) {
  case GP_F64: return CUDA_R_64F;
  case GP_BF16: return CUDA_R_16BF;
  case GP_F16: return CUDA_R_16F;
  default: return CUDA_R_32F;
  }
}

/* True f32 unless asked: TF32 keeps 10 bits of each factor. */
static cublasComputeType_t compute_type(const gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  if (gemm->type == GP_F64) return CUBLAS_COMPUTE_64F;
  if (gemm->type == GP_F32 && gpu->math == GP_GPU_TF32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

/* ---- errors -------------------------------------------------------------------------------- */

static const char *type_name(gp_dtype dtype) {
#define NAME(id, text, bytes, is_float) text,
  static const char *const names[] = {GP_DTYPE_LIST(NAME)};
#undef NAME
  return names[dtype];
}

size_t gp_gemm_element(gp_dtype dtype) {
#define BYTES(id, text, bytes, is_float) bytes,
  static const size_t sizes[] = {GP_DTYPE_LIST(BYTES)};
#undef BYTES
  return sizes[dtype];
}

/* "product of bf16 512x768 by 768x3072, the right one stored transposed, to f32: why" */
static gp_status fail(const gp_gpu *gpu, const gp_gpu_gemm *g, gp_status status, const char *why) {
  static const char *const stored[] = {"", ", the left one stored transposed",
                                       ", the right one stored transposed",
                                       ", both stored transposed"};
  static const char *const finish[] = {"", ", with GELU", ", with the slope of GELU",
                                       ", with sums of rows"};
  return gp_gpu_fail(
      status, "cuda:%d: %lld product(s) of %s %lldx%lld by %lldx%lld%s%s%s, to %s: %s",
      gpu->spec.ordinal, (long long)g->batch, type_name(g->type), (long long)g->m, (long long)g->k,
      (long long)g->k, (long long)g->n, stored[g->transpose_a + 2 * g->transpose_b],
      g->biased ? ", with bias" : "", finish[g->epilogue], type_name(g->d_type), why);
}

gp_status gp_gemm_refuse(const gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  return fail(gpu, gemm, GP_EUNSUPPORTED, "what follows it is done apart");
}

gp_status gp_gemm_check(gp_gpu *gpu, const gp_gpu_gemm *gemm, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return GP_OK;
  /* What the driver says is closer to the cause than what the library makes of it. */
  if (status == CUBLAS_STATUS_EXECUTION_FAILED || status == CUBLAS_STATUS_INTERNAL_ERROR)
    GP_GPU_TRY(gp_gpu_check(gpu, cudaPeekAtLastError(), "a product"));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    return fail(gpu, gemm, GP_EUNSUPPORTED, "cuBLASLt has no algorithm for it");
  gp_status code = status == CUBLAS_STATUS_ALLOC_FAILED ? GP_ENOMEM : GP_EDEVICE;
  return fail(gpu, gemm, code, cublasLtGetStatusString(status));
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
  if (gpu->spec.parts > 1)
    gp_gemm_set(&s, *product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sms, sizeof sms);
  return s == CUBLAS_STATUS_SUCCESS
             ? gp_gemm_epilogue_set(gemm, (int32_t)data_type(gemm->d_type), *product)
             : s;
}

/* A stack of row-major matrices, as the library sees it: `rows` are our columns. */
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

/* The right operand is the first one of the library. */
static cublasStatus_t make_layouts(const gp_gpu_gemm *g, gp_gemm_plan *plan) {
  const bool ta = g->transpose_a, tb = g->transpose_b;
  const stack b = {g->type, tb ? g->k : g->n, tb ? g->n : g->k, g->ldb, g->stride_b};
  const stack a = {g->type, ta ? g->m : g->k, ta ? g->k : g->m, g->lda, g->stride_a};
  const stack d = {g->d_type, g->n, g->m, g->ldd, g->stride_d};
  cublasStatus_t s = make_layout(g, b, &plan->a);
  if (s == CUBLAS_STATUS_SUCCESS) s = make_layout(g, a, &plan->b);
  return s == CUBLAS_STATUS_SUCCESS ? make_layout(g, d, &plan->d) : s;
}

/* ---- algorithms ---------------------------------------------------------------------------- */

static cublasStatus_t make_preference(const gp_gemm_tools *tools, int64_t alignment,
                                      cublasLtMatmulPreference_t *preference) {
  static const cublasLtMatmulPreferenceAttributes_t operands[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, bytes = (uint32_t)alignment;
  cublasStatus_t s = cublasLtMatmulPreferenceCreate(preference);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  s = cublasLtMatmulPreferenceSetAttribute(*preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                           &schemes, sizeof schemes);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = cublasLtMatmulPreferenceSetAttribute(*preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &tools->workspace_bytes,
                                             sizeof tools->workspace_bytes);
  for (int i = 0; i < 4 && s == CUBLAS_STATUS_SUCCESS; i++)
    s = cublasLtMatmulPreferenceSetAttribute(*preference, operands[i], &bytes, sizeof bytes);
  return s;
}

/* Candidates in the library's order of expected speed. */
static cublasStatus_t find(const gp_gemm_tools *tools, const gp_gemm_plan *plan, int64_t alignment,
                           cublasLtMatmulHeuristicResult_t found[CANDIDATES], int *count) {
  cublasLtMatmulPreference_t preference = NULL;
  cublasStatus_t s = make_preference(tools, alignment, &preference);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = cublasLtMatmulAlgoGetHeuristic(tools->handle, plan->product, plan->a, plan->b, plan->d,
                                       plan->d, preference, CANDIDATES, found, count);
  if (preference) cublasLtMatmulPreferenceDestroy(preference);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  return *count > 0 ? found[0].state : CUBLAS_STATUS_NOT_SUPPORTED;
}

static gp_status choose(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                        int64_t alignment, gp_gemm_plan *plan) {
  cublasLtMatmulHeuristicResult_t found[CANDIDATES];
  int count = 0;
  GP_GPU_TRY(gp_gemm_check(gpu, gemm, find(tools, plan, alignment, found, &count)));
  plan->algorithm = found[0].algo;
  return tools->tuning ? gp_gemm_plan_tune(gpu, tools, gemm, found, count, plan) : GP_OK;
}

/* ---- plans --------------------------------------------------------------------------------- */

gp_status gp_gemm_plan_build(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                             int64_t alignment, gp_gemm_plan *plan) {
  *plan = (gp_gemm_plan){.product = NULL};
  if (gemm->batch > INT32_MAX) return fail(gpu, gemm, GP_EUNSUPPORTED, "the stack is too high");
  if (!gp_gemm_epilogue_fits(tools, gemm)) return gp_gemm_refuse(gpu, gemm);
  cublasStatus_t made = make_product(gpu, gemm, &plan->product);
  if (made == CUBLAS_STATUS_SUCCESS) made = make_layouts(gemm, plan);
  gp_status status = gp_gemm_check(gpu, gemm, made);
  if (status == GP_OK) status = choose(gpu, tools, gemm, alignment, plan);
  if (status != GP_OK) gp_gemm_plan_free(plan);
  return status;
}

void gp_gemm_plan_free(gp_gemm_plan *plan) {
  if (plan->d) cublasLtMatrixLayoutDestroy(plan->d);
  if (plan->b) cublasLtMatrixLayoutDestroy(plan->b);
  if (plan->a) cublasLtMatrixLayoutDestroy(plan->a);
  if (plan->product) cublasLtMatmulDescDestroy(plan->product);
  *plan = (gp_gemm_plan){.product = NULL};
}

gp_status gp_gemm_plan_run(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                           const gp_gemm_plan *plan) {
  static const float one = 1, zero = 0;
  static const double one_f64 = 1, zero_f64 = 0;
  const bool f64 = gemm->type == GP_F64;
  const void *alpha = f64 ? (const void *)&one_f64 : &one;
  const void *beta = f64 ? (const void *)&zero_f64 : &zero;
  const void *c = gemm->c ? gemm->c : gemm->d;
  cublasStatus_t s = gp_gemm_epilogue_point(gemm, plan->product);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = cublasLtMatmul(tools->handle, plan->product, alpha, gemm->b, plan->a, gemm->a, plan->b,
                       gemm->accumulate ? alpha : beta, c, plan->d, gemm->d, plan->d,
                       &plan->algorithm, tools->workspace, tools->workspace_bytes,
                       gpu->streams[GP_STREAM_COMPUTE]);
  return gp_gemm_check(gpu, gemm, s);
}
