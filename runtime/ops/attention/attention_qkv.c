/* ops/attention/attention_qkv.c - self-attention on the packed output of one projection.
 *
 * qkv [B, T, (H + 2 G) D] holds query, key and value of all heads side by side: H of queries, G of
 * keys and of values each, which are H too unless an attribute says less. They are read in place
 * and the output [B, T, H D] is written in place, so nothing is permuted or copied. */
#include "ops/attention/flash.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/attention/qkv.h"

/* ---- shapes -------------------------------------------------------------------------------- */

/* If no number of heads of keys is given, there are as many as of queries. */
static gp_status check_heads(const gp_attrs *attr) {
  const gp_maybe asked = attr->attention_qkv.groups;
  const long long heads = attr->attention_qkv.heads, groups = asked.value;
  if (heads < 1) return gp_fail(GP_EINVAL, "heads is %lld, expected 1 or more", heads);
  if (!asked.given || (groups > 0 && gp_flash_can_share(heads, groups))) return GP_OK;
  return gp_fail(GP_EINVAL, "heads of keys are %lld, expected a number that divides the %lld heads",
                 groups, heads);
}

/* Fail in the shortest words for the heads that there are. */
static gp_status wrong_width(const gp_qkv *p, const char *role, const gp_shape *qkv) {
  const long long heads = p->heads, groups = p->groups;
  char text[GP_SHAPE_TEXT];
  gp_shape_print(qkv, text, sizeof text);
  if (groups == heads)
    return gp_fail(GP_ESHAPE, "%s is %s, expected a last dimension that 3 x %lld heads divide",
                   role, text, heads);
  return gp_fail(GP_ESHAPE, "%s is %s, expected a last dimension that %lld + 2 x %lld heads divide",
                 role, text, heads, groups);
}

/* Check qkv, input i, and return the shapes of o [B, T, H D] and lse [B, H, T]. */
static gp_status check_qkv(const gp_sig *sig, gp_op op, int i, gp_shape out[2]) {
  gp_shape any = {3, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, op, i, &any, -1));
  const gp_shape *qkv = &sig->in[i]->shape;
  GP_TRY(check_heads(sig->attr));
  const gp_qkv p = gp_qkv_of(sig->attr, qkv->dim[2]);
  if (p.width == 0) return wrong_width(&p, gp_op_role(op, i), qkv);
  out[0] = gp_shape_with_last(qkv, p.heads * p.width);
  out[1] = (gp_shape){3, {qkv->dim[0], p.heads, qkv->dim[1]}};
  return GP_OK;
}

/* qkv -> o, lse. */
static gp_status infer(gp_sig *sig) {
  gp_shape out[2];
  GP_TRY(check_qkv(sig, GP_OP_attention_qkv, 0, out));
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &out[0]));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &out[1]);
}

/* do, qkv, o, lse -> dqkv, packed like qkv. */
static gp_status infer_dx(gp_sig *sig) {
  gp_shape out[2];
  GP_TRY(check_qkv(sig, GP_OP_attention_qkv_dx, 1, out));
  GP_TRY(gp_operand_shape(sig, GP_OP_attention_qkv_dx, 0, &out[0], 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_attention_qkv_dx, 2, &out[0], 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_attention_qkv_dx, 3, &out[1], 1));
  return gp_infer_out(sig, sig->in[1]->dtype, &sig->in[1]->shape);
}

static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_first_output_only(v));
  if (v->dout[0] == GP_NONE || !v->need[0]) return GP_OK;
  gp_ref in[] = {v->dout[0], v->in[0], v->out[0], v->out[1]};
  return gp_build(v->builder, GP_OP_attention_qkv_dx, v->attr, in, 4, &v->din[0]);
}

/* Count, as in attention.c, `products` matrix products and the exponentials. */
static gp_cost cost_of(const gp_sig *sig, const gp_shape *qkv, double products) {
  double pairs = gp_flash_pairs(qkv->dim[1], qkv->dim[1], sig->attr->attention_qkv.causal);
  const gp_qkv p = gp_qkv_of(sig->attr, qkv->dim[2]);
  double d = (double)p.width, h = (double)p.heads;
  return gp_cost_of(sig, (double)qkv->dim[0] * pairs * h * (2 * products * d + 13));
}

static gp_cost cost(const gp_sig *sig) { return cost_of(sig, &sig->in[0]->shape, 2); }

static gp_cost cost_dx(const gp_sig *sig) { return cost_of(sig, &sig->in[1]->shape, 5); }

/* ---- kernels ------------------------------------------------------------------------------- */

/* Describe heads in a value [B, T, row], from element `first` of each row on. */
static gp_heads heads(const gp_flash *f, const gp_arg *arg, int64_t first) {
  int64_t row = gp_meta_width(arg->meta);
  char *data = (char *)arg->data + (size_t)first * gp_dtype_size(arg->meta->dtype);
  return (gp_heads){data, f->queries * row, f->width, row, 1};
}

/* lse [B, H, T] is contiguous: one value a query. */
static gp_heads lse_heads(const gp_flash *f, const gp_arg *arg) {
  return (gp_heads){arg->data, f->heads * f->queries, f->queries, 1, 0};
}

/* q, k and v begin at columns 0, H D and (H + G) D of a row; head h at h D within each. */
static gp_flash describe_qkv(const gp_call *call, const gp_arg *qkv) {
  const gp_shape *s = &qkv->meta->shape;
  const gp_qkv p = gp_qkv_of(call->attr, s->dim[2]);
  gp_flash f = {.batches = s->dim[0],
                .heads = p.heads,
                .groups = p.groups,
                .queries = s->dim[1],
                .keys = s->dim[1],
                .width = p.width};
  gp_flash_set_dtype(&f, qkv->meta->dtype);
  gp_flash_set_attrs(&f, call);
  f.in[GP_FLASH_Q] = heads(&f, qkv, 0);
  f.in[GP_FLASH_K] = heads(&f, qkv, p.heads * p.width);
  f.in[GP_FLASH_V] = heads(&f, qkv, (p.heads + p.groups) * p.width);
  return f;
}

/* qkv -> o, lse */
static gp_flash describe(const gp_call *call) {
  gp_flash f = describe_qkv(call, &call->in[0]);
  f.in[GP_FLASH_O] = heads(&f, &call->out[0], 0);
  f.lse = lse_heads(&f, &call->out[1]);
  return f;
}

/* do, qkv, o, lse -> dqkv: the gradient of each part is written where the part lies in qkv. */
static gp_flash describe_dx(const gp_call *call) {
  gp_flash f = describe_qkv(call, &call->in[1]);
  f.backward = true;
  f.in[GP_FLASH_DO] = heads(&f, &call->in[0], 0);
  f.in[GP_FLASH_O] = heads(&f, &call->in[2], 0);
  f.lse = lse_heads(&f, &call->in[3]);
  f.dq = heads(&f, &call->out[0], 0);
  f.dk = heads(&f, &call->out[0], f.heads * f.width);
  f.dv = heads(&f, &call->out[0], (f.heads + f.groups) * f.width);
  return f;
}

GP_FLASH_KERNEL(, describe)
GP_FLASH_KERNEL(_dx, describe_dx)

const gp_op_def gp_def_attention_qkv = {
    GP_OP_ROW(attention_qkv), .infer = infer, .vjp = vjp, .cost = cost,
    .cpu = {.cut = cut, .run = run, .scratch = scratch, .halves = GP_ALL_HALVES}};

const gp_op_def gp_def_attention_qkv_dx = {
    GP_OP_ROW(attention_qkv_dx), .infer = infer_dx, .cost = cost_dx,
    .cpu = {.cut = cut_dx, .run = run_dx, .scratch = scratch_dx, .halves = GP_ALL_HALVES}};
