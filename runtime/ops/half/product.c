/* ops/half/product.c - see product.h: which rows meet which panels.
 *
 * A weight comes in panels (a plan packs it once for every change); one that does not is packed
 * panel by panel for each piece of rows. */
#include "ops/half/product.h"

#include <string.h>

#include "base/numbers/half.h"
#include "base/tensor.h"
#include "device/cpu/bf16/bf16.h"
#include "ops/cut.h"

enum {
  COLUMNS = GP_BF16_COLUMNS,
  BLOCK = 4 * COLUMNS, /* rows of dw in a piece: they share the cost of packing x */
  DEPTH = 1024         /* rows of dy and x that are packed at once */
};

typedef float sums[GP_BF16_ROWS][GP_BF16_COLUMNS];

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t panels_of(int64_t n) { return (n + COLUMNS - 1) / COLUMNS; }

/* The right operand of a product: [k, n]. */
typedef struct weight {
  const char *panels; /* NULL: pack from source */
  gp_bf16_source source;
  int64_t k, n;
  void *scratch; /* of one panel */
} weight;

/* Return panel j, which is packed now if the weight is not. */
static const void *panel_at(const weight *w, int64_t j) {
  const size_t bytes = gp_bf16_panel_bytes(w->k);
  if (w->panels) return w->panels + (size_t)j * bytes;
  gp_bf16_pack(&w->source, w->k, j * COLUMNS, smaller(COLUMNS, w->n - j * COLUMNS), w->scratch);
  return w->scratch;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Start each row with the bias of the columns from `first` on, or with zeros. */
static void start(sums s, int64_t rows, const gp_arg *bias, int64_t first, int64_t count) {
  const uint16_t *from = bias ? (const uint16_t *)bias->data + first : NULL;
  float row[COLUMNS] = {0};
  for (int64_t j = 0; from && j < count; j++) row[j] = gp_bf16_widen(from[j]);
  for (int64_t i = 0; i < rows; i++) memcpy(s[i], row, sizeof row);
}

static void round_sums(sums s, int64_t rows, uint16_t *to, int64_t step, int64_t count) {
  for (int64_t i = 0; i < rows; i++, to += step)
    for (int64_t j = 0; j < count; j++) to[j] = gp_bf16_narrow(s[i][j]);
}

/* y = x w + bias for the rows of the span. */
static void multiply_rows(const gp_arg *x, const weight *w, const gp_arg *bias, const gp_arg *y,
                          gp_span span) {
  sums s;
  for (int64_t j = 0; j < panels_of(w->n); j++) {
    const void *panel = panel_at(w, j);
    const int64_t first = j * COLUMNS, count = smaller(COLUMNS, w->n - first);
    for (int64_t r = span.first; r < span.last; r += GP_BF16_ROWS) {
      const int64_t rows = smaller(GP_BF16_ROWS, span.last - r);
      const gp_bf16_rows a = {(const uint16_t *)x->data + r * w->k, rows, 2 * w->k, 4};
      start(s, rows, bias, first, count);
      gp_bf16_multiply(&a, w->k, panel, s);
      round_sums(s, rows, (uint16_t *)y->data + r * w->n + first, w->n, count);
    }
  }
}

/* ---- linear -------------------------------------------------------------------------------- */

gp_status gp_half_linear(const gp_call *call, gp_span span) {
  const gp_arg *x = &call->in[0], *w = &call->in[1];
  const int64_t k = gp_meta_width(x->meta), packed = call->attr->linear.packed;
  const weight right = {.panels = packed ? w->data : NULL,
                        .source = {w->data, .row = 1, .column = k},
                        .k = k,
                        .n = gp_meta_width(call->out[0].meta),
                        .scratch = span.scratch};
  multiply_rows(x, &right, call->n_in == 3 ? &call->in[2] : NULL, &call->out[0], span);
  return GP_OK;
}

/* A weight that is not packed needs scratch for one panel. */
static size_t panel_scratch(const gp_call *call) {
  if (call->attr->linear.packed) return 0;
  return gp_bf16_panel_bytes(gp_meta_width(call->in[0].meta));
}

size_t gp_half_linear_scratch(const gp_call *call) { return panel_scratch(call); }

gp_status gp_half_linear_dx(const gp_call *call, gp_span span) {
  const gp_arg *dy = &call->in[0], *w = &call->in[1];
  const int64_t n = gp_meta_width(call->out[0].meta), packed = call->attr->linear_dx.packed;
  const weight right = {.panels = packed ? w->data : NULL,
                        .source = {w->data, .row = n, .column = 1},
                        .k = gp_meta_width(dy->meta),
                        .n = n,
                        .scratch = span.scratch};
  multiply_rows(dy, &right, NULL, &call->out[0], span);
  return GP_OK;
}

size_t gp_half_linear_dx_scratch(const gp_call *call) { return panel_scratch(call); }

/* ---- gradient of the weight ---------------------------------------------------------------- */

gp_cut gp_half_linear_dw_cut(const gp_call *call) {
  return (gp_cut){call->out[0].meta->shape.dim[0], BLOCK};
}

/* The scratch holds panels of the piece's columns of dy, and one panel of x. */
size_t gp_half_linear_dw_scratch(const gp_call *call) {
  const int64_t rows = gp_meta_rows(call->in[0].meta);
  return (BLOCK / COLUMNS + 1) * gp_bf16_panel_bytes(smaller(rows, DEPTH));
}

/* Move the sums so far between dw and the tile. */
static void move_sums(sums s, float *dw, int64_t step, int64_t rows, int64_t count, bool back) {
  const size_t bytes = (size_t)count * sizeof(float);
  for (int64_t i = 0; i < rows; i++, dw += step) memcpy(back ? dw : s[i], back ? s[i] : dw, bytes);
}

/* Pack `depth` rows of dy and x, and add their product to rows [span.first, span.last) of dw. */
static void add_rows(const gp_call *call, gp_span span, int64_t first, int64_t depth, bool adds) {
  const int64_t n = gp_meta_width(call->in[0].meta), k = gp_meta_width(call->in[1].meta);
  const size_t bytes = gp_bf16_panel_bytes(depth);
  const gp_bf16_source dy = {(const uint16_t *)call->in[0].data + first * n, false, n, 1};
  const gp_bf16_source x = {(const uint16_t *)call->in[1].data + first * k, false, k, 1};
  char *left = span.scratch, *right = left + BLOCK / COLUMNS * bytes;
  sums s = {{0}};
  for (int64_t i = span.first; i < span.last; i += COLUMNS)
    gp_bf16_pack(&dy, depth, i, smaller(COLUMNS, span.last - i),
                 left + (size_t)((i - span.first) / COLUMNS) * bytes);
  for (int64_t j = 0; j < k; j += COLUMNS) {
    const int64_t count = smaller(COLUMNS, k - j);
    gp_bf16_pack(&x, depth, j, count, right);
    for (int64_t i = span.first; i < span.last; i += COLUMNS) {
      const int64_t rows = smaller(COLUMNS, span.last - i);
      const char *a = left + (size_t)((i - span.first) / COLUMNS) * bytes;
      float *dw = (float *)call->out[0].data + i * k + j;
      if (adds)
        move_sums(s, dw, k, rows, count, false);
      else
        memset(s, 0, sizeof s);
      gp_bf16_multiply(&(gp_bf16_rows){a, rows, 4, 4 * COLUMNS}, depth, right, s);
      move_sums(s, dw, k, rows, count, true);
    }
  }
}

gp_status gp_half_linear_dw(const gp_call *call, gp_span span) {
  const int64_t rows = gp_meta_rows(call->in[0].meta), k = gp_meta_width(call->in[1].meta);
  for (int64_t i = span.first; i < span.last; i += BLOCK) {
    const gp_span piece = gp_span_part(span, i, smaller(i + BLOCK, span.last));
    float *dw = (float *)call->out[0].data + i * k;
    if (rows == 0 && !call->accumulate) memset(dw, 0, (size_t)((piece.last - i) * k) * sizeof *dw);
    for (int64_t r = 0; r < rows; r += DEPTH)
      add_rows(call, piece, r, smaller(DEPTH, rows - r), call->accumulate || r > 0);
  }
  return GP_OK;
}

/* ---- matrices ------------------------------------------------------------------------------ */

/* The scratch holds a panel of b and, if a is stored transposed, panels of its columns. */
size_t gp_half_multiply_scratch(const gp_half_matrices *x) {
  const int64_t rows = x->ta ? smaller(x->m, GP_HALF_MATRIX_ROWS) : 0;
  return (size_t)(1 + panels_of(rows)) * gp_bf16_panel_bytes(x->k);
}

void gp_half_multiply(const gp_half_matrices *x, int64_t first, int64_t last, void *scratch) {
  const weight right = {.source = {x->b, .row = x->tb ? 1 : x->n, .column = x->tb ? x->k : 1},
                        .k = x->k,
                        .n = x->n,
                        .scratch = scratch};
  const gp_bf16_source turned = {x->a, false, x->m, 1};
  const size_t bytes = gp_bf16_panel_bytes(x->k);
  char *left = (char *)scratch + bytes;
  sums s;
  for (int64_t r = first; x->ta && r < last; r += COLUMNS)
    gp_bf16_pack(&turned, x->k, r, smaller(COLUMNS, last - r),
                 left + (size_t)((r - first) / COLUMNS) * bytes);
  for (int64_t j = 0; j < panels_of(x->n); j++) {
    const void *panel = panel_at(&right, j);
    const int64_t at = j * COLUMNS, count = smaller(COLUMNS, x->n - at);
    for (int64_t r = first; r < last; r += COLUMNS) {
      const int64_t rows = smaller(COLUMNS, last - r);
      const gp_bf16_rows plain = {x->a + r * x->k, rows, 2 * x->k, 4};
      const gp_bf16_rows packed = {left + (size_t)((r - first) / COLUMNS) * bytes, rows, 4,
                                   4 * COLUMNS};
      start(s, rows, NULL, at, count);
      gp_bf16_multiply(x->ta ? &packed : &plain, x->k, panel, s);
      round_sums(s, rows, x->out + r * x->n + at, x->n, count);
    }
  }
}

/* ---- packing ------------------------------------------------------------------------------- */

/* Return the sides of what a product reads of w [N, K]: [rows, columns]. */
static void sides(const gp_shape *w, bool transposed, int64_t *rows, int64_t *columns) {
  *rows = w->dim[transposed ? 0 : 1];
  *columns = w->dim[transposed ? 1 : 0];
}

size_t gp_half_packed_bytes(const gp_shape *w, bool transposed) {
  int64_t rows, columns;
  sides(w, transposed, &rows, &columns);
  return gp_bf16_packed_bytes(rows, columns);
}

gp_cut gp_half_pack_cut(const gp_call *call) {
  int64_t rows, columns;
  sides(&call->in[0].meta->shape, call->attr->pack_linear.transposed, &rows, &columns);
  return (gp_cut){panels_of(columns), 1};
}

gp_status gp_half_pack(const gp_call *call, gp_span span) {
  const gp_meta *w = call->in[0].meta;
  const bool transposed = call->attr->pack_linear.transposed;
  int64_t rows, columns;
  sides(&w->shape, transposed, &rows, &columns);
  const int64_t step = w->shape.dim[1];
  const gp_bf16_source from = {call->in[0].data, w->dtype == GP_F32, transposed ? step : 1,
                               transposed ? 1 : step};
  const size_t bytes = gp_bf16_panel_bytes(rows);
  for (int64_t j = span.first; j < span.last; j++)
    gp_bf16_pack(&from, rows, j * COLUMNS, smaller(COLUMNS, columns - j * COLUMNS),
                 (char *)call->out[0].data + (size_t)j * bytes);
  return GP_OK;
}
