/* ops/attention/flash_scores.cuh - what happens to scores besides products: which query sees which
 * key, masks, dropout.
 *
 * It also says which scores a block works on. */
#ifndef GP_OPS_ATTENTION_FLASH_SCORES_CUH
#define GP_OPS_ATTENTION_FLASH_SCORES_CUH

#include <math.h>

#include "device/cuda/kernel/philox.cuh"
#include "ops/attention/flash_tile.cuh"
#include "ops/constants.h"
#include "ops/elements.h"

/* ---- exponentials -------------------------------------------------------------------------- */

static __device__ inline float exponential(float x) { return expf(x); }
static __device__ inline double exponential(double x) { return exp(x); }
static __device__ inline float logarithm(float x) { return logf(x); }
static __device__ inline double logarithm(double x) { return log(x); }

/* ---- masks --------------------------------------------------------------------------------- */

/* Count the heads that share keys and values. */
static __device__ inline int64_t sharers(const gp_attention &a) { return a.heads / a.groups; }

/* Return where the mask of a head begins, or NULL if there is none. */
template <typename T>
static __device__ inline const char *mask_of(const gp_attention &a, int64_t b, int64_t h) {
  if (!a.masked) return NULL;
  const int64_t first = b * a.mask.batch + h * a.mask.head;
  const int64_t wide = a.mask_dtype == GP_F32 ? sizeof(float) : sizeof(T);
  return (const char *)a.mask.data + first * (a.mask_dtype == GP_BOOL ? 1 : wide);
}

/* Return what is added to a scaled score; minus infinity hides its key. */
template <typename T>
static __device__ inline gp_compute<T> bias_of(const gp_attention &a, const char *mask,
                                               int64_t query, int64_t key) {
  typedef gp_compute<T> C;
  const int64_t i = query * a.mask.row + key * a.mask.column;
  if (a.mask_dtype == GP_BOOL) return mask[i] ? C(0) : -C(INFINITY);
  const bool single = a.mask_dtype == GP_F32;
  const C bias =
      single ? C(((const float *)mask)[i]) : element_load(((const T *)mask)[i], a.mask_dtype);
  return bias <= C(GP_MASK_HIDDEN) ? -C(INFINITY) : bias;
}

/* Turn a product into a score: minus infinity if the query does not see the key, or one of them
 * does not exist. */
template <typename T>
static __device__ inline gp_compute<T> score_of(const gp_attention &a, const char *mask,
                                                int64_t query, int64_t key, gp_compute<T> product) {
  typedef gp_compute<T> C;
  if (query >= a.queries || key >= a.keys || (a.causal && key > query)) return -C(INFINITY);
  const C s = product * C(a.scale);
  return mask ? s + bias_of<T>(a, mask, query, key) : s;
}

/* ---- dropout ------------------------------------------------------------------------------- */

/* The rule of dropout: keep iff word >= threshold, scaled. */
template <typename C> struct dropout {
  uint64_t seed;
  uint32_t step, random, threshold;
  C keep;
  uint64_t first, keys; /* word of query 0 and key 0 of this head; words between queries */
  bool on;
};

/* Every head has words of its own. */
template <typename C>
static __device__ inline dropout<C> dropout_of(const gp_attention &a, int64_t b, int64_t h) {
  dropout<C> d = {};
  d.on = a.dropout > 0;
  if (!d.on) return d;
  d.seed = a.step->seed, d.step = a.step->step, d.random = a.random;
  d.threshold = a.dropout >= 1 ? UINT32_MAX : (uint32_t)(a.dropout * GP_WORD_RANGE);
  d.keep = a.dropout >= 1 ? C(0) : C(1 / (1 - a.dropout));
  d.keys = (uint64_t)a.keys;
  const int64_t pairs = a.batches * a.heads, words = a.queries * a.keys;
  d.first = gp_first_element(a.step, a.batches, pairs * words);
  d.first += (uint64_t)(b * a.heads + h) * (uint64_t)words;
  return d;
}

/* Draw the words of the keys key + i N / 4 of a query: from one block of Philox if they lie in one,
 * which they do if the number of keys is a multiple of 64, else from a block each. The loop keeps
 * one copy of Philox, whose rounds would make up most of a kernel. */
template <typename C, int N>
static __device__ void draw_words(const dropout<C> &d, int64_t query, int64_t key,
                                  uint32_t word[STEP]) {
  const int span = place<N>::span;
  const uint64_t first = d.first + (uint64_t)query * d.keys + (uint64_t)key;
  const bool together = span == GP_PHILOX_BLOCKS && first % GP_PHILOX_CHUNK < GP_PHILOX_BLOCKS;
#pragma unroll 1
  for (int i = 0; i < (together ? 1 : STEP); i++) {
    const uint64_t element = first + (uint64_t)(i * span);
    uint32_t drawn[GP_PHILOX_WORDS];
    gp_philox_block(d.seed, d.step, d.random, gp_philox_block_of(element), drawn);
    const uint32_t one = gp_philox_pick(drawn, element);
#pragma unroll
    for (int k = 0; k < STEP; k++)
      if (together)
        word[k] = drawn[k];
      else if (k == i)
        word[k] = one;
  }
}

/* Set factor[i] for those keys to 0 or the scale. */
template <typename C, int N>
static __device__ void draw(const dropout<C> &d, int64_t query, int64_t key, C factor[STEP]) {
  uint32_t word[STEP];
  draw_words<C, N>(d, query, key, word);
#pragma unroll
  for (int i = 0; i < STEP; i++) factor[i] = word[i] >= d.threshold ? d.keep : C(0);
}

/* ---- work of a block ----------------------------------------------------------------------- */

/* Blocks are numbered with the rows running fastest, then the groups of columns of the output. */
struct work {
  int64_t batch, head, row, column;
};

/* All that the blocks of a kernel make: [B, heads, rows, D], by tiles of some rows and `columns`
 * columns. */
struct outputs {
  int64_t heads, rows, columns;
};

/* Find the work of this block; causal work on queries starts with the longest rows. */
template <int N>
static __device__ inline work work_of(const gp_attention &a, const outputs &all, bool backwards) {
  const int64_t blocks = (all.rows + N - 1) / N, parts = (a.width + all.columns - 1) / all.columns;
  int64_t i = blockIdx.x, block = i % blocks, part = i / blocks % parts;
  i /= blocks * parts;
  if (backwards) block = blocks - 1 - block;
  return {i / all.heads, i % all.heads, block * N, part * all.columns};
}

/* Count the blocks with tiles of n rows; return 0 if a grid has fewer. */
static inline int64_t count_blocks(const gp_attention *a, const outputs &all, int n) {
  const int64_t most = INT32_MAX, blocks = (all.rows + n - 1) / n;
  const int64_t parts = (a->width + all.columns - 1) / all.columns;
  const int64_t heads = a->batches * all.heads;
  return heads > 0 && blocks * parts > most / heads ? 0 : blocks * parts * heads;
}

#endif
