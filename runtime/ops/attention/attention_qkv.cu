/* ops/attention/attention_qkv.cu - self-attention on the packed output of one projection.
 *
 * qkv [B, T, (H + 2 G) D] holds query, key and value of all heads side by side; heads are read and
 * written where they lie. */
#include "ops/attention/flash.cuh"
#include "ops/attention/qkv.h"

/* Bytes of an element. */
static size_t element_of(gp_dtype dtype) {
  return dtype == GP_F64 ? sizeof(double) : dtype == GP_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Describe heads in a value [B, T, row], from element `first` of each row on. prepare has no
 * addresses, but needs to know how far apart the three parts are. */
static gp_attention_value heads(const gp_attention *a, const gp_arg *arg, int64_t first) {
  const int64_t row = arg->meta->shape.dim[2];
  const uintptr_t data = (uintptr_t)arg->data + (size_t)first * element_of(a->dtype);
  return {(void *)data, a->queries * row, a->width, row, 1};
}

/* lse [B, H, T] is contiguous: one value a query. */
static gp_attention_value lse_of(const gp_attention *a, const gp_arg *arg) {
  return {arg->data, a->heads * a->queries, a->queries, 1, 0};
}

/* q, k and v begin at columns 0, H D and (H + G) D of a row; head h at h D within each. */
static gp_attention describe_qkv(const gp_call *call, const gp_arg *qkv) {
  const gp_shape *s = &qkv->meta->shape;
  const gp_qkv p = gp_qkv_of(call->attr, s->dim[2]);
  const int64_t k = p.heads * p.width, v = k + p.groups * p.width;
  gp_attention a = {};
  a.dtype = qkv->meta->dtype;
  a.batches = s->dim[0], a.heads = p.heads, a.groups = p.groups, a.width = p.width;
  a.queries = a.keys = s->dim[1];
  gp_attention_set_attrs(&a, call);
  a.q = heads(&a, qkv, 0), a.k = heads(&a, qkv, k), a.v = heads(&a, qkv, v);
  return a;
}

/* qkv -> o, lse */
static gp_attention describe(const gp_call *call) {
  gp_attention a = describe_qkv(call, &call->in[0]);
  a.o = heads(&a, &call->out[0], 0);
  a.lse = lse_of(&a, &call->out[1]);
  return a;
}

/* do, qkv, o, lse -> dqkv */
static gp_attention describe_dx(const gp_call *call) {
  gp_attention a = describe_qkv(call, &call->in[1]);
  const gp_arg *dqkv = &call->out[0];
  const int64_t k = a.heads * a.width, v = k + a.groups * a.width;
  a.backward = true;
  a.d_o = heads(&a, &call->in[0], 0), a.o = heads(&a, &call->in[2], 0);
  a.lse = lse_of(&a, &call->in[3]);
  a.d_q = heads(&a, dqkv, 0), a.d_k = heads(&a, dqkv, k), a.d_v = heads(&a, dqkv, v);
  return a;
}

GP_ATTENTION_KERNEL(attention_qkv, describe)
GP_ATTENTION_KERNEL(attention_qkv_dx, describe_dx)
