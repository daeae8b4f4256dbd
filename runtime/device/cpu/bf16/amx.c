/* device/cpu/bf16/amx.c - products of bf16 operands by tdpbf16ps on tiles of 16 rows of 64 bytes.
 *
 * Three tiles hold the sums of 16 rows and the panel's 48 columns. Data that does not fill a tile
 * (the last rows, the end of k, an A whose pairs are not adjacent) is copied into a whole one and
 * padded with zeros. */
#include <string.h>

#include "device/cpu/bf16/tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TARGET __attribute__((target("amx-tile,amx-bf16")))

enum { ROWS = 16, PAIRS = 16 };
enum { REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 }; /* of arch_prctl, since Linux 5.16 */
enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };  /* of leaf 7, edx */

bool gp_bf16_has_amx(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!(d & AMX_BF16) || !(d & AMX_TILE)) return false;
  return syscall(SYS_arch_prctl, REQ_XCOMP_PERM, TILE_DATA) == 0;
}

/* The operand of ldtilecfg, as the instruction reads it. */
typedef struct configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} configuration;

TARGET static void configure(void) {
  configuration c = {.palette = 1};
  for (int t = 0; t < 8; t++) c.row_bytes[t] = 4 * PAIRS, c.rows[t] = ROWS;
  _tile_loadconfig(&c);
}

/* A whole tile each for `count` rows of A and of B, padded with zeros. */
typedef struct padded {
  uint32_t a[ROWS][PAIRS], b[PAIRS][GP_BF16_COLUMNS];
} padded;

static void copy_a(const char *a, const gp_bf16_rows *rows, int64_t count, int64_t depth,
                   padded *to) {
  memset(to->a, 0, sizeof to->a);
  for (int64_t r = 0; r < count; r++)
    for (int64_t p = 0; p < (depth + 1) / 2; p++)
      to->a[r][p] = gp_bf16_pair(a + r * rows->row_bytes + p * rows->pair_bytes, 2 * p + 1 < depth);
}

/* Add the products of 32 rows of the panel, or of the fewer that are left. */
TARGET static void add_block(const char *a, const gp_bf16_rows *rows, int64_t count, int64_t depth,
                             const char *panel) {
  padded own;
  const void *left = a;
  int64_t step = rows->row_bytes;
  if (count < ROWS || depth < 2 * PAIRS || rows->pair_bytes != 4) {
    copy_a(a, rows, count, depth, &own);
    left = own.a, step = sizeof own.a[0];
  }
  if (depth < 2 * PAIRS) {
    const size_t bytes = (size_t)(depth + 1) / 2 * sizeof own.b[0];
    memset(own.b, 0, sizeof own.b);
    panel = memcpy(own.b, panel, bytes);
  }
  _tile_loadd(3, left, step);
  _tile_loadd(4, panel, 4 * GP_BF16_COLUMNS);
  _tile_loadd(5, panel + 64, 4 * GP_BF16_COLUMNS);
  _tile_loadd(6, panel + 128, 4 * GP_BF16_COLUMNS);
  _tile_dpbf16ps(0, 3, 4);
  _tile_dpbf16ps(1, 3, 5);
  _tile_dpbf16ps(2, 3, 6);
}

/* Tiles always have ROWS rows: `out` has room beyond A's last row, and the zeros that pad A leave
 * what is there unchanged. */
TARGET void gp_bf16_amx(const gp_bf16_rows *rows, int64_t k, const void *panel,
                        float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  enum { STEP = 4 * GP_BF16_COLUMNS };
  configure();
  for (int64_t i = 0; i < rows->m; i += ROWS) {
    const int64_t count = rows->m - i < ROWS ? rows->m - i : ROWS;
    const char *a = (const char *)rows->a + i * rows->row_bytes, *b = panel;
    _tile_loadd(0, &out[i][0], STEP);
    _tile_loadd(1, &out[i][16], STEP);
    _tile_loadd(2, &out[i][32], STEP);
    for (int64_t p = 0; p < k; p += 2 * PAIRS, b += PAIRS * STEP, a += PAIRS * rows->pair_bytes)
      add_block(a, rows, count, k - p < 2 * PAIRS ? k - p : 2 * PAIRS, b);
    _tile_stored(0, &out[i][0], STEP);
    _tile_stored(1, &out[i][16], STEP);
    _tile_stored(2, &out[i][32], STEP);
  }
  _tile_release();
}

#else

bool gp_bf16_has_amx(void) { return false; }

void gp_bf16_amx(const gp_bf16_rows *rows, int64_t k, const void *panel,
                 float out[GP_BF16_ROWS][GP_BF16_COLUMNS]) {
  gp_bf16_emulated(rows, k, panel, out);
}

#endif
