/* device/cuda/gemm/tune.c - choose an algorithm by the clock instead of by the library's guess.
 *
 * Off unless GPIPE_GEMM_TUNE=1: which algorithm wins can differ from run to run, and with it the
 * bits.
 * The operands are zeros of its own, so that nothing of the caller's is touched. Sizes count here,
 * values do not, but for power: zeros run a little faster, all candidates alike. */
#include "device/cuda/gemm/plan.h"

#include <math.h>

enum { WARM_UP = 2, RUNS = 5, OPERANDS = 5, ALIGNMENT = 16 };

typedef struct bench {
  gp_gpu_gemm gemm; /* with operands of its own */
  cudaEvent_t from, to;
} bench;

/* ---- operands ------------------------------------------------------------------------------ */

/* Bytes of a stack of matrices, the last one without the distance to a next. */
static size_t stack_bytes(gp_dtype dtype, int64_t rows, int64_t ld, int64_t batch, int64_t stride) {
  return (size_t)(rows * ld + (batch - 1) * stride) * gp_gemm_element(dtype);
}

/* What a pass of its own would read once: D before GELU, or the left operand, whose rows are
 * summed. */
static size_t pass_bytes(const gp_gpu_gemm *g) {
  return g->epilogue == GP_GEMM_ROW_SUMS ? stack_bytes(g->type, g->k, g->lda, 1, 0)
                                         : stack_bytes(g->d_type, g->m, g->ldd, 1, 0);
}

/* Room for that, and for sums. */
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

/* Something that is enqueued again and again. */
typedef struct timed {
  gp_gpu *gpu;
  const gp_gemm_tools *tools;
  const bench *bench;
  const gp_gemm_plan *plan; /* NULL: the pass over memory that an epilogue saves */
} timed;

/* A copy reads and writes as GELU alone does; its slope reads another value, sums of rows write
 * none. */
static gp_status enqueue(const timed *t) {
  const gp_gpu_gemm *g = &t->bench->gemm;
  if (t->plan) return gp_gemm_plan_run(t->gpu, t->tools, g, t->plan);
  const bool sums = g->epilogue == GP_GEMM_ROW_SUMS, slope = g->epilogue == GP_GEMM_GELU_DX;
  const size_t bytes = sums ? pass_bytes(g) / 2 : pass_bytes(g);
  cudaStream_t stream = t->gpu->streams[GP_STREAM_COMPUTE];
  void *to = sums ? (char *)g->aux + bytes : g->d;
  cudaError_t e = cudaMemcpyAsync(to, g->aux, bytes, cudaMemcpyDeviceToDevice, stream);
  if (slope && e == cudaSuccess)
    e = cudaMemcpyAsync(to, g->aux, bytes / 2, cudaMemcpyDeviceToDevice, stream);
  return gp_gpu_check(t->gpu, e, "a pass over memory");
}

/* Milliseconds of some runs; infinite for an algorithm that does not run. */
static float time_runs(const timed *t) {
  cudaStream_t stream = t->gpu->streams[GP_STREAM_COMPUTE];
  float milliseconds = INFINITY;
  for (int i = 0; i < WARM_UP + RUNS; i++) {
    if (i == WARM_UP && cudaEventRecord(t->bench->from, stream) != cudaSuccess) return INFINITY;
    if (enqueue(t) != GP_OK) return INFINITY;
  }
  if (cudaEventRecord(t->bench->to, stream) != cudaSuccess) return INFINITY;
  if (cudaEventSynchronize(t->bench->to) != cudaSuccess) return INFINITY;
  if (cudaEventElapsedTime(&milliseconds, t->bench->from, t->bench->to) != cudaSuccess)
    return INFINITY;
  return milliseconds;
}

/* The same product without its epilogue, and the pass that it saves. */
static gp_status time_apart(const timed *fused, float *milliseconds) {
  gp_gpu_gemm plain = fused->bench->gemm;
  gp_gemm_plan plan;
  timed pass = *fused;
  pass.plan = NULL;
  plain.epilogue = GP_GEMM_PLAIN;
  GP_GPU_TRY(gp_gemm_plan_build(fused->gpu, fused->tools, &plain, ALIGNMENT, &plan));
  *milliseconds = plan.milliseconds + time_runs(&pass);
  gp_gemm_plan_free(&plan);
  return GP_OK;
}

static void take_fastest(const timed *t, const cublasLtMatmulHeuristicResult_t *found, int count,
                         gp_gemm_plan *plan) {
  for (int i = 0; i < count; i++) {
    gp_gemm_plan candidate = *plan;
    timed run = *t;
    candidate.algorithm = found[i].algo;
    run.plan = &candidate;
    const float time = found[i].state == CUBLAS_STATUS_SUCCESS ? time_runs(&run) : INFINITY;
    if (time < plan->milliseconds) plan->milliseconds = time, plan->algorithm = found[i].algo;
  }
}

gp_status gp_gemm_plan_tune(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                            const cublasLtMatmulHeuristicResult_t *found, int count,
                            gp_gemm_plan *plan) {
  bench b;
  float apart = INFINITY;
  cudaError_t opened = open_bench(gemm, gpu->streams[GP_STREAM_COMPUTE], &b);
  gp_status status = gp_gpu_check(gpu, opened, "memory to time products in");
  const timed t = {gpu, tools, &b, plan};
  plan->milliseconds = INFINITY;
  if (status == GP_OK) take_fastest(&t, found, count, plan);
  if (status == GP_OK && gemm->epilogue != GP_GEMM_PLAIN) status = time_apart(&t, &apart);
  close_bench(&b);
  if (status == GP_OK && apart < plan->milliseconds) return gp_gemm_refuse(gpu, gemm);
  return status;
}
