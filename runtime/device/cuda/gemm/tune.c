/* device/cuda/gemm/tune.c - choose an algorithm by the clock instead of by the library's guess.
 *
 * Off unless GPIPE_GEMM_TUNE=1: which algorithm wins can differ from run to run, and with it the bits.
 * The operands are zeros of its own, so that nothing of the caller's is touched. Sizes count here, values
 * do not, but for power: zeros run a little faster, all candidates alike. */
#include "device/cuda/gemm/plan.h"

#include <math.h>

enum { WARM_UP = 2, RUNS = 5 };

typedef struct bench {
  gp_gemm gemm; /* with operands of its own */
  cudaEvent_t from, to;
} bench;

/* ---- operands ------------------------------------------------------------------------------ */

/* Bytes of a stack of matrices, the last one without the distance to a next. */
static size_t stack_bytes(gp_dtype dtype, int64_t rows, int64_t ld, int64_t batch, int64_t stride) {
  return (size_t)(rows * ld + (batch - 1) * stride) * gp_gemm_element(dtype);
}

static cudaError_t take(void **memory, size_t bytes, cudaStream_t stream) {
  cudaError_t e = cudaMalloc(memory, bytes);
  return e == cudaSuccess ? cudaMemsetAsync(*memory, 0, bytes, stream) : e;
}

static cudaError_t open_bench(const gp_gemm *g, cudaStream_t stream, bench *b) {
  *b = (bench){.gemm = *g};
  void *memory[4] = {NULL, NULL, NULL, NULL};
  const size_t bytes[] = {
      stack_bytes(g->type, g->transpose_a ? g->k : g->m, g->lda, g->batch, g->stride_a),
      stack_bytes(g->type, g->transpose_b ? g->n : g->k, g->ldb, g->batch, g->stride_b),
      stack_bytes(g->d_type, g->m, g->ldd, g->batch, g->stride_d),
      (size_t)g->n * gp_gemm_element(g->d_type)};
  cudaError_t e = cudaEventCreate(&b->from);
  if (e == cudaSuccess) e = cudaEventCreate(&b->to);
  for (int i = 0; i < 4 && e == cudaSuccess; i++) e = take(&memory[i], bytes[i], stream);
  b->gemm.a = memory[0], b->gemm.b = memory[1], b->gemm.d = memory[2], b->gemm.bias = memory[3];
  return e;
}

static void close_bench(bench *b) {
  const void *memory[] = {b->gemm.a, b->gemm.b, b->gemm.d, b->gemm.bias};
  for (int i = 0; i < 4; i++) cudaFree((void *)memory[i]);
  if (b->from) cudaEventDestroy(b->from);
  if (b->to) cudaEventDestroy(b->to);
}

/* ---- the clock ----------------------------------------------------------------------------- */

/* Milliseconds of some runs; infinite for an algorithm that does not run. */
static float time_plan(gp_gpu *gpu, const gp_gemm_tools *tools, const bench *b,
                       const gp_gemm_plan *plan) {
  cudaStream_t stream = gpu->streams[GP_STREAM_COMPUTE];
  float milliseconds = INFINITY;
  for (int i = 0; i < WARM_UP + RUNS; i++) {
    if (i == WARM_UP && cudaEventRecord(b->from, stream) != cudaSuccess) return INFINITY;
    if (gp_gemm_plan_run(gpu, tools, &b->gemm, plan) != GP_OK) return INFINITY;
  }
  if (cudaEventRecord(b->to, stream) != cudaSuccess) return INFINITY;
  if (cudaEventSynchronize(b->to) != cudaSuccess) return INFINITY;
  if (cudaEventElapsedTime(&milliseconds, b->from, b->to) != cudaSuccess) return INFINITY;
  return milliseconds;
}

gp_status gp_gemm_plan_tune(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gemm *gemm,
                            const cublasLtMatmulHeuristicResult_t *found, int count,
                            gp_gemm_plan *plan) {
  bench b;
  float best = INFINITY;
  cudaError_t opened = open_bench(gemm, gpu->streams[GP_STREAM_COMPUTE], &b);
  gp_status status = gp_gpu_check(gpu, opened, "memory to time products in");
  for (int i = 0; i < count && status == GP_OK; i++) {
    gp_gemm_plan candidate = *plan;
    candidate.algorithm = found[i].algo;
    float time =
        found[i].state == CUBLAS_STATUS_SUCCESS ? time_plan(gpu, tools, &b, &candidate) : INFINITY;
    if (time < best) best = time, plan->algorithm = found[i].algo;
  }
  close_bench(&b);
  return status;
}
