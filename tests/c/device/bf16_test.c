/* tests/c/device/bf16_test.c - products of bf16 against sums in f64: odd sizes, both layouts of the
 * left operand, pieces, and every path that this processor runs. */
#include "device/cpu/bf16/bf16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/half.h"
#include "device/cpu/bf16/tiles.h"
#include "device/cpu/bf16/trial.h"
#include "test.h"

enum { M = GP_BF16_ROWS, N = GP_BF16_COLUMNS, MOST = 150 };

static uint32_t state = 1;
static uint16_t draw(void) {
  state = state * 1664525u + 1013904223u;
  return gp_bf16_narrow((float)(state >> 8) * 0x1p-23f - 1);
}

/* A [M, k] by rows and, as the gradient of a weight needs it, by pairs; B [k, N]. */
static struct {
  uint16_t rows[M][MOST], b[MOST][N];
  uint32_t pairs[(MOST + 1) / 2][M], panel[(MOST + 1) / 2][N];
  float out[GP_BF16_ROWS][GP_BF16_COLUMNS], again[GP_BF16_ROWS][GP_BF16_COLUMNS];
} x;

static void fill(int64_t k, int64_t n) {
  memset(&x, 0xff, sizeof x); /* NaN beyond the edges, which no kernel may read */
  for (int64_t i = 0; i < M; i++)
    for (int64_t p = 0; p < k; p++) x.rows[i][p] = draw();
  for (int64_t p = 0; p < k; p++)
    for (int64_t j = 0; j < N; j++) x.b[p][j] = draw();
  for (int64_t p = 0; p < (k + 1) / 2; p++)
    for (int64_t i = 0; i < M; i++)
      x.pairs[p][i] = x.rows[i][2 * p] | (2 * p + 1 < k ? (uint32_t)x.rows[i][2 * p + 1] << 16 : 0);
  gp_bf16_pack(&(gp_bf16_source){x.b, false, N, 1}, k, 0, n, x.panel);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) x.out[i][j] = x.again[i][j] = (float)(i - j);
}

/* Compares the sum of k products in f32 with that of f64; columns beyond n and rows beyond m must
 * stay unchanged. */
static bool is_right(int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < M; i++)
    for (int64_t j = 0; j < N; j++) {
      double want = (double)(i - j), size = fabs(want);
      for (int64_t p = 0; i < m && j < n && p < k; p++) {
        const double term = (double)gp_bf16_widen(x.rows[i][p]) * (double)gp_bf16_widen(x.b[p][j]);
        want += term, size += fabs(term);
      }
      if (!(fabs((double)x.out[i][j] - want) <= 1e-6 * size)) return false;
    }
  return true;
}

static void check_path(gp_bf16_tiles *tiles) {
  static const int64_t sizes[][3] = {{64, 48, 150}, {1, 48, 1},  {7, 5, 33}, {33, 48, 64},
                                     {12, 47, 2},   {64, 1, 31}, {5, 48, 96}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
    fill(k, n);
    tiles(&(gp_bf16_rows){x.rows, m, sizeof x.rows[0], 4}, k, x.panel, x.out);
    CHECK(is_right(m, n, k));
    tiles(&(gp_bf16_rows){x.pairs, m, 4, sizeof x.pairs[0]}, k, x.panel, x.again);
    CHECK(memcmp(x.out, x.again, sizeof x.out) == 0);
    if (m < 2) continue;
    for (int i = 0; i < M; i++) /* in two pieces of rows */
      for (int j = 0; j < N; j++) x.again[i][j] = (float)(i - j);
    tiles(&(gp_bf16_rows){x.rows, 1, sizeof x.rows[0], 4}, k, x.panel, x.again);
    tiles(&(gp_bf16_rows){x.rows[1], m - 1, sizeof x.rows[0], 4}, k, x.panel, x.again + 1);
    CHECK(memcmp(x.out, x.again, sizeof x.out) == 0);
  }
}

TEST(every_path_multiplies) {
  check_path(gp_bf16_emulated);
  if (gp_bf16_has_avx512()) check_path(gp_bf16_avx512);
  if (gp_bf16_has_amx() && gp_bf16_try(gp_bf16_amx)) check_path(gp_bf16_amx);
}

/* f32 is rounded to nearest even while it is packed, and may lie in either order. */
TEST(panels_hold_rounded_pairs) {
  static float b[3][50], turned[50][3];
  uint16_t one[2][N][2], other[2][N][2];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 50; j++) b[i][j] = turned[j][i] = (float)(100 * i + j) / 7;
  for (int first = 0; first < 50; first += N) {
    const int count = 50 - first < N ? 50 - first : N;
    gp_bf16_pack(&(gp_bf16_source){b, true, 50, 1}, 3, first, count, one);
    gp_bf16_pack(&(gp_bf16_source){turned, true, 1, 3}, 3, first, count, other);
    CHECK(memcmp(one, other, sizeof one) == 0);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < N; j++) {
        const bool there = i < 3 && j < count;
        CHECK(one[i / 2][j][i % 2] == (there ? gp_bf16_narrow(b[i][first + j]) : 0));
      }
  }
  CHECK(gp_bf16_packed_bytes(3, 50) == 2 * sizeof one);
}

static void crash(const gp_bf16_rows *rows, int64_t k, const void *panel,
                  float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  (void)rows, (void)k, (void)panel, (void)out;
  __builtin_trap();
}

static void err(const gp_bf16_rows *rows, int64_t k, const void *panel,
                float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  gp_bf16_emulated(rows, k, panel, out);
  out[3][4] += 1;
}

TEST(a_path_is_tried_in_a_child) {
  CHECK(gp_bf16_try(gp_bf16_emulated));
  CHECK(!gp_bf16_try(crash));
  CHECK(!gp_bf16_try(err));
}

TEST_MAIN(every_path_multiplies, panels_hold_rounded_pairs, a_path_is_tried_in_a_child)
