/* device/cpu/bf16/avx512.c - products of bf16 operands by vdpbf16ps, which adds the products of a
 * pair to a sum of f32.
 *
 * This file is compiled for processors that have the instruction, whatever the rest of the build is
 * compiled for; the caller checks the processor at run time. A tile has 8 rows and 48 columns: 24
 * of 32 registers hold sums, and one word of A is multiplied with three vectors of B. */
#include "base/loop.h"
#include "device/cpu/bf16/tiles.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define UNROLL GP_UNROLL(8)

enum { ROWS = 8, VECTORS = 3 };

bool gp_bf16_has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bf16");
}

bool gp_bf16_likes_avx512(void) { return __builtin_cpu_is("amd"); }

/* Add the products of one pair of rows of B. */
TARGET static inline __attribute__((always_inline)) void
add_pair(const char *a, int64_t row_bytes, bool both, const char *panel, __m512 *sum, int count) {
  const __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel);
  const __m512bh b1 = (__m512bh)_mm512_loadu_si512(panel + 64);
  const __m512bh b2 = (__m512bh)_mm512_loadu_si512(panel + 128);
  UNROLL for (int r = 0; r < count; r++) {
    const int pair = (int)gp_bf16_pair(a + r * row_bytes, both);
    const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
    sum[r * VECTORS + 0] = _mm512_dpbf16_ps(sum[r * VECTORS + 0], x, b0);
    sum[r * VECTORS + 1] = _mm512_dpbf16_ps(sum[r * VECTORS + 1], x, b1);
    sum[r * VECTORS + 2] = _mm512_dpbf16_ps(sum[r * VECTORS + 2], x, b2);
  }
}

TARGET static inline __attribute__((always_inline)) void
run_tile(const char *a, const gp_bf16_rows *rows, int64_t k, const char *panel,
         float (*out)[GP_BF16_COLUMNS], int count) {
  __m512 sum[ROWS * VECTORS];
  UNROLL for (int r = 0; r < count; r++) for (int v = 0; v < VECTORS; v++) sum[r * VECTORS + v] =
      _mm512_loadu_ps(&out[r][16 * v]);
  for (int64_t p = 0; p < k / 2; p++, a += rows->pair_bytes, panel += 4 * GP_BF16_COLUMNS)
    add_pair(a, rows->row_bytes, true, panel, sum, count);
  if (k % 2) add_pair(a, rows->row_bytes, false, panel, sum, count);
  UNROLL for (int r = 0; r < count; r++) for (int v = 0; v < VECTORS; v++)
      _mm512_storeu_ps(&out[r][16 * v], sum[r * VECTORS + v]);
}

TARGET void gp_bf16_avx512(const gp_bf16_rows *rows, int64_t k, const void *panel,
                           float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  const char *a = rows->a;
  int64_t i = 0;
  for (; i + ROWS <= rows->m; i += ROWS)
    run_tile(a + i * rows->row_bytes, rows, k, panel, out + i, ROWS);
  for (; i + 4 <= rows->m; i += 4) run_tile(a + i * rows->row_bytes, rows, k, panel, out + i, 4);
  for (; i < rows->m; i++) run_tile(a + i * rows->row_bytes, rows, k, panel, out + i, 1);
}

#else

bool gp_bf16_has_avx512(void) { return false; }
bool gp_bf16_likes_avx512(void) { return false; }

void gp_bf16_avx512(const gp_bf16_rows *rows, int64_t k, const void *panel,
                    float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  gp_bf16_emulated(rows, k, panel, out);
}

#endif
