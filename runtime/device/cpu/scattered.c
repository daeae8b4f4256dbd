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

bool gp_scattered_fits(int64_t columns) { return columns > 0 && columns % LANES == 0; }

/* The most vectors that a tile can have without exceeding the columns that are left. */
static int64_t vectors_of(int64_t columns) {
  int64_t vectors = VECTORS;
  while (vectors * LANES > columns) vectors /= 2;
  return vectors;
}

/* ---- rows times matrices -------------------------------------------------------------------- */

INLINE void multiply(const gp_scattered *s, int64_t row, float *const *to, int64_t column,
                     const int vectors) {
  vector sum[ROWS][VECTORS];
  column += s->column;
  UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < vectors; v++) {
    if (s->add)
      sum[r][v] = LOAD(to[r] + column + v * LANES);
    else
      sum[r][v] = s->bias ? LOAD(s->bias + column + v * LANES) : EVERY(0);
  }
  for (int64_t t = 0; t < s->taps; t++) {
    const float *const *from = s->from + t * s->rows + row;
    const float *a[ROWS], *w = s->weight[t] + column - s->column;
    UNROLL for (int r = 0; r < ROWS; r++) a[r] = from[r] + s->at;
    for (int64_t k = 0; k < s->depth; k++, w += s->width) {
      vector b[VECTORS];
      UNROLL for (int v = 0; v < vectors; v++) b[v] = LOAD(w + v * LANES);
      UNROLL for (int r = 0; r < ROWS; r++) {
        const vector x = EVERY(a[r][k]);
        UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = FUSED(x, b[v], sum[r][v]);
      }
    }
  }
  UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < vectors; v++)
      STORE(to[r] + column + v * LANES, sum[r][v]);
}

void gp_scattered_multiply(const gp_scattered *s, int64_t row, float *const *to) {
  for (int64_t column = 0; column < s->columns;) {
    const int64_t vectors = vectors_of(s->columns - column);
    switch (vectors) {
    case 1: multiply(s, row, to, column, 1); break;
    case 2: multiply(s, row, to, column, 2); break;
    default: multiply(s, row, to, column, VECTORS);
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
  for (int64_t p = 0; p < s->places; p++) {
    const float *a = s->left[p] + s->left_at + row, *w = s->right[p] + s->right_at + column;
    vector b[VECTORS];
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

/* Go column by column: the elements of `right` that a column needs stay in the first-level cache
 * for all rows. */
void gp_scattered_outer_multiply(const gp_scattered_outer *s, float *sums) {
  for (int64_t column = 0; column < s->columns;) {
    const int64_t vectors = vectors_of(s->columns - column);
    for (int64_t row = 0; row < s->rows; row += ROWS) switch (vectors) {
      case 1: outer_rows(s, row, column, sums, 1); break;
      case 2: outer_rows(s, row, column, sums, 2); break;
      default: outer_rows(s, row, column, sums, VECTORS);
      }
    column += vectors * LANES;
  }
}

#else

bool gp_scattered_fits(int64_t columns) { return columns < 0; }
void gp_scattered_multiply(const gp_scattered *s, int64_t row, float *const *to) {
  (void)s, (void)row, (void)to;
}
void gp_scattered_outer_multiply(const gp_scattered_outer *s, float *sums) { (void)s, (void)sums; }

#endif
