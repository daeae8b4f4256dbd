/* device/cuda/gemm/gemm.c - see gemm.h: the plans of the process, found by the kind of product.
 *
 * A plan stays until the process ends: a training run has some dozens of them, however many steps
 * and pipelines it makes, and asking the library again would slow the first step of each pipeline.
 * All logical devices of a GPU share plans; its parts with the same number of multiprocessors share
 * their own. Memory that runs write is never shared: the workspace belongs to a gp_gpu. */
#include "device/cuda/gemm/gemm.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/cuda/gemm/plan.h"
#include "device/cuda/table.h"

enum { BUCKETS = 256, FULL_ALIGNMENT = 16 };

/* Everything that an algorithm depends on, in whole words, so that kinds can be compared as
 * memory. */
enum { KIND_WORDS = 13 };

typedef struct kind {
  int64_t field[KIND_WORDS];
} kind;

typedef struct entry {
  int ordinal;
  kind kind;
  pthread_mutex_t lock; /* guards the plan: a run writes addresses, and may change its way */
  gp_gemm_plan plan;
  bool refused; /* the library refused when it was first asked */
  struct entry *next;
} entry;

/* The plans of the process. lock guards everything except the contents of plans. */
static struct {
  pthread_mutex_t lock;
  bool open[GP_CUDA_MOST];
  gp_gemm_tools tools[GP_CUDA_MOST]; /* per GPU; written once, before `open` */
  entry *bucket[BUCKETS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- keys ---------------------------------------------------------------------------------- */

int64_t gp_gemm_alignment(const gp_gpu_gemm *g) {
  uintptr_t bits = (uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->d | FULL_ALIGNMENT;
  if (g->biased) bits |= (uintptr_t)g->bias;
  bits |= (uintptr_t)g->c | (uintptr_t)g->aux;
  return (int64_t)(bits & (~bits + 1)); /* the lowest bit that is set */
}

/* The number of multiprocessors that algorithms are chosen for; 0: all of the GPU. */
static int64_t target_of(const gp_gpu *gpu) { return gpu->spec.parts > 1 ? gpu->info.sm_count : 0; }

/* The kind of a product, without the GPU's number. `accumulate` is not part of it: the library does
 * not ask for it. */
static kind kind_of(const gp_gpu *gpu, const gp_gpu_gemm *g) {
  const int64_t flags = (int64_t)g->transpose_a | (int64_t)g->transpose_b << 1 |
                        (int64_t)g->biased << 2 | (int64_t)g->keeps << 3 |
                        (int64_t)g->epilogue << 4 | (int64_t)g->type << 8 |
                        (int64_t)g->d_type << 16 | (int64_t)gpu->math << 24;
  return (kind){{flags, g->m, g->n, g->k, g->lda, g->ldb, g->ldd, g->batch, g->stride_a,
                 g->stride_b, g->stride_d, gp_gemm_alignment(g), target_of(gpu)}};
}

static size_t bucket_of(const kind *k) {
  uint64_t hash = GP_HASH_START;
  for (int i = 0; i < KIND_WORDS; i++) hash = gp_hash_word(hash, (uint64_t)k->field[i]);
  return (size_t)(hash >> 32) % BUCKETS;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* NVIDIA's own defaults, which the algorithms were chosen for. */
static size_t workspace_bytes(const gp_gpu *gpu) {
  return (size_t)(gpu->info.major >= 9 ? 32 : 4) << 20;
}

/* Open the tools of a GPU. If the library does not start, every product counts as refused. */
static void open_tools(const gp_gpu *gpu, gp_gemm_tools *tools) {
  tools->workspace_bytes = workspace_bytes(gpu);
  tools->epilogues = gp_gemm_epilogues(gpu);
  tools->refusal = cublasLtCreate(&tools->handle);
  if (tools->refusal != CUBLAS_STATUS_SUCCESS) tools->handle = NULL;
}

static gp_gemm_tools *tools_of(const gp_gpu *gpu) { return &known.tools[gpu->spec.ordinal]; }

/* Open the GPU's tools and the workspace of this logical device. The caller holds the lock. */
static gp_status open_gpu(gp_gpu *gpu) {
  gp_gemm_tools *tools = tools_of(gpu);
  if (!known.open[gpu->spec.ordinal]) open_tools(gpu, tools);
  known.open[gpu->spec.ordinal] = true;
  if (gpu->gemm_workspace) return GP_OK;
  return gp_gpu_check(gpu, cudaMalloc(&gpu->gemm_workspace, tools->workspace_bytes),
                      "workspace of matrix products");
}

void gp_gemm_close(gp_gpu *gpu) {
  if (gpu->gemm_workspace) cudaFree(gpu->gemm_workspace);
  gpu->gemm_workspace = NULL;
}

/* The version number 130100 means 13.1.0. */
void gp_gemm_describe(gp_gpu_library *library) {
  const size_t version = cublasLtGetVersion();
  snprintf(library->name, sizeof library->name, "cuBLASLt");
  snprintf(library->version, sizeof library->version, "%zu.%zu.%zu", version / 10000,
           version / 100 % 100, version % 100);
}

/* ---- finding ------------------------------------------------------------------------------- */

static entry *look_up(int ordinal, const kind *k) {
  entry *e = known.bucket[bucket_of(k)];
  while (e && (e->ordinal != ordinal || memcmp(&e->kind, k, sizeof *k) != 0)) e = e->next;
  return e;
}

static gp_status add(gp_gpu *gpu, const gp_gpu_gemm *gemm, const kind *k, entry **made) {
  entry *e = calloc(1, sizeof *e), **first = &known.bucket[bucket_of(k)];
  if (!e) return gp_gpu_fail(GP_ENOMEM, "matrix products: no memory on the host");
  gp_status status = gp_gemm_plan_build(gpu, tools_of(gpu), gemm, &e->plan);
  if (status != GP_OK) {
    free(e);
    return status;
  }
  (void)pthread_mutex_init(&e->lock, NULL);
  e->ordinal = gpu->spec.ordinal;
  e->kind = *k;
  e->refused = e->plan.way == GP_GEMM_OWN;
  e->next = *first;
  *first = *made = e;
  return GP_OK;
}

/* Find a plan, or make it. The first thread asks the library; others wait for its answer. */
static gp_status find(gp_gpu *gpu, const gp_gpu_gemm *gemm, entry **found) {
  const kind k = kind_of(gpu, gemm);
  pthread_mutex_lock(&known.lock);
  gp_status status = open_gpu(gpu);
  *found = look_up(gpu->spec.ordinal, &k);
  if (status == GP_OK && !*found) status = add(gpu, gemm, &k, found);
  pthread_mutex_unlock(&known.lock);
  return status;
}

/* ---- products ------------------------------------------------------------------------------ */

/* The library wants a row distance of at least the width, even if rows are empty or there is only
 * one. */
static int64_t distance(int64_t ld, int64_t width) { return ld < width ? width : ld; }

static gp_gpu_gemm normal(const gp_gpu_gemm *gemm) {
  gp_gpu_gemm g = *gemm;
  if (g.batch < 1) g.batch = 1;
  if (g.batch == 1) g.stride_a = g.stride_b = g.stride_d = 0;
  g.lda = distance(g.lda, g.transpose_a ? g.m : g.k);
  g.ldb = distance(g.ldb, g.transpose_b ? g.k : g.n);
  g.ldd = distance(g.ldd, g.n);
  return g;
}

/* A product with k = 0 has no epilogue: the caller computes what would follow it. */
static gp_status check_empty(gp_gpu *gpu, const gp_gpu_gemm *g) {
  return g->epilogue == GP_GEMM_PLAIN ? GP_OK : gp_gemm_refuse(gpu, g);
}

static bool is_empty(const gp_gpu_gemm *g) { return g->m == 0 || g->n == 0; }

/* Write zeros: the result of a product with k = 0. */
static gp_status clear(gp_gpu *gpu, const gp_gpu_gemm *g) {
  const size_t size = gp_gemm_element(g->d_type);
  const size_t width = (size_t)g->n * size, pitch = (size_t)g->ldd * size;
  for (int64_t i = 0; i < g->batch && !g->accumulate; i++) {
    char *d = (char *)g->d + (size_t)(i * g->stride_d) * size;
    cudaError_t e = cudaMemset2DAsync(d, pitch, 0, width, (size_t)g->m, gp_gpu_stream(gpu));
    GP_GPU_TRY(gp_gpu_check(gpu, e, "zeros for an empty product"));
  }
  return GP_OK;
}

static gp_status prepare(gp_gpu *gpu, const gp_gpu_gemm *g) {
  entry *e;
  GP_GPU_TRY(find(gpu, g, &e));
  pthread_mutex_lock(&e->lock);
  const gp_gemm_way way = e->plan.way;
  if (!gpu->spare) gp_gemm_plan_note(gpu, g, &e->plan);
  pthread_mutex_unlock(&e->lock);
  return way == GP_GEMM_APART ? gp_gemm_refuse(gpu, g) : GP_OK;
}

gp_status gp_gemm_prepare(gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  const gp_gpu_gemm g = normal(gemm);
  if (is_empty(&g)) return GP_OK;
  return g.k == 0 ? check_empty(gpu, &g) : prepare(gpu, &g);
}

bool gp_gemm_is_refused(gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  const gp_gpu_gemm g = normal(gemm);
  entry *e;
  return !is_empty(&g) && g.k > 0 && find(gpu, &g, &e) == GP_OK && e->refused;
}

gp_status gp_gemm_run(gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  const gp_gpu_gemm g = normal(gemm);
  entry *e;
  if (is_empty(&g)) return GP_OK;
  if (g.k == 0) {
    GP_GPU_TRY(check_empty(gpu, &g));
    return clear(gpu, &g);
  }
  GP_GPU_TRY(find(gpu, &g, &e));
  pthread_mutex_lock(&e->lock);
  const gp_status status = gp_gemm_plan_run(gpu, tools_of(gpu), &g, &e->plan);
  pthread_mutex_unlock(&e->lock);
  return status;
}
