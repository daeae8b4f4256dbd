/* ops/attention/attention.cu - softmax(q k^T * scale + mask) v on separate q, k and v, and its
 * gradient.
 *
 * The operands may be views with any strides. This file also decides for both attention ops
 * which kernels run. */
#include <math.h>
#include <stdio.h>

#include "device/cuda/cudnn/cudnn.h"
#include "ops/attention/tensor/tensor.cuh"

/* ---- for both ops -------------------------------------------------------------------------- */

void gp_attention_set_attrs(gp_attention *a, const gp_call *call) {
  const gp_attrs *attr = call->attr;
  a->step = call->step;
  a->random = attr->random;
  a->causal = attr->attention.causal;
  a->dropout = attr->attention.dropout;
  a->scale = attr->attention.scale != 0 ? attr->attention.scale : 1 / sqrt((double)a->width);
}

static const char *path_of(const gp_gpu *gpu, const gp_attention *a) {
  return gp_tensor_takes(gpu, a) ? "own kernels, tensor cores" : "own kernels";
}

/* Note the path for reports. why: why cuDNN does not compute it, or NULL. */
static void note_path(gp_gpu *gpu, const gp_attention *a, const char *why) {
  char shape[112];
  snprintf(shape, sizeof shape, "%s %s B=%lld H=%lld/%lld Tq=%lld Tk=%lld D=%lld%s%s%s",
           a->backward ? "backward" : "forward", gp_gpu_dtype_name(a->dtype), (long long)a->batches,
           (long long)a->heads, (long long)a->groups, (long long)a->queries, (long long)a->keys,
           (long long)a->width, a->causal ? " causal" : "", a->masked ? " masked" : "",
           a->dropout > 0 ? " dropout" : "");
  gp_gpu_note_path(gpu, "attention", shape, why ? path_of(gpu, a) : "cuDNN", why);
}

/* Ask for scratch that serves either way: an address that is not aligned can change
 * which one runs. */
gp_status gp_attention_prepare(gp_gpu *gpu, const gp_attention *a, size_t *scratch) {
  const char *why;
  size_t other = 0;
  GP_GPU_TRY(gp_cudnn_attention_prepare(gpu, a, &other, &why));
  *scratch = gp_flash_scratch(a);
  if (!why && other > *scratch) *scratch = other;
  note_path(gpu, a, why);
  return GP_OK;
}

gp_status gp_attention_run(gp_gpu *gpu, const gp_attention *a) {
  bool done;
  const char *why;
  GP_GPU_TRY(gp_cudnn_attention_run(gpu, a, &done, &why));
  if (why) note_path(gpu, a, why);
  if (done) return GP_OK;
  const bool tensor = gp_tensor_takes(gpu, a);
  if (!a->backward) return tensor ? gp_tensor_forward(gpu, a) : gp_flash_forward(gpu, a);
  GP_GPU_TRY(gp_flash_delta(gpu, a));
  return tensor ? gp_tensor_backward(gpu, a) : gp_flash_backward(gpu, a);
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Strides of [B, H, T, D], or of lse [B, H, T], which has no columns. */
static gp_attention_value value(const gp_arg *arg) {
  const gp_meta *m = arg->meta;
  const bool lse = m->shape.rank == 3;
  return {arg->data, m->stride[0], m->stride[1], m->stride[2], lse ? 0 : m->stride[3]};
}

/* Set the mask to input i, which may be missing. */
static void set_mask(gp_attention *a, const gp_call *call, int i) {
  if (call->n_in <= i) return;
  const gp_meta *m = call->in[i].meta;
  int64_t step[4];
  for (int d = 0; d < 4; d++) step[d] = m->shape.dim[d] == 1 ? 0 : m->stride[d];
  a->masked = true, a->mask_dtype = m->dtype;
  a->mask = {call->in[i].data, step[0], step[1], step[2], step[3]};
}

/* Describe q, k and v, which begin at input `first`. */
static gp_attention describe_qkv(const gp_call *call, int first) {
  const gp_shape *q = &call->in[first].meta->shape, *k = &call->in[first + 1].meta->shape;
  gp_attention a = {};
  a.dtype = call->in[first].meta->dtype;
  a.batches = q->dim[0], a.heads = q->dim[1], a.queries = q->dim[2], a.width = q->dim[3];
  a.groups = k->dim[1], a.keys = k->dim[2];
  gp_attention_set_attrs(&a, call);
  a.q = value(&call->in[first]);
  a.k = value(&call->in[first + 1]);
  a.v = value(&call->in[first + 2]);
  return a;
}

/* q, k, v, mask -> o, lse */
static gp_attention describe(const gp_call *call) {
  gp_attention a = describe_qkv(call, 0);
  a.o = value(&call->out[0]), a.lse = value(&call->out[1]);
  set_mask(&a, call, 3);
  return a;
}

/* do, q, k, v, o, lse, mask -> dq, dk, dv */
static gp_attention describe_dx(const gp_call *call) {
  gp_attention a = describe_qkv(call, 1);
  a.backward = true;
  a.d_o = value(&call->in[0]), a.o = value(&call->in[4]), a.lse = value(&call->in[5]);
  set_mask(&a, call, 6);
  a.d_q = value(&call->out[0]), a.d_k = value(&call->out[1]), a.d_v = value(&call->out[2]);
  return a;
}

GP_ATTENTION_KERNEL(attention, describe)
GP_ATTENTION_KERNEL(attention_dx, describe_dx)
