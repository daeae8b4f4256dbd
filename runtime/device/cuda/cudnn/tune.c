/* device/cuda/cudnn/tune.c - see tune.h.
 *
 * The operands are zeros in memory of our own, so that the caller's data stay untouched. Values
 * matter for power only: with zeros all engines run a little faster alike. Nothing is timed while
 * the stream is captured: plans are made when a pipeline is bound, before its first step. */
#include "device/cuda/cudnn/tune.h"

#include "device/cuda/cudnn/choices.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 2, RUNS = 5 };

/* How much faster than all before it an engine has to be, so that engines that take the same time
 * keep the library's order. */
static const float MARGIN = 0.97f;

bool gp_cudnn_tunes(const gp_cudnn_request *request) {
  const char *asked = getenv("GPIPE_CONVOLUTION");
  return request->n_values > 0 && asked && strcmp(asked, "timed") == 0;
}

/* ---- the kind of work ---------------------------------------------------------------------- */

/* Write what a choice depends on: the GPU's kind, its multiprocessors, the library's version, and
 * the key. False if that does not fit. */
static bool write_kind(const gp_gpu *gpu, const gp_cudnn_library *library, const gp_cudnn_key *key,
                       char kind[GP_CUDNN_KIND]) {
  int last = GP_CUDNN_KEY - 1;
  int n = snprintf(kind, GP_CUDNN_KIND, "%.60s %d %zu", gpu->info.name, (int)gpu->info.sm_count,
                   library->cudnnGetVersion());
  for (char *at = kind; *at && at - kind < 60; at++)
    if (!isalnum((unsigned char)*at) && *at != ' ') *at = '-';
  while (last > 0 && key->field[last] == 0) last--;
  for (int i = 0; i <= last && n < GP_CUDNN_KIND; i++)
    n += snprintf(kind + n, (size_t)(GP_CUDNN_KIND - n), " %" PRId64, key->field[i]);
  return n < GP_CUDNN_KIND;
}

/* ---- the clock ----------------------------------------------------------------------------- */

typedef struct bench {
  gp_gpu *gpu;
  cudnnHandle_t handle;
  const gp_cudnn_request *request;
  gp_cudnn_operand operands[GP_CUDNN_OPERANDS];
  void *memory[GP_CUDNN_OPERANDS];
  cudaEvent_t from, to;
} bench;

/* Memory of zeros for each operand. */
static cudaError_t open_bench(bench *b) {
  cudaError_t e = cudaEventCreate(&b->from);
  if (e == cudaSuccess) e = cudaEventCreate(&b->to);
  for (int i = 0; i < b->request->n_values && e == cudaSuccess; i++) {
    const gp_cudnn_value *v = &b->request->values[i];
    e = cudaMalloc(&b->memory[i], v->bytes);
    if (e == cudaSuccess) e = cudaMemsetAsync(b->memory[i], 0, v->bytes, gp_gpu_stream(b->gpu));
    b->operands[i] = (gp_cudnn_operand){v->id, b->memory[i]};
  }
  return e;
}

static void close_bench(bench *b) {
  for (int i = 0; i < b->request->n_values; i++) (void)cudaFree(b->memory[i]);
  if (b->from) (void)cudaEventDestroy(b->from);
  if (b->to) (void)cudaEventDestroy(b->to);
}

/* Returns the milliseconds of some runs; infinite if the engine does not run. */
static float time_runs(const bench *b, gp_cudnn_plan *plan, void *workspace) {
  cudaStream_t stream = gp_gpu_stream(b->gpu);
  float milliseconds = INFINITY;
  for (int i = 0; i < WARM_UP + RUNS; i++) {
    if (i == WARM_UP && cudaEventRecord(b->from, stream) != cudaSuccess) return INFINITY;
    if (gp_cudnn_plan_run(plan, b->handle, b->operands, b->request->n_values, workspace))
      return INFINITY;
  }
  if (cudaEventRecord(b->to, stream) != cudaSuccess) return INFINITY;
  if (cudaEventSynchronize(b->to) != cudaSuccess) return INFINITY;
  if (cudaEventElapsedTime(&milliseconds, b->from, b->to) != cudaSuccess) return INFINITY;
  return milliseconds;
}

static float time_engine(const bench *b, gp_cudnn_plan *plan) {
  void *workspace = NULL;
  if (plan->workspace > 0 && cudaMalloc(&workspace, plan->workspace) != cudaSuccess)
    return INFINITY;
  const float time = time_runs(b, plan, workspace);
  (void)cudaFree(workspace);
  return time;
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* Time all engines; returns how many ran. The plan is left with none of them. Errors: the GPU is
 * lost. */
static gp_status time_all(const bench *b, gp_cudnn_plan *plan, gp_cudnn_engine *best, int *ran) {
  float least = INFINITY;
  *ran = 0;
  do {
    const float time = time_engine(b, plan);
    GP_GPU_TRY(gp_gpu_refused(b->gpu, "timing an engine of cuDNN"));
    if (!isfinite(time)) continue;
    ++*ran;
    if (time < least * MARGIN) least = time, *best = plan->engine;
  } while (gp_cudnn_plan_other(plan));
  return GP_OK;
}

/* Choose by the clock, and keep the choice. If nothing can be timed, take the library's first. */
static gp_status choose(bench *b, gp_cudnn_plan *plan, const char *kind, char judge[80]) {
  gp_cudnn_engine best = {0};
  int ran = 0;
  gp_status status = GP_OK;
  snprintf(judge, 80, "the library's first: none could be timed");
  if (open_bench(b) == cudaSuccess) {
    status = time_all(b, plan, &best, &ran);
    if (status == GP_OK && ran > 0) gp_cudnn_choices_keep(kind, &best);
    if (status == GP_OK) (void)gp_cudnn_plan_from(plan, best.number);
    if (ran > 0) snprintf(judge, 80, "the fastest of %d", ran);
  }
  close_bench(b);
  return status == GP_OK ? gp_gpu_refused(b->gpu, "timing an engine of cuDNN") : status;
}

gp_status gp_cudnn_tune(gp_gpu *gpu, cudnnHandle_t handle, const gp_cudnn_request *request,
                        gp_cudnn_plan *plan, char judge[80]) {
  char kind[GP_CUDNN_KIND];
  gp_cudnn_engine chosen;
  bench b = {.gpu = gpu, .handle = handle, .request = request};
  if (!write_kind(gpu, plan->graph.library, &request->key, kind)) return GP_OK;
  if (!gp_cudnn_choices_find(kind, &chosen))
    return gpu->capturing ? GP_OK : choose(&b, plan, kind, judge);
  snprintf(judge, 80, "the one that was timed before");
  if (gp_cudnn_plan_from(plan, chosen.number) && plan->engine.index == chosen.index) return GP_OK;
  snprintf(judge, 80, "the library's first: it has another one where the file names it");
  (void)gp_cudnn_plan_from(plan, 0);
  return GP_OK;
}
