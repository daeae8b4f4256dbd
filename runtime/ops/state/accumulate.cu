/* ops/state/accumulate.cu - slot, g -> slot += g, in the slot's own memory, on a GPU; out[0] is the
 * slot.
 *
 * The slot may be f32 where g is a half: gradients are summed in f32, whatever they
 * are computed in. */
#include "ops/elementwise/map.cuh"

/* S: type of the slot; the sum is rounded to it once. */
struct sum {
  template <typename S, typename T> __device__ S operator()(S slot, T g) const {
    return gp_store<S>(gp_load(slot) + gp_compute<S>(gp_load(g)));
  }
};

/* A fresh slot is not read; it gets what a sum with zero gives. */
template <typename S> struct first {
  template <typename T> __device__ S operator()(T g) const {
    return gp_store<S>(0 + gp_compute<S>(gp_load(g)));
  }
};

template <typename S, typename T> static gp_status add_as(gp_gpu *gpu, const gp_gpu_call *call) {
  if (call->op.fresh) return gp_map<S, T>(gpu, first<S>(), &call->op.out[0], call->op.in + 1);
  return gp_map<S, S, T>(gpu, sum(), &call->op.out[0], call->op.in);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_dtype slot = call->op.out[0].meta->dtype, g = call->op.in[1].meta->dtype;
  if (slot == GP_F32 && g == GP_BF16) return add_as<float, gp_bf16>(gpu, call);
  if (slot == GP_F32 && g == GP_F16) return add_as<float, gp_f16>(gpu, call);
  GP_BY_FLOAT(slot, return (add_as<T, T>(gpu, call)))
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_accumulate = {run, NULL};
