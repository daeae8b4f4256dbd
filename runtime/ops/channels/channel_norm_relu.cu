/* ops/channels/channel_norm_relu.cu - see channel_norm_relu.c: channels normalised on a GPU, with a
 * ReLU and a sum behind the norm, and the gradients. */
#include "ops/channels/channel_norm.cuh"

/* ---- forward --------------------------------------------------------------------------------- */

static gp_status run_relu(gp_gpu *gpu, const gp_gpu_call *call) {
  gp_norm_form form = {};
  form.eps = call->op.attr->channel_norm_relu.eps;
  form.mean = 1, form.weight = 3, form.bias = 4;
  GP_BY_FLOAT(call->op.in[0].meta->dtype,
              return (gp_norm_forward<T, GP_TAIL_RELU>(gpu, &call->op, form)));
  return GP_OK;
}

static gp_status run_add_relu(gp_gpu *gpu, const gp_gpu_call *call) {
  gp_norm_form form = {};
  form.eps = call->op.attr->channel_norm_add_relu.eps;
  form.mean = 1, form.addend = 3, form.weight = 4, form.bias = 5;
  GP_BY_FLOAT(call->op.in[0].meta->dtype,
              return (gp_norm_forward<T, GP_TAIL_ADD_RELU>(gpu, &call->op, form)));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_relu = {run_relu, NULL};
const gp_gpu_kernel gp_gpu_channel_norm_add_relu = {run_add_relu, NULL};

/* ---- gradients behind a norm alone ----------------------------------------------------------- */

template <typename T, int LEAVES, int ROWS>
static __global__ void __launch_bounds__(GP_PART_WARPS *GP_WARP, GP_PART_BLOCKS)
    warp_relu_sums_kernel(gp_norm_back<T> a, gp_compute<T> *to, gp_warps w) {
  gp_warp_sums_of<T, GP_GATE_AGAIN, LEAVES, ROWS>(a, to, w);
}

template <typename T> static gp_status sums_by_warps(gp_gpu *gpu, const gp_norm_sums_launch<T> &l) {
  GP_LAUNCH_WARPS(gpu, warp_relu_sums_kernel, l.w, l.a, l.to);
}

template <typename T> static gp_status sums(gp_gpu *gpu, const gp_call *call) {
  gp_norm_form form = {};
  form.eps = call->attr->channel_norm_relu_sums.eps;
  form.image = 1, form.mean = 2, form.weight = 4, form.bias = 5;
  const gp_norm_sums_launch<T> l = gp_norm_sums_of<T>(call, form);
  if (l.by_warps) return sums_by_warps(gpu, l);
  GP_LAUNCH_PARTS(gpu, (part_sums_kernel<T, GP_GATE_AGAIN>), l.p, l.shared, l.a, l.to);
}

static gp_status run_sums(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return sums<T>(gpu, &call->op));
  return GP_OK;
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_attr_channel_norm_relu_dx *a = &call->op.attr->channel_norm_relu_dx;
  gp_norm_form form = {};
  form.eps = a->eps, form.given = a->given;
  form.image = 1, form.mean = 2, form.sums = 4, form.weight = 5, form.bias = 6;
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return (gp_norm_input_gradient<T, GP_GATE_AGAIN>(
                                              gpu, &call->op, form, call->scratch)));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_relu_sums = {run_sums, NULL};
const gp_gpu_kernel gp_gpu_channel_norm_relu_dx = {run_dx, gp_norm_prepare_dx};

/* ---- sums of gradients that pass a gate ------------------------------------------------------ */

enum { GATE_BLOCKS = 4 }; /* of a multiprocessor: rows that are read ahead take registers */

/* What a lane reads of a row. */
template <typename T> struct terms { gp_few<T> dy, y, x, second; };

/* The leaves of a warp's sums (warps.cuh). What passes the gate is written in between, and the
 * compiler lets no load pass a store that might be to the same place: so several rows are read
 * before the first of them is written. */
template <typename T, bool BOTH, int ROWS> struct gate_leaves {
  typedef gp_compute<T> A;
  static const int count = gp_few<T>::count;
  static const int ahead = ROWS == 1 ? 1 : ROWS == 8 && sizeof(T) == 2 ? 4 : 2;
  static const int rows = ROWS;
  typedef gp_sums<A, 2 * count> sums;
  gp_norm_back<T> a; /* addresses: of the lane's channels in the first row of the part */
  gp_warps w;
  int slot, there; /* there: rows of the part, 0 in a lane without channels */
  A mean[count];

  __device__ terms<T> read(int row) const {
    const uint32_t at = (uint32_t)(row < there ? row : 0) * w.width;
    terms<T> t = {};
    t.dy = gp_few_load(a.dy + at), t.y = gp_few_load(a.y + at), t.x = gp_few_load(a.x + at);
    if constexpr (BOTH) t.second = gp_few_load(a.second + at);
    return t;
  }
  __device__ void add(sums *s, const terms<T> &t, int row) const {
    if (row >= there) return;
    gp_few<T> g;
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A d = gp_gated(t.dy.at[k], t.second.at[k], BOTH, t.y.at[k]);
      g.at[k] = gp_store<T>(d);
      s->at[k] = gp_plus(s->at[k], d);
      s->at[count + k] = gp_plus(s->at[count + k], d * (gp_load(t.x.at[k]) - mean[k]));
    }
    *reinterpret_cast<gp_few<T> *>(a.to + (uint32_t)row * w.width) = g;
  }
  __device__ sums leaf(int v) const {
    sums s = {};
#pragma unroll
    for (int first = 0; first < ROWS; first += ahead) {
      terms<T> t[ahead];
      const int row = slot + w.slots * v + w.deep * first;
#pragma unroll
      for (int u = 0; u < ahead; u++) t[u] = read(row + w.deep * u);
#pragma unroll
      for (int u = 0; u < ahead; u++) add(&s, t[u], row + w.deep * u);
    }
    return s;
  }
};

template <typename T, bool BOTH, int LEAVES, int ROWS>
static __device__ inline void gate_sums_of(const gp_norm_back<T> &from, gp_compute<T> *to,
                                           const gp_warps &w) {
  typedef gp_compute<T> A;
  const int count = gp_few<T>::count;
  const uint32_t unit = blockIdx.x * GP_PART_WARPS + threadIdx.x / GP_WARP;
  if (unit >= w.units) return;
  const gp_warp_place at = gp_warp_place_of<T>(w, unit);
  const bool there = at.channel < w.width;
  const uint32_t channel = there ? at.channel : 0;
  const int64_t begin = at.first * w.width + channel;
  gate_leaves<T, BOTH, ROWS> leaves = {from, w, at.slot, there ? at.rows : 0, {}};
  leaves.a.dy += begin, leaves.a.x += begin, leaves.a.y += begin, leaves.a.to += begin;
  if (BOTH) leaves.a.second += begin;
#pragma unroll
  for (int k = 0; k < count; k++)
    leaves.mean[k] = from.stats.mean[gp_stats_at(from.stats, at.set, channel + k)];
  gp_sums<A, 2 *count> s = gp_warp_tree<LEAVES, 1>(leaves, 0);
  gp_warp_fold(&s, w);
  if (at.slot == 0 && there) gp_warp_sums_put<T, count>(from.stats, w, at, s, to);
}

template <typename T, int LEAVES, int ROWS>
static __global__ void __launch_bounds__(GP_PART_WARPS *GP_WARP, GATE_BLOCKS)
    warp_gate_sums_kernel(gp_norm_back<T> a, gp_compute<T> *to, gp_warps w) {
  gate_sums_of<T, false, LEAVES, ROWS>(a, to, w);
}

template <typename T, int LEAVES, int ROWS>
static __global__ void __launch_bounds__(GP_PART_WARPS *GP_WARP, GATE_BLOCKS)
    warp_gate_both_kernel(gp_norm_back<T> a, gp_compute<T> *to, gp_warps w) {
  gate_sums_of<T, true, LEAVES, ROWS>(a, to, w);
}

template <typename T> static gp_status gate_by_warps(gp_gpu *gpu, const gp_norm_sums_launch<T> &l) {
  GP_LAUNCH_WARPS(gpu, warp_gate_sums_kernel, l.w, l.a, l.to);
}

template <typename T> static gp_status both_by_warps(gp_gpu *gpu, const gp_norm_sums_launch<T> &l) {
  GP_LAUNCH_WARPS(gpu, warp_gate_both_kernel, l.w, l.a, l.to);
}

template <typename T> static gp_status gate(gp_gpu *gpu, const gp_call *call) {
  gp_norm_form form = {};
  form.eps = call->attr->channel_norm_gate_sums.eps;
  form.image = 2, form.mean = 3, form.gate = 1, form.second = 5;
  const gp_norm_sums_launch<T> l = gp_norm_sums_of<T>(call, form);
  if (l.by_warps) return l.a.second ? both_by_warps(gpu, l) : gate_by_warps(gpu, l);
  GP_LAUNCH_PARTS(gpu, (part_sums_kernel<T, GP_GATE_BY_Y>), l.p, l.shared, l.a, l.to);
}

static gp_status run_gate(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return gate<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_gate_sums = {run_gate, NULL};
