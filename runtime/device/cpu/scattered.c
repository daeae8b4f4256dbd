/* device/cpu/scattered.c - tiles of sums in registers; see scattered.h.
 *
 * Contraction is off in the whole build; the code names the fused multiply-add, as in gemm_plain.c.
 * On processors without one this gains too little: there gp_scattered_fits says no. */
#include "device/cpu/scattered.h"

#include "base/loop.h"

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>

#if defined(__AVX512F__)
typedef __m512 vector;
enum { LANES = 16, VECTORS = 4 };
#define LOAD(p)        _mm512_loadu_ps(p)
#define STORE(p, v)    _mm512_storeu_ps(p, v)
#define EVERY(x)       _mm512_set1_ps(x)
#define FUSED(a, b, c) _mm512_fmadd_ps(a, b, c)
#else
typedef __m256 vector;
enum { LANES = 8, VECTORS = 2 }; /* 12 of 16 registers hold sums */
#define LOAD(p)        _mm256_loadu_ps(p)
#define STORE(p, v)    _mm256_storeu_ps(p, v)
#define EVERY(x)       _mm256_set1_ps(x)
#define FUSED(a, b, c) _mm256_fmadd_ps(a, b, c)
#endif

enum { ROWS = GP_SCATTERED_ROWS };

#define UNROLL GP_UNROLL(16)
#define INLINE static inline __attribute__((always_inline))

/* An address in a register of its own: gcc adds up the parts of several addresses at every use
 * else, and lacks registers for them. */
#if defined(__GNUC__)
#define SETTLE(p) __asm__("" : "+r"(p))
#else
#define SETTLE(p) (void)(p)
#endif

bool gp_scattered_fits(int64_t columns) { return columns > 0 && columns % LANES == 0; }

/* The most vectors that a tile can have without exceeding the columns that are left. */
static int64_t vectors_of(int64_t columns) {
  int64_t vectors = VECTORS;
  while (vectors * LANES > columns) vectors /= 2;
  return vectors;
}

/* ---- rows times matrices -------------------------------------------------------------------- */

/* What all tiles of a call share, and the tile. */
typedef struct product {
  const gp_scattered *s;
  const gp_scattered_taps *taps;
  const gp_scattered_tile *tile;
  int64_t number;
} product;

INLINE void multiply(const product *p, int64_t column, const int rows, const int vectors) {
  const gp_scattered *s = p->s;
  float *const *to = p->tile->to;
  const int64_t begin = s->column + column, ahead_at = p->number * s->ahead_step * s->depth;
  vector sum[ROWS][VECTORS];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) {
    if (s->add)
      sum[r][v] = LOAD(to[r] + begin + v * LANES);
    else
      sum[r][v] = s->bias ? LOAD(s->bias + begin + v * LANES) : EVERY(0);
  }
  for (int64_t t = 0; t < p->taps->count; t++) {
    const int64_t at = s->at + p->taps->offset[t], tap = p->taps->weight[t];
    const float *a[ROWS], *w = s->weight[tap] + column, *ahead = s->ahead[tap] + ahead_at;
    UNROLL for (int r = 0; r < rows; r++) a[r] = p->tile->from[r] + at;
    for (int64_t k = 0; k < s->depth; k++, w += s->width, ahead += s->ahead_step) {
      vector b[VECTORS];
      __builtin_prefetch(ahead, 0, 2); /* to the second-level cache */
      UNROLL for (int v = 0; v < vectors; v++) b[v] = LOAD(w + v * LANES);
      UNROLL for (int r = 0; r < rows; r++) {
        const vector x = EVERY(a[r][k]);
        UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = FUSED(x, b[v], sum[r][v]);
      }
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
      STORE(to[r] + begin + v * LANES, sum[r][v]);
}

INLINE void multiply_rows(const product *p, int64_t column, const int vectors) {
  switch (p->tile->rows) {
  case 1: multiply(p, column, 1, vectors); break;
  case 2: multiply(p, column, 2, vectors); break;
  case 3: multiply(p, column, 3, vectors); break;
  case 4: multiply(p, column, 4, vectors); break;
  case 5: multiply(p, column, 5, vectors); break;
  default: multiply(p, column, ROWS, vectors);
  }
}

void gp_scattered_multiply(const gp_scattered *s, const gp_scattered_taps *taps, int64_t number,
                           const gp_scattered_tile *tile) {
  const product p = {s, taps, tile, number};
  for (int64_t column = 0; column < s->columns;) {
    const int64_t vectors = vectors_of(s->columns - column);
    switch (vectors) {
    case 1: multiply_rows(&p, column, 1); break;
    case 2: multiply_rows(&p, column, 2); break;
    default: multiply_rows(&p, column, VECTORS);
    }
    column += vectors * LANES;
  }
}

/* ---- outer products ------------------------------------------------------------------------- */

INLINE void multiply_outer(const gp_scattered_outer *s, int64_t row, int64_t column, float *sums,
                           const int rows, const int vectors) {
  vector sum[ROWS][VECTORS];
  float *to = sums + row * s->ld + column;
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
      s->add ? LOAD(to + r * s->ld + v * LANES) : EVERY(0);
  const int64_t left_at = s->left_at + row, right_at = s->right_at + column;
  for (int64_t p = 0; p < s->places; p++) {
    const float *a = s->left[p] + left_at, *w = s->right[p] + right_at;
    const float *next = s->right[p + GP_SCATTERED_AHEAD] + right_at;
    vector b[VECTORS];
    SETTLE(a);
    SETTLE(w);
    SETTLE(next);
    UNROLL for (int v = 0; v < vectors; v++) __builtin_prefetch(next + v * LANES);
    __builtin_prefetch(s->left[p + GP_SCATTERED_AHEAD] + left_at + rows - 1);
    UNROLL for (int v = 0; v < vectors; v++) b[v] = LOAD(w + v * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const vector x = EVERY(a[r]);
      UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = FUSED(x, b[v], sum[r][v]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
      STORE(to + r * s->ld + v * LANES, sum[r][v]);
}

INLINE void outer_rows(const gp_scattered_outer *s, int64_t row, int64_t column, float *sums,
                       const int vectors) {
  switch (s->rows - row) {
  case 1: multiply_outer(s, row, column, sums, 1, vectors); break;
  case 2: multiply_outer(s, row, column, sums, 2, vectors); break;
  case 3: multiply_outer(s, row, column, sums, 3, vectors); break;
  case 4: multiply_outer(s, row, column, sums, 4, vectors); break;
  case 5: multiply_outer(s, row, column, sums, 5, vectors); break;
  default: multiply_outer(s, row, column, sums, ROWS, vectors);
  }
}

/* Copies what the rows on the right have of a tile's columns to the strip. */
static void copy_strip(const gp_scattered_outer *s, int64_t column, int64_t vectors) {
  for (int64_t p = 0; p < s->places; p++) {
    const float *from = s->right[p] + s->right_at + column;
    const float *next = s->right[p + GP_SCATTERED_AHEAD] + s->right_at + column;
    for (int64_t v = 0; v < vectors; v++) __builtin_prefetch(next + v * LANES);
    for (int64_t v = 0; v < vectors; v++) STORE(s->strip[p] + v * LANES, LOAD(from + v * LANES));
  }
}

/* Column by column: what the places hold of them is used for all rows while a cache has it. */
void gp_scattered_outer_multiply(const gp_scattered_outer *all, float *sums) {
  gp_scattered_outer s = *all;
  if (s.strip) s.right = (const float *const *)s.strip;
  for (int64_t column = 0; column < s.columns;) {
    const int64_t vectors = vectors_of(s.columns - column);
    if (s.strip) {
      copy_strip(all, column, vectors);
      s.right_at = -column; /* the strip begins with this column */
    }
    for (int64_t row = 0; row < s.rows; row += ROWS) switch (vectors) {
      case 1: outer_rows(&s, row, column, sums, 1); break;
      case 2: outer_rows(&s, row, column, sums, 2); break;
      default: outer_rows(&s, row, column, sums, VECTORS);
      }
    column += vectors * LANES;
  }
}

#else

bool gp_scattered_fits(int64_t columns) { return columns < 0; }
void gp_scattered_multiply(const gp_scattered *s, const gp_scattered_taps *taps, int64_t number,
                           const gp_scattered_tile *tile) {
  (void)s, (void)taps, (void)number, (void)tile;
}
void gp_scattered_outer_multiply(const gp_scattered_outer *s, float *sums) { (void)s, (void)sums; }

#endif
