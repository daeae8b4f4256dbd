/* ops/dense/pack_linear.c - w [N, K] -> the bytes of its transpose, [K, N], by which linear
 * multiplies.
 *
 * The value is opaque, so its order may change to whatever suits the products best, without changes
 * elsewhere: linear gets N from its attribute and K from its input. */
#include "ops/dense/dense.h"
#include "ops/shape/boxes.h"

/* Tell whether it makes panels for the products of bf16, see device/cpu/bf16/bf16.h. */
static bool makes_panels(gp_dtype weight, const gp_attrs *attr) {
  return weight == GP_BF16 || attr->pack_linear.half;
}

static gp_status infer(gp_sig *sig) {
  const bool transposed = sig->attr->pack_linear.transposed;
  GP_TRY(gp_operand_shape(sig, GP_OP_pack_linear, 0, &(gp_shape){2, {GP_ANY_DIM, GP_ANY_DIM}}, -1));
  if (makes_panels(sig->in[0]->dtype, sig->attr))
    return gp_infer_packed(sig, gp_half_packed_bytes(&sig->in[0]->shape, transposed));
  return gp_infer_packed(sig, gp_meta_bytes(sig->in[0]));
}

/* The source and the result of the transposition: both are [K, N]. */
typedef struct turn {
  gp_meta from, to;
  gp_call call;
} turn;

static void make_turn(const gp_call *call, turn *t) {
  const gp_meta *w = call->in[0].meta;
  const gp_shape turned = {2, {w->shape.dim[1], w->shape.dim[0]}};
  t->from = (gp_meta){w->dtype, turned, {1, w->shape.dim[1]}, 0};
  t->to = (gp_meta){w->dtype, turned, {w->shape.dim[0], 1}, 0};
  t->call = *call;
  t->call.in[0].meta = &t->from;
  t->call.out[0].meta = &t->to;
}

static gp_cut cut(const gp_call *call) {
  turn t;
  if (makes_panels(call->in[0].meta->dtype, call->attr)) return gp_half_pack_cut(call);
  make_turn(call, &t);
  return gp_cut_rows(&t.call);
}

static gp_status run(const gp_call *call, gp_span span) {
  turn t;
  if (makes_panels(call->in[0].meta->dtype, call->attr)) return gp_half_pack(call, span);
  make_turn(call, &t);
  return gp_copy_run(&t.call, span);
}

const gp_op_def gp_def_pack_linear = {GP_OP_ROW(pack_linear), .infer = infer, .cost = gp_cost_copy,
                                      .cpu = {.cut = cut, .run = run}};
