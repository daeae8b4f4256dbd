/* ops/reduce/sum.c - sums over any set of dims of a contiguous value, in one fixed order.
 *
 * Neighbouring dims that are all kept or all reduced are merged. Then either the last dim is
 * reduced and every result adds rows, each summed in the 64-lane order; or it is kept and every
 * result adds single elements, vectorised over the kept ones. Outer reduced indices ascend. One
 * unit makes a result, so the cut changes no bit. f32 and f64 add in their own type, half types in
 * f32, integers exactly (modulo 2^64) in i64. */
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/math/lanes.h"

enum { COLUMNS = 256 }; /* results that a unit keeps in registers and L1 at a time */

typedef union accumulators {
  float f32[COLUMNS];
  double f64[COLUMNS];
  uint64_t u64[COLUMNS];
} accumulators;

/* The loops of a dtype: add a row to the first accumulator, add n elements to n of them, store
 * n. */
typedef struct adder {
  void (*row)(const void *x, int64_t n, accumulators *sum);
  void (*columns)(const void *x, int64_t n, accumulators *sum);
  void (*store)(const accumulators *sum, int64_t n, void *out);
} adder;

#define ADDER(name, T, A, field, TO, load, save)                                                   \
  static void name##_row(const void *data, int64_t n, accumulators *sum) {                         \
    const T *x = data;                                                                             \
    A total;                                                                                       \
    GP_LANE_SUM(A, total, n, i, (A)load(x[i]));                                                    \
    sum->field[0] += total;                                                                        \
  }                                                                                                \
  static void name##_columns(const void *data, int64_t n, accumulators *sum) {                     \
    const T *x = data;                                                                             \
    for (int64_t i = 0; i < n; i++) sum->field[i] += (A)load(x[i]);                                \
  }                                                                                                \
  static void name##_store(const accumulators *sum, int64_t n, void *out) {                        \
    for (int64_t i = 0; i < n; i++) ((TO *)out)[i] = (TO)save(sum->field[i]);                      \
  }

ADDER(f32, float, float, f32, float, , )
ADDER(f64, double, double, f64, double, , )
ADDER(bf16, uint16_t, float, f32, uint16_t, gp_bf16_to_float, gp_bf16_from_float)
ADDER(f16, uint16_t, float, f32, uint16_t, gp_f16_to_float, gp_f16_from_float)
ADDER(i64, int64_t, uint64_t, u64, int64_t, , )
ADDER(i32, int32_t, uint64_t, u64, int64_t, , )
ADDER(u8, uint8_t, uint64_t, u64, int64_t, , )

#define ROW(name)                                                                                  \
  { name##_row, name##_columns, name##_store }
static const adder adders[GP_DTYPE_COUNT] = {
    [GP_F32] = ROW(f32), [GP_F64] = ROW(f64), [GP_BF16] = ROW(bf16), [GP_F16] = ROW(f16),
    [GP_I64] = ROW(i64), [GP_I32] = ROW(i32), [GP_U8] = ROW(u8),     [GP_BOOL] = ROW(u8),
};

/* Dims with the strides of the input, outermost first. */
typedef struct dims {
  int count;
  int64_t size[GP_MAX_RANK], stride[GP_MAX_RANK], total; /* total: product of the sizes */
} dims;

/* The last dims of one kind are one line of `width` elements; the dims before it are listed. */
typedef struct plan {
  dims kept, reduced;
  bool line_reduced;
  int64_t width;
} plan;

static bool is_reduced(const gp_attrs *attrs, int d) {
  return attrs->sum.dims == 0 || (attrs->sum.dims >> d & 1);
}

static void push_dim(dims *list, int64_t size, int64_t stride) {
  if (size == 1) return;
  list->size[list->count] = size;
  list->stride[list->count++] = stride;
  list->total *= size;
}

/* Split the input's dims; those of size 1 belong to no list. */
static plan make_plan(const gp_call *call) {
  const gp_meta *in = call->in[0].meta;
  const int64_t *dim = in->shape.dim;
  plan p = {.kept = {.total = 1}, .reduced = {.total = 1}, .width = 1};
  int d = in->shape.rank - 1;
  while (d >= 0 && dim[d] == 1) d--;
  p.line_reduced = d < 0 || is_reduced(call->attr, d);
  for (; d >= 0 && (dim[d] == 1 || is_reduced(call->attr, d) == p.line_reduced); d--)
    p.width *= dim[d];
  for (int k = 0; k <= d; k++)
    push_dim(is_reduced(call->attr, k) ? &p.reduced : &p.kept, dim[k], in->stride[k]);
  return p;
}

/* Return the element position of a flat index over the dims. */
static int64_t position(const dims *list, int64_t flat) {
  int64_t at = 0;
  for (int d = list->count - 1; d > 0; d--) {
    at += flat % list->size[d] * list->stride[d];
    flat /= list->size[d];
  }
  return list->count > 0 ? at + flat * list->stride[0] : 0;
}

/* Make results that are sums of whole lines. */
static void sum_lines(const gp_call *call, const plan *p, gp_span span) {
  const adder *add = &adders[call->in[0].meta->dtype];
  size_t item = gp_dtype_size(call->in[0].meta->dtype),
         to = gp_dtype_size(call->out[0].meta->dtype);
  for (int64_t result = span.first; result < span.last; result++) {
    accumulators sum;
    memset(&sum, 0, sizeof sum.f64[0]);
    int64_t base = position(&p->kept, result);
    for (int64_t r = 0; r < p->reduced.total; r++) {
      int64_t at = base + position(&p->reduced, r);
      add->row((const char *)call->in[0].data + (size_t)at * item, p->width, &sum);
    }
    add->store(&sum, 1, (char *)call->out[0].data + (size_t)result * to);
  }
}

/* Make results that lie in lines: `n` of them from the given one on, within one line. */
static void sum_columns(const gp_call *call, const plan *p, int64_t result, int64_t n) {
  const adder *add = &adders[call->in[0].meta->dtype];
  size_t item = gp_dtype_size(call->in[0].meta->dtype),
         to = gp_dtype_size(call->out[0].meta->dtype);
  accumulators sum;
  memset(&sum, 0, (size_t)n * sizeof sum.f64[0]);
  int64_t base = position(&p->kept, result / p->width) + result % p->width;
  for (int64_t r = 0; r < p->reduced.total; r++) {
    int64_t at = base + position(&p->reduced, r);
    add->columns((const char *)call->in[0].data + (size_t)at * item, n, &sum);
  }
  add->store(&sum, n, (char *)call->out[0].data + (size_t)result * to);
}

/* ---- the op --------------------------------------------------------------------------------- */

static gp_status run(const gp_call *call, gp_span span) {
  plan p = make_plan(call);
  if (p.line_reduced) {
    sum_lines(call, &p, span);
    return GP_OK;
  }
  for (int64_t at = span.first; at < span.last;) {
    int64_t n = p.width - at % p.width;
    if (n > span.last - at) n = span.last - at;
    if (n > COLUMNS) n = COLUMNS;
    sum_columns(call, &p, at, n);
    at += n;
  }
  return GP_OK;
}

/* Cut into pieces of about 16384 terms, but of at least a cache line of neighbours. */
static gp_cut cut(const gp_call *call) {
  int64_t results = gp_meta_numel(call->out[0].meta), terms = gp_meta_numel(call->in[0].meta);
  int64_t per_result = results > 0 && terms > results ? terms / results : 1;
  int64_t grain = 16384 / per_result;
  return (gp_cut){.units = results, .grain = grain > GP_LANES ? grain : GP_LANES};
}

/* Floats keep their dtype; integers and bools are summed in i64. */
static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  gp_dtype dtype = sig->in[0]->dtype;
  GP_TRY(gp_infer_reduced(&sig->in[0]->shape, sig->attr->sum.dims, sig->attr->sum.keep, &shape));
  return gp_infer_out(sig, gp_dtype_is_float(dtype) ? dtype : GP_I64, &shape);
}

/* Count one addition for each element read. */
static gp_cost cost(const gp_sig *sig) {
  gp_cost c = gp_cost_elements(sig, 0);
  c.flop = (double)gp_meta_numel(sig->in[0]);
  return c;
}

/* Every term of a sum gets the sum's gradient. */
static gp_status vjp(gp_vjp *v) {
  gp_shape from = gp_vjp_meta(v, v->in[0])->shape, keep;
  gp_ref g;
  GP_TRY(gp_infer_reduced(&from, v->attr->sum.dims, true, &keep));
  GP_TRY(gp_vjp_reshape(v, v->dout[0], &keep, &g));
  return gp_vjp_expand(v, g, &from, &v->din[0]);
}

const gp_op_def gp_def_sum = {
    GP_OP_ROW(sum), .infer = infer, .vjp = vjp, .cost = cost, .cpu = {.cut = cut, .run = run},
};
