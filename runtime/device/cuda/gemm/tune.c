/* device/cuda/gemm/tune.c - order algorithms by measured time instead of by the library's guess.
 *
 * Off unless GPIPE_GEMM_TUNE=1: the fastest algorithm can differ from run to run, and with it the
 * bits; so the choice is kept in a file (choices.h), and the next process takes it without
 * measuring.
 *
 * The operands are zeros in memory of our own, so that the caller's data stays untouched. Only
 * sizes matter, values do not, except for power: with zeros all candidates run a little faster
 * alike. */
#include "device/cuda/gemm/plan.h"

#include <math.h>
#include <string.h>

enum { WARM_UP = 2, RUNS = 5, OPERANDS = 5 };

typedef struct bench {
  gp_gpu_gemm gemm; /* with operands of its own */
  cudaEvent_t from, to;
} bench;

/* ---- operands ------------------------------------------------------------------------------ */

/* Bytes of a stack of matrices; the last matrix does not include the distance to a next one. */
static size_t stack_bytes(gp_dtype dtype, int64_t rows, int64_t ld, int64_t batch, int64_t stride) {
  return (size_t)(rows * ld + (batch - 1) * stride) * gp_gemm_element(dtype);
}

/* Bytes that a separate pass would read once: D before GELU, or the left operand, whose rows are
 * summed. */
static size_t pass_bytes(const gp_gpu_gemm *g) {
  return g->epilogue == GP_GEMM_ROW_SUMS ? stack_bytes(g->type, g->k, g->lda, 1, 0)
                                         : stack_bytes(g->d_type, g->m, g->ldd, 1, 0);
}

/* Room for that value, and for row sums. */
static size_t aux_bytes(const gp_gpu_gemm *g) {
  const size_t sums = (size_t)g->m * gp_gemm_element(g->d_type);
  return g->epilogue == GP_GEMM_PLAIN ? 0 : pass_bytes(g) + sums;
}

static cudaError_t take(void **memory, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  cudaError_t e = cudaMalloc(memory, bytes);
  return e == cudaSuccess ? cudaMemsetAsync(*memory, 0, bytes, stream) : e;
}

static cudaError_t open_bench(const gp_gpu_gemm *g, cudaStream_t stream, bench *b) {
  *b = (bench){.gemm = *g};
  void *memory[OPERANDS] = {NULL};
  const size_t bytes[] = {
      stack_bytes(g->type, g->transpose_a ? g->k : g->m, g->lda, g->batch, g->stride_a),
      stack_bytes(g->type, g->transpose_b ? g->n : g->k, g->ldb, g->batch, g->stride_b),
      stack_bytes(g->d_type, g->m, g->ldd, g->batch, g->stride_d),
      (size_t)g->n * gp_gemm_element(g->d_type), aux_bytes(g)};
  cudaError_t e = cudaEventCreate(&b->from);
  if (e == cudaSuccess) e = cudaEventCreate(&b->to);
  for (int i = 0; i < OPERANDS && e == cudaSuccess; i++) e = take(&memory[i], bytes[i], stream);
  b->gemm.a = memory[0], b->gemm.b = memory[1], b->gemm.d = memory[2], b->gemm.bias = memory[3];
  b->gemm.aux = memory[4], b->gemm.c = NULL;
  return e;
}

static void close_bench(bench *b) {
  const void *memory[OPERANDS] = {b->gemm.a, b->gemm.b, b->gemm.d, b->gemm.bias, b->gemm.aux};
  for (int i = 0; i < OPERANDS; i++) cudaFree((void *)memory[i]);
  if (b->from) cudaEventDestroy(b->from);
  if (b->to) cudaEventDestroy(b->to);
}

/* ---- the clock ----------------------------------------------------------------------------- */

/* The work that is enqueued again and again. */
typedef struct timed {
  gp_gpu *gpu;
  const gp_gemm_tools *tools;
  const bench *bench;
  const gp_gemm_plan *plan;
  const cublasLtMatmulAlgo_t *algorithm; /* NULL: the pass over memory that an epilogue saves */
} timed;

/* Enqueue one run. The separate pass is a copy, which reads and writes as much as GELU alone; the
 * slope of GELU would read another value, and row sums would write nothing. */
static bool enqueue(const timed *t) {
  const gp_gpu_gemm *g = &t->bench->gemm;
  if (t->algorithm)
    return gp_gemm_plan_try(t->gpu, t->tools, g, t->plan, t->algorithm) == CUBLAS_STATUS_SUCCESS;
  const bool sums = g->epilogue == GP_GEMM_ROW_SUMS, slope = g->epilogue == GP_GEMM_GELU_DX;
  const size_t bytes = sums ? pass_bytes(g) / 2 : pass_bytes(g);
  cudaStream_t stream = t->gpu->streams[GP_STREAM_COMPUTE];
  void *to = sums ? (char *)g->aux + bytes : g->d;
  cudaError_t e = cudaMemcpyAsync(to, g->aux, bytes, cudaMemcpyDeviceToDevice, stream);
  if (slope && e == cudaSuccess)
    e = cudaMemcpyAsync(to, g->aux, bytes / 2, cudaMemcpyDeviceToDevice, stream);
  return e == cudaSuccess;
}

/* The milliseconds of some runs; infinite if the algorithm does not run. */
static float time_runs(const timed *t) {
  cudaStream_t stream = t->gpu->streams[GP_STREAM_COMPUTE];
  float milliseconds = INFINITY;
  for (int i = 0; i < WARM_UP + RUNS; i++) {
    if (i == WARM_UP && cudaEventRecord(t->bench->from, stream) != cudaSuccess) return INFINITY;
    if (!enqueue(t)) return INFINITY;
  }
  gp_gpu_gave(t->gpu, GP_GPU_OTHER);
  if (cudaEventRecord(t->bench->to, stream) != cudaSuccess) return INFINITY;
  if (cudaEventSynchronize(t->bench->to) != cudaSuccess) return INFINITY;
  if (cudaEventElapsedTime(&milliseconds, t->bench->from, t->bench->to) != cudaSuccess)
    return INFINITY;
  return milliseconds;
}

/* Time the same product without its epilogue, plus the pass that the epilogue saves. */
static gp_status time_apart(const timed *fused, float *milliseconds) {
  bench b = *fused->bench;
  gp_gemm_plan plan;
  timed pass = *fused, run = *fused;
  b.gemm.epilogue = GP_GEMM_PLAIN;
  GP_GPU_TRY(gp_gemm_plan_build(fused->gpu, fused->tools, &b.gemm, &plan));
  run.bench = &b, run.plan = &plan, run.algorithm = &plan.candidates[plan.at];
  pass.algorithm = NULL;
  *milliseconds = plan.count > 0 ? time_runs(&run) + time_runs(&pass) : INFINITY;
  gp_gemm_plan_free(&plan);
  return GP_OK;
}

/* Insert by time; candidates that take the same time keep the library's order. */
static void insert(gp_gemm_plan *plan, float *times, int at, float time) {
  const cublasLtMatmulAlgo_t algorithm = plan->candidates[at];
  for (; at > 0 && time < times[at - 1]; at--)
    times[at] = times[at - 1], plan->candidates[at] = plan->candidates[at - 1];
  times[at] = time, plan->candidates[at] = algorithm;
}

/* Sort the candidates; returns the milliseconds of the fastest. */
static float sort(const timed *t, gp_gemm_plan *plan) {
  float times[GP_GEMM_CANDIDATES];
  for (int i = 0; i < plan->count; i++) {
    timed run = *t;
    run.algorithm = &plan->candidates[i];
    insert(plan, times, i, time_runs(&run));
  }
  return times[0];
}

/* ---- choices ------------------------------------------------------------------------------- */

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == GP_GEMM_CHOICE * sizeof(uint64_t),
               "a choice holds an algorithm");

static gp_gemm_choice choice_of(const gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  const gp_gemm_kind kind = gp_gemm_kind_of(gpu, gemm);
  gp_gemm_choice choice = {.algorithm = {0}};
  memcpy(choice.kind, kind.field, sizeof choice.kind);
  return choice;
}

static void drop_all(gp_gemm_plan *plan) { plan->count = 0, plan->refused_at = "the clock"; }

/* Put the algorithm first, if the library still accepts it. */
static bool take_algorithm(const gp_gemm_tools *tools, const cublasLtMatmulAlgo_t *algorithm,
                           gp_gemm_plan *plan) {
  cublasLtMatmulHeuristicResult_t result;
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(
      tools->handle, plan->product, plan->a, plan->b, plan->d, plan->d, algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > plan->workspace_bytes) return false;
  const int most = plan->count < GP_GEMM_CANDIDATES ? plan->count : GP_GEMM_CANDIDATES - 1;
  memmove(plan->candidates + 1, plan->candidates, (size_t)most * sizeof *plan->candidates);
  plan->candidates[0] = *algorithm, plan->count = most + 1;
  return true;
}

static bool take_choice(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                        gp_gemm_plan *plan) {
  static const gp_gemm_choice none = {.algorithm = {0}};
  gp_gemm_choice choice = choice_of(gpu, gemm);
  cublasLtMatmulAlgo_t algorithm;
  if (!tools->choices || !gp_gemm_choices_find(tools->choices, &choice)) return false;
  memcpy(&algorithm, choice.algorithm, sizeof algorithm);
  plan->judge = GP_GEMM_FILE;
  if (memcmp(choice.algorithm, none.algorithm, sizeof none.algorithm) != 0)
    return take_algorithm(tools, &algorithm, plan);
  if (gemm->epilogue != GP_GEMM_PLAIN) drop_all(plan);
  return gemm->epilogue != GP_GEMM_PLAIN;
}

static void keep_choice(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                        const gp_gemm_plan *plan) {
  gp_gemm_choice choice = choice_of(gpu, gemm);
  if (!tools->choices) return;
  if (plan->count > 0) memcpy(choice.algorithm, &plan->candidates[0], sizeof choice.algorithm);
  gp_gemm_choices_add(tools->choices, &choice);
}

/* ---- tuning -------------------------------------------------------------------------------- */

gp_status gp_gemm_plan_tune(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                            gp_gemm_plan *plan) {
  bench b;
  float best = INFINITY, apart = INFINITY;
  gp_status status = GP_OK;
  const timed t = {gpu, tools, &b, plan, NULL};
  if (take_choice(gpu, tools, gemm, plan)) return GP_OK;
  if (open_bench(gemm, gpu->streams[GP_STREAM_COMPUTE], &b) == cudaSuccess) {
    best = sort(&t, plan);
    plan->judge = GP_GEMM_CLOCK;
    if (gemm->epilogue != GP_GEMM_PLAIN) status = time_apart(&t, &apart);
  }
  close_bench(&b);
  if (status == GP_OK) status = gp_gemm_alive(gpu);
  if (status != GP_OK) return status;
  if (apart < best) drop_all(plan);
  if (isfinite(best) || isfinite(apart)) keep_choice(gpu, tools, gemm, plan);
  return GP_OK;
}
