/* ops/dense/pack_linear.cu - w [N, K] -> [K, N], the order of a packed weight.
 *
 * Products on a GPU take either order at the same speed, so no plan packs weights there, but the op
 * must mean the same there. */
#include "ops/dense/dense.cuh"
#include "ops/dense/packed.h"
#include "ops/shape/boxes.cuh"

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_meta *w = call->op.in[0].meta;
  if (call->op.attr->pack_linear.half || call->op.attr->pack_linear.transposed)
    return gp_gpu_fail(GP_EUNSUPPORTED, "pack_linear: bf16 and for linear_dx: only on CPU devices");
  const int64_t n = w->shape.dim[0], k = w->shape.dim[1];
  const gp_meta to = gp_rows_meta(w->dtype, k, n, gp_packed_stride(n));
  gp_meta from = to;
  from.stride[0] = 1, from.stride[1] = k;
  const gp_arg packed = {call->op.out[0].data, &to}, plain = {call->op.in[0].data, &from};
  return gp_move(gpu, &packed, &plain);
}

const gp_gpu_kernel gp_gpu_pack_linear = {run, NULL};
