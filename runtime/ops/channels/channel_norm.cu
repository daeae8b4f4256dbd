/* ops/channels/channel_norm.cu - see channel_norm.c: channels normalised on a GPU, and the
 * gradients. */
#include "ops/channels/channel_norm.cuh"

/* ---- forward --------------------------------------------------------------------------------- */

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  gp_norm_form form = {};
  form.eps = call->op.attr->channel_norm.eps;
  form.mean = 1, form.weight = 3, form.bias = 4;
  GP_BY_FLOAT(call->op.in[0].meta->dtype,
              return (gp_norm_forward<T, GP_TAIL_NONE>(gpu, &call->op, form)));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm = {run, NULL};

/* ---- sums of the backward pass --------------------------------------------------------------- */

template <typename T, int LEAVES, int ROWS>
static __global__ void __launch_bounds__(GP_PART_WARPS *GP_WARP, GP_PART_BLOCKS)
    warp_sums_kernel(gp_norm_back<T> a, gp_compute<T> *to, gp_warps w) {
  gp_warp_sums_of<T, GP_GATE_NONE, LEAVES, ROWS>(a, to, w);
}

template <typename T> static gp_status sums_by_warps(gp_gpu *gpu, const gp_norm_sums_launch<T> &l) {
  GP_LAUNCH_WARPS(gpu, warp_sums_kernel, l.w, l.a, l.to);
}

template <typename T> static gp_status sums(gp_gpu *gpu, const gp_call *call) {
  gp_norm_form form = {};
  form.eps = call->attr->channel_norm_sums.eps, form.image = 1, form.mean = 2;
  const gp_norm_sums_launch<T> l = gp_norm_sums_of<T>(call, form);
  if (l.by_warps) return sums_by_warps(gpu, l);
  GP_LAUNCH_PARTS(gpu, (part_sums_kernel<T, GP_GATE_NONE>), l.p, l.shared, l.a, l.to);
}

static gp_status run_sums(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return sums<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_sums = {run_sums, NULL};

/* ---- gradient of the input ------------------------------------------------------------------- */

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_attr_channel_norm_dx *a = &call->op.attr->channel_norm_dx;
  gp_norm_form form = {};
  form.eps = a->eps, form.given = a->given;
  form.image = 1, form.mean = 2, form.sums = 4, form.weight = 5;
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return (gp_norm_input_gradient<T, GP_GATE_NONE>(
                                              gpu, &call->op, form, call->scratch)));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_dx = {run_dx, gp_norm_prepare_dx};
