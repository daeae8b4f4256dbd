/* device/cpu/bf16/bf16.h - matrix products of bf16 operands, summed in f32.
 *
 * C = A B, row-major: A is given by the places of its elements, B is packed in panels. Every
 * element is summed over k in ascending order and rounded at most once, whatever piece of C a call
 * makes: so the bits depend on the path alone. There are three paths (gp_bf16_path_now): AMX,
 * AVX512_BF16, and f32 arithmetic on widened operands, which every processor has. The paths differ
 * in the order in which they round sums.
 *
 * A panel holds 48 columns of B: [pairs of rows of B][48][2], zeros beyond the last column and the
 * last row. All paths read the same panels. */
#ifndef GP_DEVICE_CPU_BF16_BF16_H
#define GP_DEVICE_CPU_BF16_BF16_H

#include "base/status.h"
#include "gpipe/device.h" /* gp_bf16_path_name */

enum {
  GP_BF16_COLUMNS = 48, /* columns of a panel */
  GP_BF16_ROWS = 64     /* most rows of C that one call makes */
};

typedef enum gp_bf16_path {
  GP_BF16_EMULATED,
  GP_BF16_AVX512,
  GP_BF16_AMX,
  GP_BF16_PATHS
} gp_bf16_path;

/* Return the path of all products of this process: the best that really runs on the processor, or
 * the one that GPIPE_CPU_BF16 names (emulate, avx512, amx) if it runs. Threads: any. */
gp_bf16_path gp_bf16_path_now(void);

/* The bytes of k rows of one panel, and of all panels of n columns. */
static inline size_t gp_bf16_panel_bytes(int64_t k) {
  return (size_t)(k + 1) / 2 * GP_BF16_COLUMNS * 4;
}
size_t gp_bf16_packed_bytes(int64_t k, int64_t n);

/* B[k][n] as it lies in memory: element (i, j) at data + i * row + j * column, bf16 or f32. */
typedef struct gp_bf16_source {
  const void *data;
  bool f32;            /* packing rounds the elements to bf16 */
  int64_t row, column; /* elements */
} gp_bf16_source;

/* Write the panel of columns [first, first + count), count <= 48. */
void gp_bf16_pack(const gp_bf16_source *from, int64_t k, int64_t first, int64_t count, void *panel);

/* m <= 64 rows of A: the pair of elements 2 p and 2 p + 1 of row i lies at a + i * row_bytes + p *
 * pair_bytes. If k is odd, the last pair has one element too many: it is not read if pair_bytes is
 * 4, else it must be readable and finite. */
typedef struct gp_bf16_rows {
  const void *a;
  int64_t m, row_bytes, pair_bytes;
} gp_bf16_rows;

/* out[m][48] += A panel, f32. */
void gp_bf16_multiply(const gp_bf16_rows *rows, int64_t k, const void *panel,
                      float out[GP_BF16_ROWS][GP_BF16_COLUMNS]);

#endif
