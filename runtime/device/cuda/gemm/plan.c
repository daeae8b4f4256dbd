/* device/cuda/gemm/plan.c - see plan.h.
 *
 * A refusal of the library never ends a training: there is always another way, down to our own
 * kernel (own.cu). The way is decided when a product is prepared, by its shape alone. If a run is
 * refused all the same, the plan takes the next way and keeps it.
 *
 * Reduction schemes: sums over parts of K go through the workspace in the type of the computation,
 * never by atomics into D. */
#include "device/cuda/gemm/plan.h"

#include <stdio.h>

#include "device/cuda/gemm/own.h"
#include "device/cuda/table.h"

/* ---- names and errors ---------------------------------------------------------------------- */

static const char *type_name(gp_dtype dtype) {
#define NAME(id, text, bytes, is_float) text,
  static const char *const names[] = {GP_DTYPE_LIST(NAME)};
#undef NAME
  return names[dtype];
}

void gp_gemm_name(const gp_gpu_gemm *g, char text[GP_GEMM_NAME]) {
  static const char *const stored[] = {"", ", the left one stored transposed",
                                       ", the right one stored transposed",
                                       ", both stored transposed"};
  static const char *const finish[] = {"", ", with GELU", ", with the slope of GELU",
                                       ", with sums of rows"};
  char many[32] = "";
  if (g->batch > 1) snprintf(many, sizeof many, "%lld times ", (long long)g->batch);
  snprintf(text, GP_GEMM_NAME, "%s%s %lldx%lld by %lldx%lld%s%s%s, to %s", many, type_name(g->type),
           (long long)g->m, (long long)g->k, (long long)g->k, (long long)g->n,
           stored[g->transpose_a + 2 * g->transpose_b], g->biased ? ", with bias" : "",
           finish[g->epilogue], type_name(g->d_type));
}

gp_status gp_gemm_refuse(const gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  char name[GP_GEMM_NAME];
  gp_gemm_name(gemm, name);
  return gp_gpu_fail(GP_EUNSUPPORTED, "cuda:%d: a product of %s: what follows it is done apart",
                     gpu->spec.ordinal, name);
}

/* Ask the GPU whether it is lost: the library has its own copy of the CUDA runtime, whose last
 * error we cannot see. While a stream is captured, only the state of the capture may be asked
 * for. Returns GP_OK if only the library refused, which leaves no CUDA error behind; else the
 * driver's error, or that a capture is invalid. */
static gp_status check_alive(gp_gpu *gpu) {
  cudaStream_t stream = gp_gpu_stream(gpu);
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t last = cudaGetLastError();
  const cudaError_t now =
      gpu->capturing ? cudaStreamIsCapturing(stream, &capture) : cudaStreamQuery(stream);
  (void)cudaGetLastError();
  if (gp_cuda_is_sticky(last)) return gp_gpu_check(gpu, last, "a product");
  if (gp_cuda_is_sticky(now)) return gp_gpu_check(gpu, now, "a product");
  return capture == cudaStreamCaptureStatusInvalidated
             ? gp_gpu_check(gpu, cudaErrorStreamCaptureInvalidated, "a product")
             : GP_OK;
}

/* ---- algorithms ---------------------------------------------------------------------------- */

static void note_refusal(gp_gemm_plan *plan, const char *at, cublasStatus_t status) {
  if (!plan->refused_at) plan->refused_at = at, plan->refusal = status;
}

static cublasStatus_t make_preference(const gp_gemm_plan *plan,
                                      cublasLtMatmulPreference_t *preference) {
  static const cublasLtMatmulPreferenceAttributes_t operands[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                 bytes = (uint32_t)plan->alignment;
  cublasStatus_t s = cublasLtMatmulPreferenceCreate(preference);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  s = cublasLtMatmulPreferenceSetAttribute(*preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                           &schemes, sizeof schemes);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = cublasLtMatmulPreferenceSetAttribute(*preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &plan->workspace_bytes, sizeof plan->workspace_bytes);
  for (int i = 0; i < 4 && s == CUBLAS_STATUS_SUCCESS; i++)
    s = cublasLtMatmulPreferenceSetAttribute(*preference, operands[i], &bytes, sizeof bytes);
  return s;
}

/* Find candidates, in the library's order of expected speed. */
static cublasStatus_t find(const gp_gemm_tools *tools, gp_gemm_plan *plan) {
  cublasLtMatmulHeuristicResult_t found[GP_GEMM_CANDIDATES];
  cublasLtMatmulPreference_t preference = NULL;
  int count = 0;
  cublasStatus_t s = make_preference(plan, &preference);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = cublasLtMatmulAlgoGetHeuristic(tools->handle, plan->product, plan->a, plan->b, plan->d,
                                       plan->d, preference, GP_GEMM_CANDIDATES, found, &count);
  if (preference) cublasLtMatmulPreferenceDestroy(preference);
  plan->count = plan->at = 0;
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  for (int i = 0; i < count; i++)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) plan->candidates[plan->count++] = found[i].algo;
  return plan->count > 0 ? s : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Ask for algorithms with the plan's workspace, then with smaller and smaller ones, last with
 * none. */
static void ask(const gp_gemm_tools *tools, gp_gemm_plan *plan) {
  enum { SMALL = 1 << 22, SMALLER = 8 };
  for (;;) {
    const cublasStatus_t status = find(tools, plan);
    if (status == CUBLAS_STATUS_SUCCESS) return;
    note_refusal(plan, "cublasLtMatmulAlgoGetHeuristic", status);
    if (plan->workspace_bytes == 0) return;
    plan->workspace_bytes = plan->workspace_bytes > SMALL ? plan->workspace_bytes / SMALLER : 0;
  }
}

/* ---- ways ---------------------------------------------------------------------------------- */

/* Choose a way without the library. */
static void give_up(gp_gemm_plan *plan, const gp_gpu_gemm *g) {
  gp_gemm_plan_free(plan);
  plan->way = g->epilogue != GP_GEMM_PLAIN || g->biased ? GP_GEMM_APART : GP_GEMM_OWN;
}

/* Say why the library is not even asked; NULL if it is. */
static const char *find_obstacle(const gp_gemm_tools *tools, const gp_gpu_gemm *g) {
  if (!tools->handle) return "cublasLtCreate";
  if (g->batch > INT32_MAX) return "a stack that is too high";
  return gp_gemm_epilogue_fits(tools, g) ? NULL : "an epilogue that is left out here";
}

static void settle(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *g,
                   gp_gemm_plan *plan) {
  const char *obstacle = find_obstacle(tools, g);
  if (obstacle) {
    note_refusal(plan, obstacle, tools->refusal);
    return;
  }
  const cublasStatus_t made = gp_gemm_describe_product(gpu, g, plan);
  if (made == CUBLAS_STATUS_SUCCESS)
    ask(tools, plan);
  else
    note_refusal(plan, "its description", made);
}

gp_status gp_gemm_plan_build(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                             gp_gemm_plan *plan) {
  *plan = (gp_gemm_plan){.alignment = gp_gemm_alignment(gemm),
                         .workspace_bytes = tools->workspace_bytes};
  settle(gpu, tools, gemm, plan);
  gp_status status = GP_OK;
  if (plan->refusal != CUBLAS_STATUS_SUCCESS) status = check_alive(gpu);
  if (status != GP_OK)
    gp_gemm_plan_free(plan);
  else if (plan->count == 0)
    give_up(plan, gemm);
  return status;
}

void gp_gemm_plan_free(gp_gemm_plan *plan) {
  if (plan->d) cublasLtMatrixLayoutDestroy(plan->d);
  if (plan->b) cublasLtMatrixLayoutDestroy(plan->b);
  if (plan->a) cublasLtMatrixLayoutDestroy(plan->a);
  if (plan->product) cublasLtMatmulDescDestroy(plan->product);
  plan->product = NULL, plan->a = plan->b = plan->d = NULL, plan->count = 0;
}

/* ---- reports ------------------------------------------------------------------------------- */

void gp_gemm_plan_note(gp_gpu *gpu, const gp_gpu_gemm *gemm, const gp_gemm_plan *plan) {
  static const char *const paths[] = {[GP_GEMM_LIBRARY] = "cuBLASLt",
                                      [GP_GEMM_OWN] = "own kernel without tensor cores",
                                      [GP_GEMM_APART] = "cuBLASLt, then own kernels"};
  char name[GP_GEMM_NAME], why[GP_GEMM_NAME] = "";
  const bool library = plan->refusal != CUBLAS_STATUS_SUCCESS;
  gp_gemm_name(gemm, name);
  if (plan->refused_at)
    snprintf(why, sizeof why, "%s%s%s", plan->refused_at, library ? ": " : "",
             library ? cublasLtGetStatusName(plan->refusal) : "");
  gp_gpu_note_path(gpu, "product", name, paths[plan->way], why);
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* Try the plan's algorithm once. */
static cublasStatus_t try_once(const gp_gpu *gpu, const gp_gemm_tools *tools,
                               const gp_gpu_gemm *gemm, const gp_gemm_plan *plan) {
  static const float one = 1, zero = 0;
  static const double one_f64 = 1, zero_f64 = 0;
  const bool f64 = gemm->type == GP_F64;
  const void *alpha = f64 ? (const void *)&one_f64 : &one;
  const void *beta = f64 ? (const void *)&zero_f64 : &zero;
  const void *c = gemm->c ? gemm->c : gemm->d;
  cublasStatus_t s = gp_gemm_epilogue_point(gemm, plan->product);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  return cublasLtMatmul(tools->handle, plan->product, alpha, gemm->b, plan->a, gemm->a, plan->b,
                        gemm->accumulate ? alpha : beta, c, plan->d, gemm->d, plan->d,
                        &plan->candidates[plan->at], gpu->gemm_workspace, tools->workspace_bytes,
                        gp_gpu_stream(gpu));
}

/* After a refused run, take the next candidate. While a stream is captured the library cannot be
 * asked again: what is known decides. */
static void move_on(const gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                    gp_gemm_plan *plan) {
  if (++plan->at < plan->count) return;
  const bool can_ask = !gpu->capturing && plan->workspace_bytes > 0;
  plan->count = 0;
  if (can_ask) {
    plan->workspace_bytes = 0;
    ask(tools, plan);
  }
  if (plan->count == 0) give_up(plan, gemm);
}

gp_status gp_gemm_plan_run(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                           gp_gemm_plan *plan) {
  while (plan->way == GP_GEMM_LIBRARY) {
    const cublasStatus_t status = try_once(gpu, tools, gemm, plan);
    if (status == CUBLAS_STATUS_SUCCESS) return GP_OK;
    GP_GPU_TRY(check_alive(gpu));
    note_refusal(plan, "cublasLtMatmul", status);
    move_on(gpu, tools, gemm, plan);
    gp_gemm_plan_note(gpu, gemm, plan);
  }
  return plan->way == GP_GEMM_OWN ? gp_gemm_own(gpu, gemm) : gp_gemm_refuse(gpu, gemm);
}
