/* scripts/bench/gemm.c - how fast dnnl_sgemm, called directly, does the products of a stage of
 * Linears.
 *
 *   bench_gemm ROWS WIDTH WIDTH [WIDTH...]
 *
 * A stage of Linear(w0, w1), Linear(w1, w2), ... multiplies once per layer forwards. Then, last
 * layer first, it multiplies for the gradient of each weight and, except in the first layer, of the
 * input. This program makes the same calls on memory of its own, with one thread and each product
 * whole, and prints the seconds of one pass (the median; processor time, which other programs on a
 * shared machine lengthen little). It uses nothing of the runtime, because gemm.lua compares the
 * runtime with it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_LAYERS = 16, PASSES = 15, WARM = 3 };

typedef int sgemm_function(char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha,
                           const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                           float *c, int64_t ldc);

/* A chain of layers. Letters: M rows, K inputs, N outputs. */
typedef struct chain {
  sgemm_function *sgemm;
  int64_t rows, width[MAX_LAYERS + 1];
  int layers;
  float *w[MAX_LAYERS], *dw[MAX_LAYERS];         /* [N, K] */
  float *x[MAX_LAYERS + 1], *dx[MAX_LAYERS + 1]; /* [M, K] of layer i; the last is the output */
} chain;

/* ---- setting up ---------------------------------------------------------------------------- */

/* Opens the library and sets it to one thread, as the runtime does. Symbols are copied by memcpy,
 * because C does not convert an object pointer to a function pointer. */
static sgemm_function *load(void) {
  static const char *const names[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
  void *handle = NULL;
  for (size_t i = 0; !handle && i < sizeof names / sizeof *names; i++)
    handle = dlopen(names[i], RTLD_NOW);
  if (!handle) return NULL;
  void *threads = dlsym(handle, "omp_set_num_threads"), *symbol = dlsym(handle, "dnnl_sgemm");
  void (*set_threads)(int);
  sgemm_function *sgemm;
  memcpy(&set_threads, &threads, sizeof threads);
  memcpy(&sgemm, &symbol, sizeof symbol);
  if (set_threads) set_threads(1);
  return sgemm;
}

/* Allocates numbers around 0 on a cache line of their own; their values do not matter. */
static float *matrix(int64_t rows, int64_t columns) {
  size_t n = (size_t)(rows * columns);
  float *at = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
  for (size_t i = 0; at && i < n; i++) at[i] = (float)(i % 17) / 16 - 0.5F;
  return at;
}

static int build(chain *c) {
  for (int i = 0; i <= c->layers; i++) {
    c->x[i] = matrix(c->rows, c->width[i]);
    c->dx[i] = matrix(c->rows, c->width[i]);
    if (!c->x[i] || !c->dx[i]) return -1;
  }
  for (int i = 0; i < c->layers; i++) {
    c->w[i] = matrix(c->width[i + 1], c->width[i]);
    c->dw[i] = matrix(c->width[i + 1], c->width[i]);
    if (!c->w[i] || !c->dw[i]) return -1;
  }
  return 0;
}

/* ---- a pass -------------------------------------------------------------------------------- */

static void pass(const chain *c) {
  for (int i = 0; i < c->layers; i++) { /* y = x w^T */
    int64_t k = c->width[i], n = c->width[i + 1];
    c->sgemm('N', 'T', c->rows, n, k, 1, c->x[i], k, c->w[i], k, 0, c->x[i + 1], n);
  }
  for (int i = c->layers - 1; i >= 0; i--) { /* dw += dy^T x, dx = dy w */
    int64_t k = c->width[i], n = c->width[i + 1];
    c->sgemm('T', 'N', n, k, c->rows, 1, c->dx[i + 1], n, c->x[i], k, 1, c->dw[i], k);
    if (i > 0) c->sgemm('N', 'N', c->rows, k, n, 1, c->dx[i + 1], n, c->w[i], k, 0, c->dx[i], k);
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  static chain c;
  double seconds[PASSES];
  c.layers = argc - 3;
  if (c.layers < 1 || c.layers > MAX_LAYERS) {
    fprintf(stderr, "usage: bench_gemm ROWS WIDTH WIDTH [WIDTH...]\n");
    return 2;
  }
  c.rows = atoll(argv[1]);
  for (int i = 0; i <= c.layers; i++) c.width[i] = atoll(argv[2 + i]);
  c.sgemm = load();
  if (!c.sgemm || build(&c)) {
    fprintf(stderr, "bench_gemm: %s\n", c.sgemm ? "no memory" : "oneDNN cannot be loaded");
    return 1;
  }
  for (int i = -WARM; i < PASSES; i++) {
    double begin = now();
    pass(&c);
    if (i >= 0) seconds[i] = now() - begin;
  }
  qsort(seconds, PASSES, sizeof *seconds, ascending);
  printf("%.9f\n", seconds[PASSES / 2]);
  return 0;
}
