/* ops/attention/attention.c - softmax(q k^T * scale + mask) v on separate q, k and v, and its
 * gradient.
 *
 * The operands may be views with any strides: heads split off by reshape and permute need no copy,
 * nor does a mask that is the same for all queries. Keys and values may have fewer heads than
 * queries: each of them then serves several neighbouring heads (Ainslie et al., "GQA", 2023). No
 * gradient flows into a mask. */
#include "ops/attention/flash.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/infer.h"

/* ---- shapes -------------------------------------------------------------------------------- */

enum { MASK = 3, DX_MASK = 6 }; /* the inputs that may be left out */

/* Check that each head of keys serves a run of heads of queries, all runs of one length. */
static gp_status check_groups(const gp_sig *sig, gp_op op, int first) {
  const gp_shape *q = &sig->in[first]->shape, *k = &sig->in[first + 1]->shape;
  char text[GP_SHAPE_TEXT], other[GP_SHAPE_TEXT];
  if (!gp_flash_can_share(q->dim[1], k->dim[1]))
    return gp_fail(GP_ESHAPE, "%s is %s, expected a number of heads that divides the %s's (%s)",
                   gp_op_role(op, first + 1), gp_shape_print(k, text, sizeof text),
                   gp_op_role(op, first), gp_shape_print(q, other, sizeof other));
  if (k->dim[2] > 0 && k->dim[3] > 0) return GP_OK;
  return gp_fail(GP_ESHAPE, "%s is %s, expected at least one key and one channel",
                 gp_op_role(op, first + 1), gp_shape_print(k, text, sizeof text));
}

/* Check q [B, H, Tq, D], k and v [B, G, Tk, D], from input `first` on. */
static gp_status check_qkv(const gp_sig *sig, gp_op op, int first) {
  gp_shape any = {4, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, op, first, &any, -1));
  gp_shape keys = sig->in[first]->shape;
  keys.dim[1] = keys.dim[2] = GP_ANY_DIM;
  GP_TRY(gp_operand_shape(sig, op, first + 1, &keys, first));
  GP_TRY(gp_operand_shape(sig, op, first + 2, &sig->in[first + 1]->shape, first + 1));
  return check_groups(sig, op, first);
}

/* Check the mask, [B, H, Tq, Tk], whose first three dims may be 1. */
static gp_status check_mask(const gp_sig *sig, gp_op op, int query, int i) {
  if (sig->n_in <= i) return GP_OK;
  const gp_shape *mask = &sig->in[i]->shape;
  const gp_shape all = gp_shape_with_last(&sig->in[query]->shape, sig->in[query + 1]->shape.dim[2]);
  gp_shape want = all;
  for (int d = 0; d < 3 && mask->rank == 4; d++)
    if (mask->dim[d] == 1) want.dim[d] = 1;
  if (gp_shape_equal(mask, &want)) return GP_OK;
  char text[GP_SHAPE_TEXT], full[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "%s is %s, expected %s, where the first three may be 1",
                 gp_op_role(op, i), gp_shape_print(mask, text, sizeof text),
                 gp_shape_print(&all, full, sizeof full));
}

/* q, k, v, mask -> o like q, and lse [B, H, Tq], the log of each query's sum of exponentials, which
 * is all that the gradient needs to compute the scores again. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(check_qkv(sig, GP_OP_attention, 0));
  GP_TRY(check_mask(sig, GP_OP_attention, 0, MASK));
  const gp_shape *q = &sig->in[0]->shape;
  gp_shape lse = gp_shape_drop_last(q);
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, q));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &lse);
}

/* do, q, k, v, o, lse, mask -> dq, dk, dv. */
static gp_status infer_dx(gp_sig *sig) {
  GP_TRY(check_qkv(sig, GP_OP_attention_dx, 1));
  GP_TRY(check_mask(sig, GP_OP_attention_dx, 1, DX_MASK));
  const gp_shape *q = &sig->in[1]->shape;
  gp_shape lse = gp_shape_drop_last(q);
  GP_TRY(gp_operand_shape(sig, GP_OP_attention_dx, 0, q, 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_attention_dx, 4, q, 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_attention_dx, 5, &lse, 1));
  for (int i = 0; i < 3; i++) GP_TRY(gp_infer_out(sig, sig->in[1]->dtype, &sig->in[i + 1]->shape));
  return GP_OK;
}

/* One node makes all three gradients, since they share the scores. Gradients that are not
 * needed are not read. */
static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_first_output_only(v));
  const bool masked = v->n_in > MASK;
  if (v->dout[0] == GP_NONE) return GP_OK;
  if (masked && v->need[MASK])
    return gp_fail(GP_EUNSUPPORTED,
                   "no gradient flows into a mask, but this one depends on trained "
                   "parameters: expected one that does not");
  if (!(v->need[0] || v->need[1] || v->need[2])) return GP_OK;
  gp_ref in[] = {v->dout[0],
                 v->in[0],
                 v->in[1],
                 v->in[2],
                 v->out[0],
                 v->out[1],
                 masked ? v->in[MASK] : GP_NONE};
  gp_ref first;
  GP_TRY(gp_build(v->builder, GP_OP_attention_dx, v->attr, in, DX_MASK + masked, &first));
  for (int i = 0; i < 3; i++)
    if (v->need[i]) v->din[i] = first + i;
  return GP_OK;
}

/* Count two products forward, five backward; an exponential with the operations around
 * it counts as 13. */
static gp_cost cost_of(const gp_sig *sig, int q, double products) {
  const gp_shape *s = &sig->in[q]->shape;
  double pairs =
      gp_flash_pairs(s->dim[2], sig->in[q + 1]->shape.dim[2], sig->attr->attention.causal);
  double heads = (double)s->dim[0] * (double)s->dim[1];
  return gp_cost_of(sig, heads * pairs * (2 * products * (double)s->dim[3] + 13));
}

/* The products are q k^T and p v; backward q k^T again, do v^T, and those of dq, dk, dv. */
static gp_cost cost(const gp_sig *sig) { return cost_of(sig, 0, 2); }

static gp_cost cost_dx(const gp_sig *sig) { return cost_of(sig, 1, 5); }

/* ---- kernels ------------------------------------------------------------------------------- */

/* Strides of [B, H, T, D], or of lse [B, H, T], which has no columns. */
static gp_heads heads(const gp_arg *arg) {
  const gp_meta *m = arg->meta;
  bool lse = m->shape.rank == 3;
  return (gp_heads){arg->data, m->stride[0], m->stride[1], m->stride[2], lse ? 0 : m->stride[3]};
}

/* Distances of a mask are 0 along dims for which it is the same. */
static gp_flash_mask mask_of(const gp_call *call, int i) {
  if (call->n_in <= i) return (gp_flash_mask){0};
  const gp_meta *m = call->in[i].meta;
  int64_t step[4];
  for (int d = 0; d < 4; d++) step[d] = m->shape.dim[d] == 1 ? 0 : m->stride[d];
  return (gp_flash_mask){{call->in[i].data, step[0], step[1], step[2], step[3]}, m->dtype};
}

/* Describe everything but the operands. */
static gp_flash describe_shape(const gp_call *call, const gp_shape *q, const gp_shape *k) {
  gp_flash f = {.batches = q->dim[0],
                .heads = q->dim[1],
                .groups = k->dim[1],
                .queries = q->dim[2],
                .keys = k->dim[2],
                .width = q->dim[3]};
  gp_flash_set_dtype(&f, call->out[0].meta->dtype);
  gp_flash_set_attrs(&f, call);
  return f;
}

/* q, k, v, mask -> o, lse */
static gp_flash describe(const gp_call *call) {
  gp_flash f = describe_shape(call, &call->in[0].meta->shape, &call->in[1].meta->shape);
  for (int i = 0; i < 3; i++) f.in[GP_FLASH_Q + i] = heads(&call->in[i]);
  f.in[GP_FLASH_O] = heads(&call->out[0]);
  f.lse = heads(&call->out[1]);
  f.mask = mask_of(call, MASK);
  return f;
}

/* The inputs after the gradient are in the order of the forward operands q, k, v, o. */
static gp_flash describe_dx(const gp_call *call) {
  gp_flash f = describe_shape(call, &call->in[1].meta->shape, &call->in[2].meta->shape);
  f.backward = true;
  for (int i = 0; i < 4; i++) f.in[GP_FLASH_Q + i] = heads(&call->in[i + 1]);
  f.in[GP_FLASH_DO] = heads(&call->in[0]);
  f.lse = heads(&call->in[5]);
  f.mask = mask_of(call, DX_MASK);
  f.dq = heads(&call->out[0]), f.dk = heads(&call->out[1]), f.dv = heads(&call->out[2]);
  return f;
}

GP_FLASH_KERNEL(, describe)
GP_FLASH_KERNEL(_dx, describe_dx)

const gp_op_def gp_def_attention = {
    GP_OP_ROW(attention), .infer = infer, .vjp = vjp, .cost = cost,
    .cpu = {.cut = cut, .run = run, .scratch = scratch, .halves = GP_ALL_HALVES}};

const gp_op_def gp_def_attention_dx = {
    GP_OP_ROW(attention_dx), .infer = infer_dx, .cost = cost_dx,
    .cpu = {.cut = cut_dx, .run = run_dx, .scratch = scratch_dx, .halves = GP_ALL_HALVES}};
