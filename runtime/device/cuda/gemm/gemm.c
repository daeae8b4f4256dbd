/* device/cuda/gemm/gemm.c - see gemm.h: the plans of a device, found again by what decides them.
 *
 * A plan stays until the device is closed: a training run has some dozens of them, however many
 * steps it makes. */
#include "device/cuda/gemm/gemm.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/gemm/plan.h"

enum { BUCKETS = 256, FIELDS = 16, FULL_ALIGNMENT = 16 };

/* All that an algorithm depends on; whole words, so that keys can be compared as memory. */
typedef struct kind {
  int64_t field[FIELDS];
} kind;

typedef struct entry {
  kind kind;
  gp_gemm_plan plan; /* empty: the library has no algorithm */
  struct entry *next;
} entry;

struct gp_gemm_cache {
  gp_gemm_tools tools;
  entry *bucket[BUCKETS];
};

/* ---- keys ---------------------------------------------------------------------------------- */

/* The bytes by which every operand is aligned, at most 16: what vector loads ask for. */
static int64_t alignment_of(const gp_gpu_gemm *g) {
  uintptr_t bits = (uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->d | FULL_ALIGNMENT;
  if (g->biased) bits |= (uintptr_t)g->bias;
  bits |= (uintptr_t)g->c | (uintptr_t)g->aux;
  return (int64_t)(bits & (~bits + 1)); /* the lowest bit that is set */
}

/* Whether D is added to is no part of it: the library does not ask. */
static kind kind_of(const gp_gpu *gpu, const gp_gpu_gemm *g) {
  const int64_t flags = (int64_t)g->transpose_a | (int64_t)g->transpose_b << 1 |
                        (int64_t)g->biased << 2 | (int64_t)g->type << 8 | (int64_t)g->d_type << 16 |
                        (int64_t)gpu->math << 24;
  return (kind){{flags, g->m, g->n, g->k, g->lda, g->ldb, g->ldd, g->batch, g->stride_a,
                 g->stride_b, g->stride_d, alignment_of(g), g->epilogue, g->keeps}};
}

/* Source: Fowler, Noll and Vo, FNV-1a, over words instead of bytes. */
static size_t bucket_of(const kind *k) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < FIELDS; i++) hash = (hash ^ (uint64_t)k->field[i]) * 0x100000001b3u;
  return (size_t)(hash >> 32) % BUCKETS;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* NVIDIA's own defaults: what the algorithms were chosen for. */
static size_t workspace_bytes(const gp_gpu *gpu) {
  return (size_t)(gpu->info.major >= 9 ? 32 : 4) << 20;
}

static gp_status open_tools(gp_gpu *gpu, gp_gemm_tools *tools) {
  const char *tune = getenv("GPIPE_GEMM_TUNE");
  tools->tuning = tune && strcmp(tune, "1") == 0;
  tools->workspace_bytes = workspace_bytes(gpu);
  tools->epilogues = gp_gemm_epilogues(gpu, tools->tuning);
  cublasStatus_t made = cublasLtCreate(&tools->handle);
  if (made != CUBLAS_STATUS_SUCCESS)
    return gp_gpu_fail(GP_EDEVICE, "cuda:%d: cublasLtCreate: %s", gpu->spec.ordinal,
                       cublasLtGetStatusString(made));
  return gp_gpu_check(gpu, cudaMalloc(&tools->workspace, tools->workspace_bytes),
                      "workspace of matrix products");
}

gp_status gp_gemm_open(gp_gpu *gpu) {
  if (gpu->gemm) return GP_OK;
  gpu->gemm = calloc(1, sizeof *gpu->gemm);
  if (!gpu->gemm) return gp_gpu_fail(GP_ENOMEM, "matrix products: no memory on the host");
  gp_status status = open_tools(gpu, &gpu->gemm->tools);
  if (status != GP_OK) gp_gemm_close(gpu);
  return status;
}

static void free_entries(entry *first) {
  while (first) {
    entry *next = first->next;
    gp_gemm_plan_free(&first->plan);
    free(first);
    first = next;
  }
}

void gp_gemm_close(gp_gpu *gpu) {
  if (!gpu->gemm) return;
  for (int i = 0; i < BUCKETS; i++) free_entries(gpu->gemm->bucket[i]);
  if (gpu->gemm->tools.workspace) cudaFree(gpu->gemm->tools.workspace);
  if (gpu->gemm->tools.handle) cublasLtDestroy(gpu->gemm->tools.handle);
  free(gpu->gemm);
  gpu->gemm = NULL;
}

/* 130100 is 13.1.0. */
void gp_gemm_describe(gp_gpu_library *library) {
  const size_t version = cublasLtGetVersion();
  snprintf(library->name, sizeof library->name, "cuBLASLt");
  snprintf(library->version, sizeof library->version, "%zu.%zu.%zu", version / 10000,
           version / 100 % 100, version % 100);
}

/* ---- finding ------------------------------------------------------------------------------- */

/* That there is no algorithm is an answer too, and kept: the caller may have another way. */
static gp_status add(gp_gpu *gpu, const gp_gpu_gemm *gemm, const kind *k, entry **made) {
  entry *e = calloc(1, sizeof *e), **first = &gpu->gemm->bucket[bucket_of(k)];
  if (!e) return gp_gpu_fail(GP_ENOMEM, "matrix products: no memory on the host");
  gp_status status = gp_gemm_plan_build(gpu, &gpu->gemm->tools, gemm, alignment_of(gemm), &e->plan);
  if (status != GP_OK && status != GP_EUNSUPPORTED) {
    free(e);
    return status;
  }
  e->kind = *k;
  e->next = *first;
  *first = *made = e;
  return status;
}

static gp_status find(gp_gpu *gpu, const gp_gpu_gemm *gemm, entry **found) {
  GP_GPU_TRY(gp_gemm_open(gpu));
  const kind k = kind_of(gpu, gemm);
  for (entry *e = gpu->gemm->bucket[bucket_of(&k)]; e; e = e->next)
    if (memcmp(&e->kind, &k, sizeof k) == 0) {
      *found = e;
      return gp_gemm_check(gpu, gemm,
                           e->plan.product ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
    }
  return add(gpu, gemm, &k, found);
}

/* ---- products ------------------------------------------------------------------------------ */

/* The library wants rows at some distance, also where they have no elements or there is one row. */
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

/* A sum of nothing has no epilogue: the caller does it apart. */
static gp_status check_empty(gp_gpu *gpu, const gp_gpu_gemm *g) {
  return g->epilogue == GP_GEMM_PLAIN ? GP_OK : gp_gemm_refuse(gpu, g);
}

static bool is_empty(const gp_gpu_gemm *g) { return g->m == 0 || g->n == 0; }

/* A sum of nothing. */
static gp_status clear(gp_gpu *gpu, const gp_gpu_gemm *g) {
  const size_t size = gp_gemm_element(g->d_type);
  const size_t width = (size_t)g->n * size, pitch = (size_t)g->ldd * size;
  for (int64_t i = 0; i < g->batch && !g->accumulate; i++) {
    char *d = (char *)g->d + (size_t)(i * g->stride_d) * size;
    cudaError_t e =
        cudaMemset2DAsync(d, pitch, 0, width, (size_t)g->m, gpu->streams[GP_STREAM_COMPUTE]);
    GP_GPU_TRY(gp_gpu_check(gpu, e, "zeros for an empty product"));
  }
  return GP_OK;
}

gp_status gp_gemm_prepare(gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  const gp_gpu_gemm g = normal(gemm);
  entry *found;
  if (is_empty(&g)) return GP_OK;
  return g.k == 0 ? check_empty(gpu, &g) : find(gpu, &g, &found);
}

gp_status gp_gemm_run(gp_gpu *gpu, const gp_gpu_gemm *gemm) {
  const gp_gpu_gemm g = normal(gemm);
  entry *found;
  if (is_empty(&g)) return GP_OK;
  if (g.k == 0) {
    GP_GPU_TRY(check_empty(gpu, &g));
    return clear(gpu, &g);
  }
  GP_GPU_TRY(find(gpu, &g, &found));
  return gp_gemm_plan_run(gpu, &gpu->gemm->tools, &g, &found->plan);
}
