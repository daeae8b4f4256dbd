/* ops/convolution/walk/conv_direct.c - blocks of a convolution's result that read the source in
 * place; see conv_walk.h.
 *
 * For each tap a table says where every position finds its channels, or zeros outside of the
 * source. The result is summed in passes over parts of the depth, each small enough that its panel
 * of the weight stays in the second-level cache while all tiles of the block go over it. */
#include <string.h>

#include "base/tensor.h"
#include "device/cpu/scattered.h"
#include "ops/convolution/walk/conv_walk.h"

enum { DEPTH = 576 }; /* taps times channels of a pass, at most: 144 KiB of a panel */

_Static_assert(GP_CONV_BLOCK % GP_SCATTERED_ROWS == 0, "a block is whole tiles");

bool gp_conv_is_direct(const gp_conv_job *job) {
  return job->dtype == GP_F32 && gp_conv_read(job) > 0 && gp_scattered_fits(gp_conv_made(job));
}

/* What a block lays out in scratch; sizes are in bytes. */
typedef struct tables {
  const float *from[GP_SCATTERED_TAPS][GP_CONV_BLOCK];
  float *to[GP_CONV_BLOCK];
} tables;

static size_t row_bytes(int64_t channels) {
  return ((size_t)channels * sizeof(float) + 63) / 64 * 64;
}

/* Behind the tables lie a row of zeros, and a row that takes what tiles make beyond the block. */
size_t gp_conv_direct_scratch(const gp_conv_job *job) {
  return sizeof(tables) + row_bytes(gp_conv_read(job)) + row_bytes(gp_conv_made(job));
}

/* Find the rows of the result. */
static void find_rows(const gp_conv_block *b, tables *t, float *beyond) {
  const gp_conv_job *job = b->job;
  const int64_t n = gp_conv_made(job), depth = n * job->c.groups;
  for (int64_t r = 0; r < GP_CONV_BLOCK; r++) {
    int64_t place = b->first + r;
    const bool inside = place < b->last;
    if (inside && job->transposed)
      place = gp_conv_place(&b->lattice, place, job->c.h.image, job->c.w.image);
    t->to[r] = inside ? (float *)job->result + place * depth + b->group * n : beyond;
  }
}

/* Point the tables at taps [tap, tap + taps) of the lattice. */
static void point(const gp_conv_block *b, tables *t, const float *zeros, int64_t tap,
                  int64_t taps) {
  const int64_t k = gp_conv_read(b->job);
  gp_conv_part part = {
      .first = b->first, .last = b->last, .channel = b->group * k, .depth = k * b->job->c.groups};
  for (int64_t i = 0; i < taps; i++) {
    part.tap = tap + i;
    gp_conv_point(&b->lattice, &part, b->job->source, zeros, t->from[i]);
    for (int64_t r = b->last - b->first; r < GP_CONV_BLOCK; r++) t->from[i][r] = zeros;
  }
}

/* Run one pass: channels [s->at, s->at + s->depth) of s->taps taps; if no tap meets the lattice, it
 * writes the bias alone. */
static void run_pass(const gp_conv_block *b, const tables *t, gp_scattered *s, int64_t tap) {
  const int64_t n = gp_conv_made(b->job), rows = b->last - b->first;
  for (int64_t column = 0; column < n;) {
    gp_conv_weight_part w = gp_conv_weight_at(b, 0, s->at, column);
    for (int64_t i = 0; i < s->taps; i++) {
      w = gp_conv_weight_at(b, gp_conv_tap(b, tap + i), s->at, column);
      s->weight[i] = w.data;
    }
    s->width = w.ld, s->columns = w.columns, s->column = column;
    for (int64_t r = 0; r < rows; r += GP_SCATTERED_ROWS) gp_scattered_multiply(s, r, t->to + r);
    column += w.columns;
  }
}

void gp_conv_run_direct(const gp_conv_block *b) {
  const int64_t k = gp_conv_read(b->job), taps = b->lattice.h.taps * b->lattice.w.taps;
  tables *t = b->scratch;
  float *zeros = (float *)(void *)(t + 1), *beyond = zeros + row_bytes(k) / sizeof *zeros;
  const int64_t fit = k < DEPTH ? DEPTH / k : 1;
  const int64_t together = fit < GP_SCATTERED_TAPS ? fit : GP_SCATTERED_TAPS;
  gp_scattered s = {.from = t->from[0], .rows = GP_CONV_BLOCK};
  if (b->job->bias) s.bias = (const float *)b->job->bias + b->group * gp_conv_made(b->job);
  memset(zeros, 0, row_bytes(k) + row_bytes(gp_conv_made(b->job)));
  find_rows(b, t, beyond);
  if (taps == 0) run_pass(b, t, &s, 0);
  for (int64_t tap = 0; tap < taps; tap += together) {
    s.taps = taps - tap < together ? taps - tap : together;
    point(b, t, zeros, tap, s.taps);
    for (s.at = 0; s.at < k; s.at += DEPTH, s.add = true) {
      s.depth = k - s.at < DEPTH ? k - s.at : DEPTH;
      run_pass(b, t, &s, tap);
    }
  }
}
