/* device/cpu/scattered.h - f32 products of rows that lie anywhere in memory: convolutions use them
 * to avoid copying their input together first.
 *
 * Sums stay in registers while a tile reads all its operands. Every element is summed in the order
 * of the arguments with one rounding per step, whatever tile it is in, so cutting the result
 * changes no bit. */
#ifndef GP_DEVICE_CPU_SCATTERED_H
#define GP_DEVICE_CPU_SCATTERED_H

#include <stdbool.h>
#include <stdint.h>

enum {
  GP_SCATTERED_ROWS = 6,   /* rows of a tile: with 4 vectors each they take 24 of 32 registers */
  GP_SCATTERED_PANEL = 64, /* most columns of a tile */
  GP_SCATTERED_TAPS = 16   /* most taps of a call */
};

/* Can the instruction set of this build multiply this many columns efficiently? */
bool gp_scattered_fits(int64_t columns);

/* Rows times matrices, summed over taps. */
typedef struct gp_scattered {
  const float *const *from;               /* [taps, rows]: where each source row begins */
  int64_t rows, taps;                     /* rows: how many addresses lie between two taps */
  int64_t at, depth;                      /* elements [at, at + depth) of each source row are
                                           * read */
  const float *weight[GP_SCATTERED_TAPS]; /* one matrix per tap: [depth, columns] */
  int64_t width;                          /* elements between rows of the weight */
  int64_t column, columns;                /* columns of the result to compute; they fit, and are at
                                           * most a panel */
  bool add;                               /* add to what the result holds; else start from the
                                           * bias */
  const float *bias;                      /* [columns of the result], or NULL: zeros */
} gp_scattered;

/* to[r][column] of GP_SCATTERED_ROWS rows, from rows of `from` that begin at `row`. */
void gp_scattered_multiply(const gp_scattered *s, int64_t row, float *const *to);

/* The outer products of two rows, summed over places. */
typedef struct gp_scattered_outer {
  int64_t places;
  const float *const *left, *const *right; /* [places] */
  int64_t left_at, right_at;               /* the first element that is read of each row */
  int64_t rows, columns, ld;               /* of the sums; gp_scattered_fits(columns) */
  bool add;
} gp_scattered_outer;

/* Compute sums[i * ld + j] for all rows and columns. */
void gp_scattered_outer_multiply(const gp_scattered_outer *s, float *sums);

#endif
