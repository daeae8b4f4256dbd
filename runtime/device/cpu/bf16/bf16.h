/* device/cpu/bf16/bf16.h - matrix products of bf16 operands, summed in f32.
 *
 * C = A B, row-major: A by its elements' places, B packed in panels. Every element is summed over k
 * in ascending order and rounded at most once, whatever the piece of C that a call makes: so the
 * bits are those of the path alone. There are three paths (gp_bf16_path_now): AMX, AVX512_BF16, and
 * f32 arithmetic on widened operands, which every processor has. The paths differ in the order in
 * which they round sums.
 *
 * A panel holds 48 columns of B: [pairs of rows of B][48][2], zeros beyond the last column and the
 * last row. All paths read the same panels. */
#ifndef GP_DEVICE_CPU_BF16_BF16_H
#define GP_DEVICE_CPU_BF16_BF16_H

#include "base/status.h"
#include "gpipe/device.h" /* gp_bf16_path_name */

enum {
  GP_BF16_COLUMNS = 48, /* of a panel */
  GP_BF16_ROWS = 64     /* of C that one call makes at most */
};

typedef enum gp_bf16_path {
  GP_BF16_EMULATED,
  GP_BF16_AVX512,
  GP_BF16_AMX,
  GP_BF16_PATHS
} gp_bf16_path;

/* The path of all products of this process: the best that the processor really runs, or the one
 * that GPIPE_CPU_BF16 names (emulate, avx512, amx) where it runs. Threads: any. */
gp_bf16_path gp_bf16_path_now(void);

/* Bytes of k rows of one panel; and of all panels of n columns. */
static inline size_t gp_bf16_panel_bytes(int64_t k) {
  return (size_t)(k + 1) / 2 * GP_BF16_COLUMNS * 4;
}
size_t gp_bf16_packed_bytes(int64_t k, int64_t n);

/* B[k][n] as it lies: element (i, j) at data + i * row + j * column, of bf16 or f32. */
typedef struct gp_bf16_source {
  const void *data;
  bool f32;            /* rounded on the way */
  int64_t row, column; /* elements */
} gp_bf16_source;

/* Write the panel of columns [first, first + count), count <= 48. */
void gp_bf16_pack(const gp_bf16_source *from, int64_t k, int64_t first, int64_t count, void *panel);

/* m <= 64 rows of A: the pair of elements 2 p and 2 p + 1 of row i lies at
 * a + i * row_bytes + p * pair_bytes. Where k is odd, the second of the last pair is not read if
 * pair_bytes is 4; else it is there, and finite. */
typedef struct gp_bf16_rows {
  const void *a;
  int64_t m, row_bytes, pair_bytes;
} gp_bf16_rows;

/* out[m][48] += A panel, f32. */
void gp_bf16_multiply(const gp_bf16_rows *rows, int64_t k, const void *panel,
                      float out[GP_BF16_ROWS][GP_BF16_COLUMNS]);

#endif
