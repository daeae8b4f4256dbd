/* device/cpu/bf16/emulated.c - products of bf16 operands in f32 arithmetic.
 *
 * A product of two bf16 numbers is exact in f32, so a fused multiply-add rounds just as the
 * addition of the product would: every instruction set gives the same bits. The first product of a
 * pair is added before the second. */
#include "base/loop.h"
#include "device/cpu/bf16/tiles.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16, VECTORS = 3 };
#define ADD_PRODUCT(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined(__FMA__)
#include <immintrin.h>
enum { LANES = 8, VECTORS = 2 };
#define ADD_PRODUCT(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
enum { LANES = 4, VECTORS = 2 };
#define ADD_PRODUCT(a, b, c) ((a) * (b) + (c))
#endif

enum { ROWS = 4, WIDTH = LANES * VECTORS }; /* the size of a tile, whose sums stay in registers */

typedef float vector __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));
typedef uint32_t words __attribute__((vector_size(4 * LANES), may_alias, aligned(4)));

#define UNROLL GP_UNROLL(4)
#define INLINE static inline __attribute__((always_inline))

/* sum += A's column of `count` elements times B's row; `second` picks the upper element of each
 * pair. */
INLINE void add_row(const uint32_t *a, const words *b, bool second, vector (*sum)[VECTORS],
                    int count) {
  vector row[VECTORS];
  UNROLL for (int v = 0; v < VECTORS; v++) row[v] =
      (vector)(b[v] << (second ? 0 : 16) & 0xffff0000u);
  UNROLL for (int r = 0; r < count; r++) {
    const words pair = a[r] - (words){0}; /* the pair in every lane */
    const vector x = (vector)(pair << (second ? 0 : 16) & 0xffff0000u);
    UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = ADD_PRODUCT(x, row[v], sum[r][v]);
  }
}

INLINE void add_pair(const char *a, int64_t row_bytes, bool both, const uint32_t *panel,
                     vector (*sum)[VECTORS], int count) {
  uint32_t pairs[ROWS];
  UNROLL for (int r = 0; r < count; r++) pairs[r] = gp_bf16_pair(a + r * row_bytes, both);
  add_row(pairs, (const words *)panel, false, sum, count);
  if (both) add_row(pairs, (const words *)panel, true, sum, count);
}

INLINE void run_tile(const char *a, const gp_bf16_rows *rows, int64_t k, const uint32_t *panel,
                     float *out, int count) {
  vector sum[ROWS][VECTORS];
  UNROLL for (int r = 0; r < count; r++) UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] =
      *(const vector *)(out + r * GP_BF16_COLUMNS + v * LANES);
  for (int64_t p = 0; p < k / 2; p++, a += rows->pair_bytes, panel += GP_BF16_COLUMNS)
    add_pair(a, rows->row_bytes, true, panel, sum, count);
  if (k % 2) add_pair(a, rows->row_bytes, false, panel, sum, count);
  UNROLL for (int r = 0; r < count; r++) UNROLL for (int v = 0; v < VECTORS; v++) *
      (vector *)(out + r * GP_BF16_COLUMNS + v * LANES) = sum[r][v];
}

void gp_bf16_emulated(const gp_bf16_rows *rows, int64_t k, const void *panel,
                      float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  const uint32_t *b = panel;
  for (int64_t i = 0, step; i < rows->m; i += step) {
    const char *a = (const char *)rows->a + i * rows->row_bytes;
    step = i + ROWS <= rows->m ? ROWS : 1;
    for (int j = 0; j < GP_BF16_COLUMNS; j += WIDTH)
      if (step == ROWS)
        run_tile(a, rows, k, b + j, &out[i][j], ROWS);
      else
        run_tile(a, rows, k, b + j, &out[i][j], 1);
  }
}
