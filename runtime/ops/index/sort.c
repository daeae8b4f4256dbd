/* ops/index/sort.c - x -> its elements in order along a dim, and their positions; any dtype.
 *
 * Elements become keys of 64 bits that sort as integers in the order of the elements (NaN the
 * greatest, 0 and -0 equal). So one stable merge of (key, position) serves every dtype and, with
 * the bits of keys inverted, both directions. The gradient goes back to the positions. */
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/index/lines.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_infer_dim(&sig->in[0]->shape, sig->attr->sort.dim));
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &sig->in[0]->shape));
  return gp_infer_out(sig, GP_I64, &sig->in[0]->shape);
}

static gp_status vjp(gp_vjp *v) {
  const int64_t dim = v->attr->sort.dim;
  if (v->dout[0] == GP_NONE) return GP_OK;
  gp_attrs attrs = {.scatter_sum = {dim, gp_vjp_meta(v, v->in[0])->shape.dim[dim]}};
  return gp_build(v->builder, GP_OP_scatter_sum, &attrs, (gp_ref[]){v->dout[0], v->out[1]}, 2,
                  &v->din[0]);
}

/* Count about 16 comparisons an element. */
static gp_cost cost(const gp_sig *sig) { return gp_cost_elements(sig, 16); }

static gp_cut cut(const gp_call *call) {
  gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->sort.dim);
  int64_t grain = 1024 / (axis.size > 0 ? axis.size : 1);
  return (gp_cut){.units = axis.outer * axis.inner, .grain = grain > 1 ? grain : 1};
}

/* ---- keys ----------------------------------------------------------------------------------- */

typedef struct entry {
  int64_t key, position; /* position: from 0 */
} entry;

/* Adding 0 turns -0 into 0. */
static int64_t key_of(double value) {
  int64_t bits;
  if (value != value) return INT64_MAX;
  value += 0.0;
  memcpy(&bits, &value, sizeof bits);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

static int64_t key_at(const void *x, gp_dtype dtype, int64_t i) {
  switch (dtype) {
  case GP_F32: return key_of((double)((const float *)x)[i]);
  case GP_F64: return key_of(((const double *)x)[i]);
  case GP_BF16: return key_of((double)gp_bf16_to_float(((const uint16_t *)x)[i]));
  case GP_F16: return key_of((double)gp_f16_to_float(((const uint16_t *)x)[i]));
  case GP_I64: return ((const int64_t *)x)[i];
  case GP_I32: return ((const int32_t *)x)[i];
  default: return ((const uint8_t *)x)[i];
  }
}

/* ---- sorting -------------------------------------------------------------------------------- */

enum { RUN = 16 }; /* entries that are sorted by insertion */

static void insert(entry *e, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const entry moved = e[i];
    int64_t j = i;
    for (; j > 0 && e[j - 1].key > moved.key; j--) e[j] = e[j - 1];
    e[j] = moved;
  }
}

/* Merge a[0 .. na) and b[0 .. nb), which follows it in memory, into `to`; of equal keys a's
 * first. */
static void merge(const entry *a, int64_t na, int64_t nb, entry *to) {
  const entry *b = a + na, *const a_end = b, *const b_end = b + nb;
  while (a < a_end && b < b_end) *to++ = b->key < a->key ? *b++ : *a++;
  while (a < a_end) *to++ = *a++;
  while (b < b_end) *to++ = *b++;
}

/* Sort n entries with as many spare ones; return the one of the two arrays that holds them. */
static entry *sort(entry *from, entry *spare, int64_t n) {
  for (int64_t i = 0; i < n; i += RUN) insert(from + i, n - i < RUN ? n - i : RUN);
  for (int64_t run = RUN; run < n; run *= 2) {
    for (int64_t i = 0; i < n; i += 2 * run) {
      const int64_t na = n - i < run ? n - i : run;
      merge(from + i, na, n - i - na < run ? n - i - na : run, spare + i);
    }
    entry *const sorted = spare;
    spare = from, from = sorted;
  }
  return from;
}

static size_t scratch(const gp_call *call) {
  const gp_shape *shape = &call->in[0].meta->shape;
  return 2 * sizeof(entry) * (size_t)shape->dim[call->attr->sort.dim];
}

static void sort_line(const gp_call *call, const gp_axis *axis, int64_t line, entry *entries) {
  const gp_dtype dtype = call->in[0].meta->dtype;
  const size_t item = gp_dtype_size(dtype);
  const bool turn = call->attr->sort.descending;
  const gp_lines lines = gp_lines_at(axis->inner, line, line + 1);
  const int64_t base = gp_lines_offset(axis, &lines), n = axis->size;
  for (int64_t i = 0; i < n; i++) {
    const int64_t key = key_at(call->in[0].data, dtype, base + i * axis->inner);
    entries[i] = (entry){turn ? ~key : key, i};
  }
  const entry *sorted = sort(entries, entries + n, n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t to = base + i * axis->inner, from = base + sorted[i].position * axis->inner;
    memcpy((char *)call->out[0].data + (size_t)to * item,
           (const char *)call->in[0].data + (size_t)from * item, item);
    if (call->n_out > 1) ((int64_t *)call->out[1].data)[to] = sorted[i].position + 1;
  }
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->sort.dim);
  if (axis.size == 0) return GP_OK;
  for (int64_t line = span.first; line < span.last; line++)
    sort_line(call, &axis, line, span.scratch);
  return GP_OK;
}

const gp_op_def gp_def_sort = {GP_OP_ROW(sort), .infer = infer, .vjp = vjp, .cost = cost,
                               .cpu = {.cut = cut, .run = run, .scratch = scratch}};
