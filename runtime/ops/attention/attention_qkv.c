/* ops/attention/attention_qkv.c - self-attention on the packed output of one projection.
 *
 * qkv [B, T, 3C] holds query, key and value of all heads side by side; the heads are read in place
 * and the output [B, T, C] is written in place, so nothing is permuted or copied. */
#include "ops/attention/flash.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/infer.h"

static const char *const roles[] = {"qkv"}, *const dx_roles[] = {"gradient", "qkv", "output",
                                                                 "lse"};

/* ---- shapes -------------------------------------------------------------------------------- */

/* o [B, T, C] and lse [B, H, T] of qkv, input i. */
static gp_status check_qkv(const gp_sig *sig, const char *const *role, int i, gp_shape out[2]) {
  gp_shape any = {3, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, role, i, &any, -1));
  const gp_shape *qkv = &sig->in[i]->shape;
  int64_t h = sig->attr->i[2], width = qkv->dim[2];
  if (h < 1) return gp_fail(GP_EINVAL, "heads is %lld, expected 1 or more", (long long)h);
  if (width == 0 || width % 3 != 0 || width / 3 % h != 0) {
    char text[GP_SHAPE_TEXT];
    return gp_fail(GP_ESHAPE, "%s is %s, expected a last dimension that 3 x %lld heads divide",
                   role[i], gp_shape_print(qkv, text, sizeof text), (long long)h);
  }
  out[0] = gp_shape_with_last(qkv, width / 3);
  out[1] = (gp_shape){3, {qkv->dim[0], h, qkv->dim[1]}};
  return gp_flash_check_attrs(sig->attr);
}

/* qkv -> o, lse. */
static gp_status infer(gp_sig *sig) {
  gp_shape out[2];
  GP_TRY(gp_operands_float(sig, roles, 1));
  GP_TRY(check_qkv(sig, roles, 0, out));
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &out[0]));
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &out[1]);
}

/* do, qkv, o, lse -> dqkv, as packed as qkv. */
static gp_status infer_dx(gp_sig *sig) {
  gp_shape out[2];
  GP_TRY(gp_operands_float(sig, dx_roles, 7));
  GP_TRY(gp_operands_wide(sig, dx_roles, 8, 1));
  GP_TRY(check_qkv(sig, dx_roles, 1, out));
  GP_TRY(gp_operand_shape(sig, dx_roles, 0, &out[0], 1));
  GP_TRY(gp_operand_shape(sig, dx_roles, 2, &out[0], 1));
  GP_TRY(gp_operand_shape(sig, dx_roles, 3, &out[1], 1));
  return gp_infer_out(sig, sig->in[1]->dtype, &sig->in[1]->shape);
}

static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_first_output_only(v));
  if (v->dout[0] == GP_NONE || !v->need[0]) return GP_OK;
  gp_ref in[] = {v->dout[0], v->in[0], v->out[0], v->out[1]};
  return gp_build(v->builder, GP_OP_attention_qkv_dx, v->attr, in, 4, &v->din[0]);
}

/* As in attention.c: `products` matrix products, and the exponentials; C / H channels a head. */
static gp_cost cost_of(const gp_sig *sig, const gp_shape *qkv, double products) {
  double pairs = gp_flash_pairs(qkv->dim[1], qkv->dim[1], sig->attr->i[1] != 0);
  double c = (double)qkv->dim[2] / 3, h = (double)sig->attr->i[2];
  return gp_cost_of(sig, (double)qkv->dim[0] * pairs * (2 * products * c + 13 * h));
}

static gp_cost cost(const gp_sig *sig) { return cost_of(sig, &sig->in[0]->shape, 2); }

static gp_cost cost_dx(const gp_sig *sig) { return cost_of(sig, &sig->in[1]->shape, 5); }

/* ---- kernels ------------------------------------------------------------------------------- */

/* Heads in a value [B, T, row], from element `first` of each row on. */
static gp_heads heads(const gp_flash *f, const gp_arg *arg, int64_t first) {
  int64_t row = gp_meta_width(arg->meta);
  char *data = (char *)arg->data + (size_t)first * gp_dtype_size(f->dtype);
  return (gp_heads){data, f->queries * row, f->width, row, 1};
}

/* lse [B, H, T] is contiguous: one value a query. */
static gp_heads lse_heads(const gp_flash *f, const gp_arg *arg) {
  return (gp_heads){arg->data, f->heads * f->queries, f->queries, 1, 0};
}

/* q, k and v begin at columns 0, C and 2C of a row; head h at h C / H within each. */
static gp_flash describe_qkv(const gp_call *call, const gp_arg *qkv) {
  const gp_shape *s = &qkv->meta->shape;
  int64_t c = s->dim[2] / 3, h = call->attr->i[2];
  gp_flash f = {.dtype = qkv->meta->dtype,
                .batches = s->dim[0],
                .heads = h,
                .queries = s->dim[1],
                .keys = s->dim[1],
                .width = c / h};
  gp_flash_set_attrs(&f, call);
  for (int i = 0; i < 3; i++) f.in[GP_FLASH_Q + i] = heads(&f, qkv, i * c);
  return f;
}

static gp_flash describe(const gp_call *call) {
  gp_flash f = describe_qkv(call, &call->in[0]);
  f.in[GP_FLASH_O] = heads(&f, &call->out[0], 0);
  f.lse = lse_heads(&f, &call->out[1]);
  return f;
}

static gp_flash describe_dx(const gp_call *call) {
  gp_flash f = describe_qkv(call, &call->in[1]);
  int64_t c = f.heads * f.width;
  f.backward = true;
  f.in[GP_FLASH_DO] = heads(&f, &call->in[0], 0);
  f.in[GP_FLASH_O] = heads(&f, &call->in[2], 0);
  f.lse = lse_heads(&f, &call->in[3]);
  f.dq = heads(&f, &call->out[0], 0);
  f.dk = heads(&f, &call->out[0], c);
  f.dv = heads(&f, &call->out[0], 2 * c);
  return f;
}

GP_FLASH_KERNEL(, describe)
GP_FLASH_KERNEL(_dx, describe_dx)

const gp_op_def gp_def_attention_qkv = {.name = "attention_qkv",
                                        .min_in = 1,
                                        .max_in = 1,
                                        .flags = GP_OP_RANDOM,
                                        .infer = infer,
                                        .vjp = vjp,
                                        .cost = cost,
                                        .cpu = {.cut = cut, .run = run, .scratch = scratch}};

const gp_op_def gp_def_attention_qkv_dx = {
    .name = "attention_qkv_dx",
    .min_in = 4,
    .max_in = 4,
    .infer = infer_dx,
    .cost = cost_dx,
    .cpu = {.cut = cut_dx, .run = run_dx, .scratch = scratch_dx}};
