/* ops/shape/boxes.c - a span of rows as boxes of the last two dims; see boxes.h.
 *
 * gp_view_copy can walk boxes (tiles for transpositions, long lines), and a span of rows is a few
 * of them: a ragged beginning, whole blocks, a ragged end. */
#include "ops/shape/boxes.h"

#include "base/tensor.h"
#include "ops/cut.h"

/* Both sides in the output's shape, without dims of size 1 before the last. */
typedef struct pair {
  gp_meta to, from;
  char *to_data;
  const char *from_data;
} pair;

static void append_dim(gp_meta *meta, int64_t size, int64_t stride) {
  meta->shape.dim[meta->shape.rank] = size;
  meta->stride[meta->shape.rank++] = stride;
}

static pair align(const gp_arg *to, const gp_arg *from) {
  pair p = {.to_data = to->data, .from_data = from->data};
  p.to.dtype = to->meta->dtype;
  p.from.dtype = from->meta->dtype;
  int rank = to->meta->shape.rank, extra = rank - from->meta->shape.rank;
  for (int d = 0; d < rank; d++) {
    int64_t size = to->meta->shape.dim[d];
    if (size == 1 && d < rank - 1) continue;
    bool repeated = d < extra || from->meta->shape.dim[d - extra] == 1;
    append_dim(&p.to, size, to->meta->stride[d]);
    append_dim(&p.from, size, repeated ? 0 : from->meta->stride[d - extra]);
  }
  return p;
}

/* Return the part of a side from dim `first` on, with `n` in place of the first size. */
static gp_meta inner_meta(const gp_meta *meta, int first, int64_t n) {
  gp_meta box = {.dtype = meta->dtype};
  for (int d = first; d < meta->shape.rank; d++)
    append_dim(&box, d == first ? n : meta->shape.dim[d], meta->stride[d]);
  return box;
}

static int64_t byte_offset(const gp_meta *meta, int64_t position) {
  return position * (int64_t)gp_dtype_size(meta->dtype);
}

/* Copy n steps of dim `d` from step `at` on; both positions are in elements. */
static void copy_box(const pair *p, int d, int64_t n, const int64_t position[2]) {
  gp_meta to = inner_meta(&p->to, d, n), from = inner_meta(&p->from, d, n);
  gp_view_copy(&to, p->to_data + byte_offset(&to, position[0]), &from,
               p->from_data + byte_offset(&from, position[1]));
}

/* Find the element positions, in both sides, of step `flat` counted over dims 0 .. d. */
static void locate(const pair *p, int d, int64_t flat, int64_t position[2]) {
  position[0] = position[1] = 0;
  for (; d >= 0; d--) {
    int64_t index = flat % p->to.shape.dim[d];
    flat /= p->to.shape.dim[d];
    position[0] += index * p->to.stride[d];
    position[1] += index * p->from.stride[d];
  }
}

/* Copy steps [first, last), counted over dims 0 .. d, in the largest boxes that they hold: a box is
 * some steps of one dim with all of the dims behind it. */
static void copy_steps(const pair *p, int d, int64_t first, int64_t last) {
  while (first < last) {
    int level = d;
    int64_t block = 1, position[2]; /* steps in one index of dim `level` */
    while (level > 0 && first % (block * p->to.shape.dim[level]) == 0 &&
           last - first >= block * p->to.shape.dim[level])
      block *= p->to.shape.dim[level--];
    int64_t size = p->to.shape.dim[level], left = size - first / block % size;
    int64_t n = (last - first) / block < left ? (last - first) / block : left;
    locate(p, d, first, position);
    copy_box(p, level, n, position);
    first += n * block;
  }
}

void gp_copy_units(const gp_call *call, gp_span span, const gp_arg *from) {
  const gp_meta *out = call->out[0].meta;
  int64_t n = gp_meta_numel(out);
  if (n == 0) return;
  pair p = align(&call->out[0], from);
  int rank = p.to.shape.rank;
  if (rank >= 2) {
    copy_steps(&p, rank - 2, span.first, span.last);
  } else if (rank == 1) {
    int64_t first, last;
    gp_rows_elements(n, gp_rows_count(out), span, &first, &last);
    copy_steps(&p, 0, first, last);
  } else {
    copy_box(&p, 0, 1, (const int64_t[]){0, 0});
  }
}

/* ---- cut ------------------------------------------------------------------------------------ */

/* Steps of a block: the tiles of gp_view_copy are no longer. If a dim has few steps (colours) each
 * line may as well be copied alone. */
enum { TILE = 64, FEW = 16 };

/* Return the dim whose neighbours lie side by side; -1 if there is none. */
static int dense_dim(const gp_meta *meta) {
  for (int d = meta->shape.rank - 1; d >= 0; d--)
    if (meta->stride[d] == 1 && meta->shape.dim[d] > 1) return d;
  return -1;
}

/* Count the rows in a block of steps of dim d. */
static int64_t rows_of_steps(const gp_shape *shape, int d) {
  if (d < 0 || d >= shape->rank - 1 || shape->dim[d] < FEW) return 1;
  int64_t rows = shape->dim[d] < TILE ? shape->dim[d] : TILE;
  for (int inner = d + 1; inner < shape->rank - 1; inner++) rows *= shape->dim[inner];
  return rows;
}

gp_cut gp_copy_cut(const gp_call *call) {
  const gp_meta *to = call->out[0].meta, *from = call->in[0].meta;
  gp_cut cut = gp_cut_rows(call);
  if (to->shape.rank != from->shape.rank || dense_dim(to) == dense_dim(from)) return cut;
  const int64_t a = rows_of_steps(&to->shape, dense_dim(to));
  const int64_t b = rows_of_steps(&to->shape, dense_dim(from)), most = a > b ? a : b;
  if (cut.grain < most) cut.grain = most;
  return cut;
}

gp_status gp_copy_run(const gp_call *call, gp_span span) {
  gp_copy_units(call, span, &call->in[0]);
  return GP_OK;
}
