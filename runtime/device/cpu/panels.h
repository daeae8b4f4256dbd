/* device/cpu/panels.h - f32 products of large weights, in tiles of our own.
 *
 * On Intel's processors dnnl_sgemm loses a fifth of the time where a weight does not stay in the
 * second-level cache: it waits for the weight's rows, which lie in as many pages. Here a weight
 * lies in panels of 64 columns, [depth, 64] one after the other, so that a tile reads memory in one
 * direction, and asks for its part of the next panel meanwhile.
 *
 * Every element is one sum: it begins with the bias, with what is there, or with 0, and adds
 * products in ascending order with one rounding each. So no cut of rows, columns or depth changes a
 * bit. */
#ifndef GP_DEVICE_CPU_PANELS_H
#define GP_DEVICE_CPU_PANELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_PANEL = 64 };

/* Can this build compute such products, and is it faster on this processor than the library? */
bool gp_panels_built(void);
bool gp_panels_pay(void);

/* Are the products of a weight [n, k] computed here: with it, with its transpose, and its gradient?
 * It depends on the shape and the processor alone, because the bits are not dnnl_sgemm's. */
bool gp_panels_serve(int64_t n, int64_t k);

/* A weight as the right factor, [depth, columns], before and after it is packed. */
typedef struct gp_panels_weight {
  int64_t depth, columns;
  const float *data;
  int64_t ld;      /* elements between the rows as stored */
  bool transposed; /* stored as [columns, depth] */
} gp_panels_weight;

/* Pack columns [first, last), first a multiple of GP_PANEL, to where they belong in `panels`:
 * column c's panel begins at element c / 64 * 64 * depth. The last panel is as narrow as it is. */
void gp_panels_pack(const gp_panels_weight *w, int64_t first, int64_t last, float *panels);

/* c = a w + bias: a [rows, depth], c [rows, columns]; columns a multiple of 16. */
typedef struct gp_panels {
  int64_t rows, depth, columns;
  const float *a, *panels, *bias; /* bias: NULL for none */
  int64_t lda, ldc;
  float *c;
} gp_panels;

void gp_panels_multiply(const gp_panels *p);

/* A block of a weight's gradient, summed over places: sums[i, j] = sum of left[p, i] right[p, j].
 * Both operands are copied together first: their rows may lie a multiple of 4 KiB apart, where they
 * share a few lines of every cache. */
typedef struct gp_panels_outer {
  int64_t places, rows, columns; /* at most GP_OUTER_ROWS rows; columns a multiple of 16 */
  const float *left, *right;     /* [places, rows], [places, columns] */
  int64_t ld_left, ld_right, ld; /* ld: of the sums */
  float *sums;
  bool add;      /* to what they hold */
  void *scratch; /* GP_OUTER_SCRATCH bytes */
} gp_panels_outer;

enum {
  GP_OUTER_ROWS = 192,
  GP_OUTER_PLACES = 128, /* copied at once: 32 KiB of the right operand stay in the first cache */
  GP_OUTER_STRIDE = GP_OUTER_ROWS + 16, /* not a multiple of 256 bytes: rows spread over all sets */
  GP_OUTER_SCRATCH = GP_OUTER_PLACES * (GP_OUTER_STRIDE + GP_PANEL) * 4
};

void gp_panels_outer_multiply(const gp_panels_outer *s);

#endif
