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
  GP_SCATTERED_ROWS = 6,   /* of a tile: with 4 vectors each they take 24 of 32 registers */
  GP_SCATTERED_PANEL = 64, /* columns of a tile, at most */
  GP_SCATTERED_TAPS = 16,  /* of a call, at most */
  GP_SCATTERED_AHEAD = 8   /* places whose rows are asked for before they are read: the second-level
                              cache has answered by then, and the first one has kept them */
};

/* Can the instruction set of this build multiply this many columns efficiently? */
bool gp_scattered_fits(int64_t columns);

/* Rows times matrices, summed over taps. */
typedef struct gp_scattered {
  int64_t at, depth;                      /* elements [at, at + depth) of each row are read */
  const float *weight[GP_SCATTERED_TAPS]; /* of each tap: [depth, columns] */
  const float *ahead[GP_SCATTERED_TAPS];  /* the weight that is read next, of which each tile */
  int64_t ahead_step;                     /* asks for so many elements per row of this one */
  int64_t width;                          /* elements between rows of the weight */
  int64_t column, columns;                /* of the result; they fit and are at most a panel */
  bool add;                               /* to what the result holds, else: */
  const float *bias;                      /* of all columns, or NULL: zeros */
} gp_scattered;

/* What a tile is summed over: numbers of weights, and how far behind a row's address the source
 * of each one is. */
typedef struct gp_scattered_taps {
  int64_t count, weight[GP_SCATTERED_TAPS], offset[GP_SCATTERED_TAPS];
} gp_scattered_taps;

typedef struct gp_scattered_tile {
  int64_t rows; /* 1 .. GP_SCATTERED_ROWS */
  const float *from[GP_SCATTERED_ROWS];
  float *to[GP_SCATTERED_ROWS];
} gp_scattered_tile;

/* to[r][column] of all rows. number: of the tile among those that share the weight. */
void gp_scattered_multiply(const gp_scattered *s, const gp_scattered_taps *taps, int64_t number,
                           const gp_scattered_tile *tile);

/* Sums over places of one row's elements times another's.
 *
 * Rows that lie a multiple of 4 KiB apart share a few lines of every cache and push each other out.
 * With `strip` the columns of a tile are first copied to rows that lie side by side. */
typedef struct gp_scattered_outer {
  int64_t places;
  const float *const *left, *const *right; /* [places], then what gp_scattered_look_ahead adds */
  float *const *strip;                     /* rows of a panel, as many, or NULL */
  int64_t left_at, right_at;               /* the first element of both that is read */
  int64_t rows, columns, ld;               /* of the sums; columns fit */
  bool add;
} gp_scattered_outer;

/* Fill what follows the places of a table. Those who walk it ask for rows so far ahead, and begin
 * again when they are at its end. */
static inline void gp_scattered_look_ahead(const float **rows, int64_t places) {
  for (int64_t i = 0; i < GP_SCATTERED_AHEAD && places > 0; i++) rows[places + i] = rows[i];
}

/* sums[i * ld + j] of all rows and columns. */
void gp_scattered_outer_multiply(const gp_scattered_outer *s, float *sums);

#endif
