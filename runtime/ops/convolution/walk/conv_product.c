/* ops/convolution/walk/conv_product.c - the packed weight, and blocks of a convolution's result,
 * map or image, as products of gathered rows; see conv_walk.h.
 *
 * Both directions work alike: the source is gathered by the lattice and multiplied by the weight,
 * packed so that the channels of the result lie side by side. */
#include <string.h>

#include "device/cpu/scattered.h"
#include "ops/dense/dense.h"
#include "ops/convolution/walk/conv_walk.h"

static char *element(const void *data, int64_t index, size_t item) {
  return (char *)(uintptr_t)data + (size_t)index * item;
}

/* ---- the packed weight ---------------------------------------------------------------------- */

/* Count the columns of a panel. A convolution that is gathered has one panel of all columns. */
static int64_t panel_of(gp_dtype dtype, int64_t width) {
  return dtype == GP_F32 && gp_scattered_fits(width) ? GP_SCATTERED_PANEL : width;
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* Pack rows [first, last) of one tap. */
static void pack_rows(const gp_shape *w, bool transposed, gp_dtype dtype, const void *from,
                      void *to, int64_t tap, int64_t first, int64_t last) {
  const int64_t taps = w->dim[2] * w->dim[3], in = w->dim[1] * taps; /* in: of one output */
  const int64_t row_step = transposed ? in : taps, step = transposed ? taps : in;
  const int64_t middle = w->dim[transposed ? 0 : 1], width = w->dim[transposed ? 1 : 0];
  const int64_t panel = panel_of(dtype, width);
  const size_t item = gp_dtype_size(dtype);
  for (int64_t column = 0; column < width; column += panel) {
    const int64_t columns = at_most(width - column, panel);
    const gp_shape box = {2, {last - first, columns}};
    const gp_meta source = {dtype, box, {row_step, step}, 0}, made = {dtype, box, {columns, 1}, 0};
    gp_view_copy(&made,
                 element(to, taps * middle * column + (tap * middle + first) * columns, item),
                 &source, element(from, tap + first * row_step + column * step, item));
  }
}

void gp_conv_pack(const gp_shape *weight, bool transposed, gp_dtype dtype, const void *from,
                  void *to, gp_span rows) {
  const int64_t middle = weight->dim[transposed ? 0 : 1];
  for (int64_t row = rows.first; row < rows.last;) {
    const int64_t tap = row / middle, end = (tap + 1) * middle;
    const int64_t last = at_most(end, rows.last);
    pack_rows(weight, transposed, dtype, from, to, tap, row - tap * middle, last - tap * middle);
    row = last;
  }
}

gp_conv_weight_part gp_conv_weight_at(const gp_conv_job *job, int64_t group, int64_t tap,
                                      int64_t channel, int64_t column) {
  const int64_t k = gp_conv_read(job), n = gp_conv_made(job), groups = job->c.groups;
  const int64_t middle = job->transposed ? k * groups : k, width = job->transposed ? n : n * groups;
  const int64_t panel = panel_of(job->dtype, width);
  const int64_t row = tap * middle + channel + (job->transposed ? group * k : 0);
  const int64_t at = column + (job->transposed ? 0 : group * n);
  const int64_t first = at / panel * panel, ld = at_most(width - first, panel);
  const int64_t taps = job->c.h.kernel * job->c.w.kernel;
  return (gp_conv_weight_part){element(job->weight, taps * middle * first + row * ld + at - first,
                                       gp_dtype_size(job->dtype)),
                               at_most(first + ld - at, n - column), ld};
}

/* ---- blocks --------------------------------------------------------------------------------- */

static int64_t blocks_of(const gp_conv *c, const gp_conv_lattice *l) {
  return (gp_conv_positions(c, l) + GP_CONV_BLOCK - 1) / GP_CONV_BLOCK;
}

int64_t gp_conv_blocks(const gp_conv_job *job) {
  int64_t blocks = 0;
  if (gp_conv_is_direct(job)) return gp_conv_direct_blocks(&job->c, job->transposed);
  for (int64_t i = 0; i < gp_conv_lattices(&job->c, job->transposed); i++) {
    gp_conv_lattice l = gp_conv_lattice_at(&job->c, job->transposed, i);
    blocks += blocks_of(&job->c, &l);
  }
  return blocks;
}

/* Count the taps of one product. Those of a lattice that leaves some out are not neighbours in the
 * packed weight, nor are those of one group of several if the result is the image. */
static int64_t taps_together(const gp_conv_job *job) {
  const int64_t channels = gp_conv_read(job);
  if (job->transposed && (job->c.groups > 1 || gp_conv_phases(&job->c) > 1)) return 1;
  const int64_t fit = channels > 0 ? GP_CONV_COLUMNS / channels : 1;
  return fit > 1 ? fit : 1;
}

static int64_t columns_of(const gp_conv_job *job) {
  return at_most(job->c.h.kernel * job->c.w.kernel, taps_together(job)) * gp_conv_read(job);
}

size_t gp_conv_scratch(const gp_conv_job *job) {
  if (gp_conv_is_direct(job)) return 0;
  const int64_t width = columns_of(job) + gp_conv_made(job);
  return (size_t)(GP_CONV_BLOCK * width) * gp_dtype_size(job->dtype);
}

/* A gathered block: where its result is made, and how far apart its rows are. */
typedef struct block {
  gp_conv_block of;
  void *made;
  int64_t ld;
} block;

/* Add the product of the taps [tap, tap + taps), panel by panel of the weight. */
static gp_status add_taps(const block *b, int64_t tap, int64_t taps, bool first) {
  const gp_conv_job *job = b->of.job;
  const gp_conv_lattice *l = &b->of.lattice;
  const size_t item = gp_dtype_size(job->dtype);
  const int64_t k = gp_conv_read(job), depth = k * job->c.groups, channel = b->of.group * k;
  const gp_conv_part part = {b->of.first, b->of.last, tap, taps, channel, k, depth, item};
  const bool plain = gp_conv_is_plain(l);
  if (!plain) gp_conv_gather(l, part, job->source, b->of.scratch);
  const void *a = plain ? element(job->source, b->of.first * depth + channel, item) : b->of.scratch;
  for (int64_t column = 0; column < gp_conv_made(job);) {
    const gp_conv_weight_part w =
        gp_conv_weight_at(job, b->of.group, gp_conv_tap(&b->of, tap), 0, column);
    const gp_gemm g = {.m = b->of.last - b->of.first,
                       .n = w.columns,
                       .k = taps * k,
                       .lda = plain ? depth : taps * k,
                       .ldb = w.ld,
                       .ldc = b->ld,
                       .alpha = 1,
                       .beta = first && !job->bias ? 0 : 1};
    GP_TRY(gp_multiply(job->dtype, g, a, w.data, element(b->made, column, item)));
    column += w.columns;
  }
  return GP_OK;
}

/* Write what products are added to; if no tap meets the block, that is the whole result. */
static void begin_rows(const block *b, int64_t n, size_t item) {
  const char *bias = b->of.job->bias ? element(b->of.job->bias, b->of.group * n, item) : NULL;
  for (int64_t r = 0; r < b->of.last - b->of.first && n > 0; r++) {
    char *row = element(b->made, r * b->ld, item);
    if (bias)
      memcpy(row, bias, (size_t)n * item);
    else
      memset(row, 0, (size_t)n * item);
  }
}

static gp_status make_group(const block *b) {
  const gp_conv_job *job = b->of.job;
  const int64_t taps = b->of.lattice.h.taps * b->of.lattice.w.taps;
  const int64_t together = taps_together(job), n = gp_conv_made(job);
  if (job->bias || taps == 0) begin_rows(b, n, gp_dtype_size(job->dtype));
  for (int64_t t = 0; t < taps; t += together)
    GP_TRY(add_taps(b, t, at_most(taps - t, together), t == 0));
  return GP_OK;
}

/* Copy rows to their places: positions of every second row or column lie apart, so they are
 * made in scratch. */
static void spread_rows(const block *b, int64_t n, int64_t depth) {
  const gp_conv *c = &b->of.job->c;
  const size_t item = gp_dtype_size(b->of.job->dtype);
  for (int64_t p = b->of.first; p < b->of.last && n > 0; p++) {
    int64_t place = gp_conv_place(&b->of.lattice, p, c->h.image, c->w.image);
    memcpy(element(b->of.job->result, place * depth + b->of.group * n, item),
           element(b->made, (p - b->of.first) * n, item), (size_t)n * item);
  }
}

static gp_status run_groups(block *b) {
  const gp_conv_job *job = b->of.job;
  const int64_t n = gp_conv_made(job), depth = n * job->c.groups;
  const bool apart = job->transposed && gp_conv_phases(&job->c) > 1;
  const size_t item = gp_dtype_size(job->dtype);
  void *scratch = b->made;
  b->ld = apart ? n : depth;
  for (b->of.group = 0; b->of.group < job->c.groups; b->of.group++) {
    b->made = apart ? scratch : element(job->result, b->of.first * depth + b->of.group * n, item);
    GP_TRY(make_group(b));
    if (apart) spread_rows(b, n, depth);
  }
  return GP_OK;
}

gp_status gp_conv_run_block(const gp_conv_job *job, int64_t number, void *scratch) {
  if (gp_conv_is_direct(job)) {
    gp_conv_run_direct(job, number);
    return GP_OK;
  }
  gp_conv_block of = {.job = job, .scratch = scratch};
  for (int64_t i = 0;; i++) {
    of.lattice = gp_conv_lattice_at(&job->c, job->transposed, i);
    const int64_t blocks = blocks_of(&job->c, &of.lattice);
    if (number < blocks) break;
    number -= blocks;
  }
  of.first = number * GP_CONV_BLOCK;
  of.last = at_most(gp_conv_positions(&job->c, &of.lattice), of.first + GP_CONV_BLOCK);
  block b = {.of = of};
  b.made = element(scratch, GP_CONV_BLOCK * columns_of(job), gp_dtype_size(job->dtype));
  return run_groups(&b);
}
