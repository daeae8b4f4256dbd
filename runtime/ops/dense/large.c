/* ops/dense/large.c - linear and its gradients by panels; see large.h.
 *
 * A plan packs the weight, once for its transpose and once for itself, and a block of rows goes
 * through all panels. A weight that is not packed is packed here, panel by panel, for the rows of a
 * piece. A gradient is cut into blocks of the weight, each of which sums over all rows. */
#include "ops/dense/large.h"

#include "base/tensor.h"
#include "ops/dense/dense.h"

/* ---- products with the weight --------------------------------------------------------------- */

/* A product and the weight that it reads, which is packed already if `packed`. */
typedef struct product {
  gp_panels all; /* of all rows; panels: if packed */
  gp_panels_weight weight;
  bool packed;
} product;

/* Rows that read a panel one after the other. */
static gp_panels rows_of(const product *p, gp_span span) {
  gp_panels rows = p->all;
  rows.a += span.first * rows.lda, rows.c += span.first * rows.ldc;
  rows.rows = span.last - span.first;
  return rows;
}

/* Multiplies with one panel after the other, which is packed first. */
static void multiply_packing(const product *p, gp_span span) {
  gp_panels part = rows_of(p, span);
  for (int64_t c = 0; c < p->all.columns; c += GP_PANEL) {
    const int64_t left = p->all.columns - c;
    gp_panels_weight w = p->weight;
    w.data += w.transposed ? c * w.ld : c;
    part.columns = left < GP_PANEL ? left : GP_PANEL;
    gp_panels_pack(&w, 0, part.columns, span.scratch);
    part.panels = span.scratch;
    gp_panels_multiply(&part);
    part.c += part.columns;
    if (part.bias) part.bias += part.columns;
  }
}

static gp_status run_product(const product *p, gp_span span) {
  const gp_panels rows = rows_of(p, span);
  if (rows.rows > 0 && p->packed) gp_panels_multiply(&rows);
  if (rows.rows > 0 && !p->packed) multiply_packing(p, span);
  return GP_OK;
}

/* out [.., columns] = in[0] [.., depth] times in[1]. */
static product product_of(const gp_call *call, int64_t packed) {
  const int64_t depth = gp_meta_width(call->in[0].meta), n = gp_meta_width(call->out[0].meta);
  return (product){.all = {.depth = depth,
                           .columns = n,
                           .a = call->in[0].data,
                           .panels = call->in[1].data,
                           .lda = depth,
                           .ldc = n,
                           .c = call->out[0].data},
                   .weight = {.depth = depth, .columns = n, .data = call->in[1].data},
                   .packed = packed != 0};
}

/* A panel of the weight. */
static size_t scratch_of(const gp_call *call, int64_t packed) {
  return packed ? 0 : (size_t)gp_meta_width(call->in[0].meta) * GP_PANEL * sizeof(float);
}

gp_status gp_large_linear(const gp_call *call, gp_span span) {
  product p = product_of(call, call->attr->linear.packed);
  p.weight.ld = p.weight.depth, p.weight.transposed = true;
  if (call->n_in == 3) p.all.bias = call->in[2].data;
  return run_product(&p, span);
}

size_t gp_large_linear_scratch(const gp_call *call) {
  return scratch_of(call, call->attr->linear.packed);
}

gp_status gp_large_linear_dx(const gp_call *call, gp_span span) {
  product p = product_of(call, call->attr->linear_dx.packed);
  p.weight.ld = p.weight.columns;
  return run_product(&p, span);
}

size_t gp_large_linear_dx_scratch(const gp_call *call) {
  return scratch_of(call, call->attr->linear_dx.packed);
}

/* ---- the weight's gradient ------------------------------------------------------------------ */

/* Blocks of a gradient [N, K], `across` of them beside each other. */
typedef struct grid {
  int64_t rows, columns, across, blocks;
} grid;

/* The size of parts as even as steps allow, none longer than `most`. */
static int64_t even_part(int64_t total, int64_t most, int64_t step) {
  const int64_t parts = (total + most - 1) / most, size = (total + parts - 1) / parts;
  return (size + step - 1) / step * step;
}

/* Wide blocks copy less of what they read. But a team wants some to share, and Ctrl-C not to wait
 * for long. */
static grid grid_of(const gp_call *call) {
  enum { TILE_ROWS = 6, SHARED = 4, LAST = 3 };
  static const int64_t widths[] = {384, 192, 128, 64};
  const gp_shape *dw = &call->out[0].meta->shape;
  const double rows = (double)gp_meta_rows(call->in[0].meta);
  grid g = {.rows = even_part(dw->dim[0], GP_OUTER_ROWS, TILE_ROWS)};
  for (int i = 0; i <= LAST; i++) {
    g.columns = even_part(dw->dim[1], widths[i], GP_PANEL);
    g.across = (dw->dim[1] + g.columns - 1) / g.columns;
    g.blocks = g.across * ((dw->dim[0] + g.rows - 1) / g.rows);
    const double flop = 2 * rows * (double)g.rows * (double)g.columns;
    if (g.blocks >= SHARED && flop <= GP_MOST_OF_A_PIECE) break;
  }
  return g;
}

gp_cut gp_large_linear_dw_cut(const gp_call *call) { return (gp_cut){grid_of(call).blocks, 1}; }

gp_status gp_large_linear_dw(const gp_call *call, gp_span span) {
  const grid g = grid_of(call);
  const gp_shape *dw = &call->out[0].meta->shape;
  const int64_t n = dw->dim[0], k = dw->dim[1];
  for (int64_t unit = span.first; unit < span.last; unit++) {
    const int64_t row = unit / g.across * g.rows, column = unit % g.across * g.columns;
    const gp_panels_outer block = {.places = gp_meta_rows(call->in[0].meta),
                                   .rows = n - row < g.rows ? n - row : g.rows,
                                   .columns = k - column < g.columns ? k - column : g.columns,
                                   .left = (const float *)call->in[0].data + row,
                                   .right = (const float *)call->in[1].data + column,
                                   .ld_left = n,
                                   .ld_right = k,
                                   .ld = k,
                                   .sums = (float *)call->out[0].data + row * k + column,
                                   .add = call->accumulate,
                                   .scratch = span.scratch};
    gp_panels_outer_multiply(&block);
  }
  return GP_OK;
}

size_t gp_large_linear_dw_scratch(const gp_call *call) {
  (void)call;
  return GP_OUTER_SCRATCH;
}

/* ---- packing -------------------------------------------------------------------------------- */

/* What the panels are of: [K, N], or [N, K] for linear_dx. */
static gp_panels_weight weight_of(const gp_call *call) {
  const gp_shape *w = &call->in[0].meta->shape;
  const bool transposed = !call->attr->pack_linear.transposed;
  return (gp_panels_weight){.depth = w->dim[transposed ? 1 : 0],
                            .columns = w->dim[transposed ? 0 : 1],
                            .data = call->in[0].data,
                            .ld = w->dim[1],
                            .transposed = transposed};
}

gp_cut gp_large_pack_cut(const gp_call *call) {
  const gp_panels_weight w = weight_of(call);
  return (gp_cut){(w.columns + GP_PANEL - 1) / GP_PANEL, 1};
}

gp_status gp_large_pack(const gp_call *call, gp_span span) {
  const gp_panels_weight w = weight_of(call);
  const int64_t last = span.last * GP_PANEL;
  gp_panels_pack(&w, span.first * GP_PANEL, last < w.columns ? last : w.columns, call->out[0].data);
  return GP_OK;
}
