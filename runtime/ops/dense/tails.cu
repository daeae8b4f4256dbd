/* ops/dense/tails.cu - a product of odd sizes, as one of whole groups and one of what is left over.
 *
 * Tensor cores take elements in groups of 16 bytes. Where neighbours along rows are no multiple of
 * that (a vocabulary of 50,257), the library's fast algorithms do not apply, even where every row
 * begins at a multiple of 16 bytes: its documentation asks for both. So 50,256 columns are one
 * product and the last column is another, which costs a pass over the other operand, some 10 us.
 *
 *   N, columns of D: the rest makes its own columns
 *   M, where A is stored transposed, so that its rows are along M: the rest makes its own rows
 *   K, where A's or B's rows are along it: the rest comes first, and the whole groups are added to
 *      it; it is small, so rounding it to D's type does not show
 *
 * Sizes alone decide, so the bits depend on nothing else. GPIPE_GEMM_TAILS is another bound, in
 * millions of operations; 0: none is split. Source: cuBLAS Library, "Tensor Core Usage", the
 * conditions for best performance. */
#include <stdlib.h>

#include "ops/dense/dense.cuh"

static const int64_t GROUP = 8; /* halves in 16 bytes */
/* Millions of operations from which on it pays: at a third of the speed of tensor cores so many
 * lose 20 us, and the pass costs 10. */
static const int64_t LEAST = 10000;

static int64_t left_over(int64_t n) { return n % GROUP; }

/* Return the bound in operations; it is the same for the life of a process. 0: never. */
static double asked_bound() {
  const char *asked = getenv("GPIPE_GEMM_TAILS");
  return 1e6 * (double)(asked && *asked ? strtoll(asked, NULL, 10) : LEAST);
}

/* Rows that begin anywhere are slow whatever their length; pieces add no bias twice. */
static bool pays(const gp_gpu_gemm *g) {
  const double operations = 2.0 * (double)g->m * (double)g->n * (double)g->k;
  const bool halves = g->type == GP_BF16 || g->type == GP_F16;
  const bool begin = left_over(g->lda) == 0 && left_over(g->ldb) == 0 && left_over(g->ldd) == 0;
  return halves && begin && g->batch <= 1 && g->epilogue == GP_GEMM_PLAIN && asked_bound() > 0 &&
         operations >= asked_bound();
}

static const void *element(const void *of, int64_t at, gp_dtype type) {
  return of ? (const char *)of + (size_t)at * gp_item_of(type) : NULL;
}

/* What is computed first, and what follows. */
typedef struct parts {
  gp_gpu_gemm first, second;
} parts;

/* D's columns, or its rows: each part has its own. */
static parts split_columns(const gp_gpu_gemm *g, int64_t whole) {
  parts p = {*g, *g};
  p.first.n = whole, p.second.n = g->n - whole;
  p.second.b = element(g->b, g->transpose_b ? whole * g->ldb : whole, g->type);
  p.second.d = (void *)element(g->d, whole, g->d_type);
  p.second.c = element(g->c, whole, g->d_type);
  p.second.bias = element(g->bias, whole, g->d_type);
  return p;
}

static parts split_rows(const gp_gpu_gemm *g, int64_t whole) {
  parts p = {*g, *g};
  p.first.m = whole, p.second.m = g->m - whole;
  p.second.a = element(g->a, whole, g->type);
  p.second.d = (void *)element(g->d, whole * g->ldd, g->d_type);
  p.second.c = element(g->c, whole * g->ldd, g->d_type);
  return p;
}

static parts split_sums(const gp_gpu_gemm *g, int64_t whole) {
  parts p = {*g, *g};
  p.first.k = g->k - whole, p.second.k = whole;
  p.first.a = element(g->a, g->transpose_a ? whole * g->lda : whole, g->type);
  p.first.b = element(g->b, g->transpose_b ? whole : whole * g->ldb, g->type);
  p.second.accumulate = true, p.second.c = NULL;
  return p;
}

/* Split the product along one size; return false where it stays whole. */
static bool split(const gp_gpu_gemm *g, parts *p) {
  const bool k_along_rows = !g->transpose_a || g->transpose_b;
  if (!pays(g)) return false;
  if (left_over(g->n) && g->n > GROUP)
    *p = split_columns(g, g->n - left_over(g->n));
  else if (left_over(g->m) && g->m > GROUP && g->transpose_a)
    *p = split_rows(g, g->m - left_over(g->m));
  else if (left_over(g->k) && g->k > GROUP && k_along_rows && !g->biased)
    *p = split_sums(g, g->k - left_over(g->k));
  else
    return false;
  return true;
}

/* One of the parts may be odd along another size; the other is too small to be split. */
static gp_status each(gp_gpu *gpu, const gp_gpu_gemm *g, gp_gemm_step step) {
  parts p;
  if (!split(g, &p)) return step(gpu, g);
  GP_GPU_TRY(each(gpu, &p.first, step));
  return each(gpu, &p.second, step);
}

static void note(gp_gpu *gpu, const gp_gpu_gemm *g) {
  char name[GP_GEMM_NAME];
  gp_gemm_name(g, name);
  gp_gpu_note_path(gpu, "product", name, "cuBLASLt in whole groups and the rest",
                   "a size is no multiple of 8");
}

gp_status gp_tails_prepare(gp_gpu *gpu, const gp_gpu_gemm *g) {
  parts p;
  if (split(g, &p) && !gpu->spare) note(gpu, g);
  return each(gpu, g, gp_gemm_prepare);
}

gp_status gp_tails_run(gp_gpu *gpu, const gp_gpu_gemm *g) { return each(gpu, g, gp_gemm_run); }
