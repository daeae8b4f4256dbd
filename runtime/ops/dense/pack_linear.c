/* ops/dense/pack_linear.c - w [N, K] -> the bytes of its transpose, [K, N], which linear multiplies
 * with; or of itself for linear_dx. Both are panels for products that want them.
 *
 * The value is opaque, so its order may change to whatever suits the products best, without changes
 * elsewhere: linear gets N from its attribute and K from its input. */
#include "ops/dense/dense.h"
#include "ops/dense/large.h"
#include "ops/shape/boxes.h"

/* Tell whether it makes panels for the f32 products of ops/dense/large.h. */
static bool is_large(const gp_call *call) {
  const gp_meta *w = call->in[0].meta;
  return gp_large_is(w->dtype, w->shape.dim[0], w->shape.dim[1]);
}

/* Tell whether it makes panels for the products of bf16, see device/cpu/bf16/bf16.h. */
static bool makes_panels(gp_dtype weight, const gp_attrs *attr) {
  return weight == GP_BF16 || attr->pack_linear.half;
}

static gp_status infer(gp_sig *sig) {
  const bool transposed = sig->attr->pack_linear.transposed;
  GP_TRY(gp_operand_shape(sig, GP_OP_pack_linear, 0, &(gp_shape){2, {GP_ANY_DIM, GP_ANY_DIM}}, -1));
  if (makes_panels(sig->in[0]->dtype, sig->attr))
    return gp_infer_packed(sig, gp_half_packed_bytes(&sig->in[0]->shape, transposed));
  const gp_shape *w = &sig->in[0]->shape;
  size_t bytes;
  GP_TRY(gp_packed_bytes(sig->in[0]->dtype, w->dim[transposed ? 0 : 1], w->dim[transposed ? 1 : 0],
                         &bytes));
  return gp_infer_packed(sig, bytes);
}

/* What is read, and what is written: both [K, N], or [N, K] for linear_dx. */
typedef struct turn {
  gp_meta from, to;
  gp_call call;
} turn;

static void make_turn(const gp_call *call, turn *t) {
  const gp_meta *w = call->in[0].meta;
  const int64_t n = w->shape.dim[0], k = w->shape.dim[1];
  t->from = (gp_meta){w->dtype, {2, {k, n}}, {1, k}, 0};
  if (call->attr->pack_linear.transposed) t->from = (gp_meta){w->dtype, {2, {n, k}}, {k, 1}, 0};
  t->to = t->from;
  t->to.stride[0] = gp_packed_stride(t->to.shape.dim[1]), t->to.stride[1] = 1;
  t->call = *call;
  t->call.in[0].meta = &t->from;
  t->call.out[0].meta = &t->to;
}

static gp_cut cut(const gp_call *call) {
  turn t;
  if (makes_panels(call->in[0].meta->dtype, call->attr)) return gp_half_pack_cut(call);
  if (is_large(call)) return gp_large_pack_cut(call);
  make_turn(call, &t);
  return gp_cut_rows(&t.call);
}

static gp_status run(const gp_call *call, gp_span span) {
  turn t;
  if (makes_panels(call->in[0].meta->dtype, call->attr)) return gp_half_pack(call, span);
  if (is_large(call)) return gp_large_pack(call, span);
  make_turn(call, &t);
  return gp_copy_run(&t.call, span);
}

const gp_op_def gp_def_pack_linear = {GP_OP_ROW(pack_linear), .infer = infer, .cost = gp_cost_copy,
                                      .cpu = {.cut = cut, .run = run}};
