/* ops/convolution/conv_product.c - blocks of a convolution's result, map or image; see conv_walk.h.
 *
 * Both directions are one thing: the source is gathered by the lattice and multiplied with the
 * weight, packed so that the channels of the result lie side by side. */
#include <string.h>

#include "ops/dense/dense.h"
#include "ops/convolution/conv_walk.h"

static char *element(const void *data, int64_t index, size_t item) {
  return (char *)(uintptr_t)data + (size_t)index * item;
}

/* ---- the packed weight ---------------------------------------------------------------------- */

/* Rows [first, last) of one tap. */
static void pack_rows(const gp_shape *w, bool transposed, gp_dtype dtype, const void *from,
                      void *to, int64_t tap, int64_t first, int64_t last) {
  const int64_t taps = w->dim[2] * w->dim[3], in = w->dim[1] * taps; /* in: of one output */
  const int64_t row_step = transposed ? in : taps, step = transposed ? taps : in;
  const int64_t middle = w->dim[transposed ? 0 : 1], width = w->dim[transposed ? 1 : 0];
  const size_t item = gp_dtype_size(dtype);
  const gp_shape box = {2, {last - first, width}};
  const gp_meta source = {dtype, box, {row_step, step}, 0}, made = {dtype, box, {width, 1}, 0};
  gp_view_copy(&made, element(to, (tap * middle + first) * width, item), &source,
               element(from, tap + first * row_step, item));
}

void gp_conv_pack(const gp_shape *weight, bool transposed, gp_dtype dtype, const void *from,
                  void *to, gp_span rows) {
  const int64_t middle = weight->dim[transposed ? 0 : 1];
  for (int64_t row = rows.first; row < rows.last;) {
    const int64_t tap = row / middle, end = (tap + 1) * middle;
    const int64_t last = end < rows.last ? end : rows.last;
    pack_rows(weight, transposed, dtype, from, to, tap, row - tap * middle, last - tap * middle);
    row = last;
  }
}

/* ---- blocks --------------------------------------------------------------------------------- */

static int64_t phases_of(const gp_conv *c, bool transposed) {
  return transposed ? gp_conv_phases(c) : 1;
}

static gp_conv_lattice lattice_of(const gp_conv *c, bool transposed, int64_t phase) {
  return transposed ? gp_conv_image_lattice(c, phase) : gp_conv_map_lattice(c);
}

static int64_t blocks_of(const gp_conv *c, const gp_conv_lattice *l) {
  return (gp_conv_positions(c, l) + GP_CONV_BLOCK - 1) / GP_CONV_BLOCK;
}

int64_t gp_conv_blocks(const gp_conv *c, bool transposed) {
  int64_t blocks = 0;
  for (int64_t phase = 0; phase < phases_of(c, transposed); phase++) {
    gp_conv_lattice l = lattice_of(c, transposed, phase);
    blocks += blocks_of(c, &l);
  }
  return blocks;
}

/* Channels of a group of what is read, and of what is made. */
static int64_t read_channels(const gp_conv *c, bool transposed) {
  return (transposed ? c->map_c : c->image_c) / c->groups;
}

static int64_t made_channels(const gp_conv *c, bool transposed) {
  return (transposed ? c->image_c : c->map_c) / c->groups;
}

/* Taps of one product. Those of a lattice that leaves some out are not neighbours in the packed
 * weight, nor are those of a group of several where the result is the image. */
static int64_t taps_together(const gp_conv *c, bool transposed) {
  const int64_t channels = read_channels(c, transposed);
  if (transposed && (c->groups > 1 || gp_conv_phases(c) > 1)) return 1;
  const int64_t fit = channels > 0 ? GP_CONV_COLUMNS / channels : 1;
  return fit > 1 ? fit : 1;
}

static int64_t columns_of(const gp_conv *c, bool transposed) {
  int64_t taps = c->h.kernel * c->w.kernel, together = taps_together(c, transposed);
  return (taps < together ? taps : together) * read_channels(c, transposed);
}

size_t gp_conv_scratch(const gp_conv *c, bool transposed, size_t item) {
  int64_t width = columns_of(c, transposed) + made_channels(c, transposed);
  return (size_t)(GP_CONV_BLOCK * width) * item;
}

/* One block of one group: where its result is made, and how far its rows are apart. */
typedef struct block {
  const gp_conv_job *job;
  gp_conv_lattice lattice;
  int64_t first, last, group;
  void *columns, *made;
  int64_t ld;
} block;

/* Add the product of the taps [tap, tap + taps). */
static gp_status add_taps(const block *b, int64_t tap, int64_t taps, bool first) {
  const gp_conv_job *job = b->job;
  const gp_conv_lattice *l = &b->lattice;
  const size_t item = gp_dtype_size(job->dtype);
  const int64_t k = read_channels(&job->c, job->transposed),
                n = made_channels(&job->c, job->transposed), depth = k * job->c.groups;
  const gp_conv_part part = {b->first, b->last, tap, taps, b->group * k, k, depth, item};
  const bool plain = gp_conv_is_plain(l);
  if (!plain) gp_conv_gather(l, part, job->source, b->columns);
  const int64_t in_kernel = (l->h.tap + tap / l->w.taps * l->h.tap_step) * job->c.w.kernel +
                            l->w.tap + tap % l->w.taps * l->w.tap_step;
  const int64_t w = job->transposed ? (in_kernel * depth + b->group * k) * n
                                    : in_kernel * k * job->c.map_c + b->group * n;
  gp_gemm g = {.m = b->last - b->first,
               .n = n,
               .k = taps * k,
               .lda = plain ? depth : taps * k,
               .ldb = job->transposed ? n : job->c.map_c,
               .ldc = b->ld,
               .alpha = 1,
               .beta = first && !job->bias ? 0 : 1};
  const void *a = plain ? element(job->source, b->first * depth + b->group * k, item) : b->columns;
  return gp_multiply(job->dtype, g, a, element(job->weight, w, item), b->made);
}

/* What products are added to, or all there is where no tap meets the block. */
static void begin_rows(const block *b, int64_t n, size_t item) {
  const char *bias = b->job->bias ? element(b->job->bias, b->group * n, item) : NULL;
  for (int64_t r = 0; r < b->last - b->first && n > 0; r++) {
    char *row = element(b->made, r * b->ld, item);
    if (bias)
      memcpy(row, bias, (size_t)n * item);
    else
      memset(row, 0, (size_t)n * item);
  }
}

static gp_status make_group(const block *b) {
  const gp_conv_job *job = b->job;
  const int64_t taps = b->lattice.h.taps * b->lattice.w.taps;
  const int64_t together = taps_together(&job->c, job->transposed);
  const int64_t n = made_channels(&job->c, job->transposed);
  if (job->bias || taps == 0) begin_rows(b, n, gp_dtype_size(job->dtype));
  for (int64_t t = 0; t < taps; t += together)
    GP_TRY(add_taps(b, t, taps - t < together ? taps - t : together, t == 0));
  return GP_OK;
}

/* Positions of every second row or column lie apart: they are made in scratch. */
static void spread_rows(const block *b, int64_t n, int64_t depth) {
  const gp_conv *c = &b->job->c;
  const size_t item = gp_dtype_size(b->job->dtype);
  for (int64_t p = b->first; p < b->last && n > 0; p++) {
    int64_t place = gp_conv_place(&b->lattice, p, c->h.image, c->w.image);
    memcpy(element(b->job->result, place * depth + b->group * n, item),
           element(b->made, (p - b->first) * n, item), (size_t)n * item);
  }
}

static gp_status run_groups(block *b) {
  const gp_conv_job *job = b->job;
  const int64_t n = made_channels(&job->c, job->transposed), depth = n * job->c.groups;
  const bool apart = job->transposed && gp_conv_phases(&job->c) > 1;
  const size_t item = gp_dtype_size(job->dtype);
  void *scratch = b->made;
  b->ld = apart ? n : depth;
  for (b->group = 0; b->group < job->c.groups; b->group++) {
    b->made = apart ? scratch : element(job->result, b->first * depth + b->group * n, item);
    GP_TRY(make_group(b));
    if (apart) spread_rows(b, n, depth);
  }
  return GP_OK;
}

gp_status gp_conv_run_block(const gp_conv_job *job, int64_t number, void *scratch) {
  block b = {.job = job, .columns = scratch};
  int64_t phase = 0;
  for (;; phase++) {
    b.lattice = lattice_of(&job->c, job->transposed, phase);
    const int64_t blocks = blocks_of(&job->c, &b.lattice);
    if (number < blocks) break;
    number -= blocks;
  }
  const int64_t count = gp_conv_positions(&job->c, &b.lattice);
  b.first = number * GP_CONV_BLOCK;
  b.last = count - b.first < GP_CONV_BLOCK ? count : b.first + GP_CONV_BLOCK;
  b.made = element(scratch, GP_CONV_BLOCK * columns_of(&job->c, job->transposed),
                   gp_dtype_size(job->dtype));
  return run_groups(&b);
}
