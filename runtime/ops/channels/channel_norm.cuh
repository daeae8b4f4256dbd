/* ops/channels/channel_norm.cuh - the kernels that normalise the channels of an image and make the
 * gradients: for the norm alone (channel_norm.cu), and with a ReLU and a sum behind it
 * (channel_norm_relu.cu).
 *
 * A kernel rounds to the elements' type wherever single ops would have written a value, so its bits
 * are those of single ops. */
#ifndef GP_OPS_CHANNELS_CHANNEL_NORM_CUH
#define GP_OPS_CHANNELS_CHANNEL_NORM_CUH

#include "ops/channels/form.h"
#include "ops/channels/stretches.cuh"
#include "ops/channels/warps.cuh"

/* What stands behind the norm. */
enum gp_norm_tail { GP_TAIL_NONE, GP_TAIL_RELU, GP_TAIL_ADD_RELU };
/* Which gradients pass: all; those where y, computed again from x, is above 0; or where the operand
 * y is. */
enum gp_norm_gate { GP_GATE_NONE, GP_GATE_AGAIN, GP_GATE_BY_Y };

/* x as it comes back from memory. */
template <typename T> static __device__ inline gp_compute<T> gp_rounded(gp_compute<T> x) {
  return gp_load(gp_store<T>(x));
}

/* The largest number that is rounded to 0: half of the smallest one above 0. */
template <typename T> static __device__ inline gp_compute<T> gp_rounded_to_zero(void) {
  return gp_compute<T>(0);
}
template <> __device__ inline float gp_rounded_to_zero<gp_bf16>(void) { return 0x1p-134f; }
template <> __device__ inline float gp_rounded_to_zero<gp_f16>(void) { return 0x1p-25f; }

template <typename T> static inline const T *gp_norm_operand(const gp_call *call, int i) {
  return (const T *)gp_norm_data(call, i);
}

/* Return the channels of a call. */
static inline gp_channels gp_norm_channels(const gp_call *call, const gp_norm_form &form) {
  const gp_shape *m = &call->in[form.mean].meta->shape;
  return gp_channels_of(&call->in[form.image].meta->shape, m->dim[0], m->dim[1]);
}

/* Launch KERNEL<T, HOW, PACKED> for all parts of an image; `packed` if every row can be moved by
 * packs. f64 is rare: its elements are moved one by one. */
#define GP_LAUNCH_NORM(gpu, KERNEL, HOW, p, packed, ...)                                           \
  if constexpr (sizeof(T) < sizeof(double))                                                        \
    if (!(p).spread && (packed)) {                                                                 \
      GP_LAUNCH_PARTS(gpu, (KERNEL<T, HOW, true>), p, 0, __VA_ARGS__);                             \
    }                                                                                              \
  GP_LAUNCH_PARTS(gpu, (KERNEL<T, HOW, false>), p, 0, __VA_ARGS__);

/* ---- forward --------------------------------------------------------------------------------- */

template <typename T> struct gp_normal {
  const T *x, *w, *b, *addend; /* w, b: NULL where there is none */
  T *to;
  gp_channel_stats<T> stats;
};

template <typename T, gp_norm_tail TAIL, bool PACKED>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    normalise_kernel(gp_normal<T> a, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  if (at.group.first >= p.width) return;
  A mean[count], scale[count], shift[count];
  gp_channel_stats_read(a.stats, at, mean, scale);
#pragma unroll
  for (int k = 0; k < count; k++) {
    const int64_t c = at.group.at(k) < p.width ? at.group.at(k) : 0;
    if (a.w) scale[k] *= gp_load(a.w[c]);
    shift[k] = a.b ? gp_load(a.b[c]) : A(0);
  }
  const int ahead = TAIL == GP_TAIL_ADD_RELU ? 2 : 4;
  for (int64_t row = at.first + threadIdx.y; row < at.end; row += ahead * blockDim.y) {
    gp_pack<T> xs[ahead], more[ahead];
    gp_read_ahead<PACKED, ahead>(a.x, row, at, p, xs);
    if constexpr (TAIL == GP_TAIL_ADD_RELU)
      gp_read_ahead<PACKED, ahead>(a.addend, row, at, p, more);
#pragma unroll
    for (int u = 0; u < ahead; u++) {
#pragma unroll
      for (int k = 0; k < count; k++) {
        A y = (gp_load(xs[u].at[k]) - mean[k]) * scale[k] + shift[k];
        if constexpr (TAIL == GP_TAIL_ADD_RELU) y = gp_rounded<T>(y) + gp_load(more[u].at[k]);
        if constexpr (TAIL != GP_TAIL_NONE) y = y <= A(0) ? A(0) : y;
        xs[u].at[k] = gp_store<T>(y);
      }
    }
    gp_write_ahead<PACKED, ahead>(a.to, row, at, p, xs);
  }
}

template <typename T, gp_norm_tail TAIL>
static gp_status gp_norm_forward(gp_gpu *gpu, const gp_call *call, const gp_norm_form &form) {
  const gp_channels c = gp_norm_channels(call, form);
  const gp_columns p = gp_channels_stretches(c, gp_pack<T>::count);
  const gp_normal<T> a = {(const T *)call->in[0].data,
                          gp_norm_operand<T>(call, form.weight),
                          gp_norm_operand<T>(call, form.bias),
                          gp_norm_operand<T>(call, form.addend),
                          (T *)call->out[0].data,
                          gp_channel_stats_of<T>(call->in + form.mean, form.eps, c)};
  const bool packed = gp_is_packed(a.x) && gp_is_packed(a.to) && gp_is_packed(a.addend);
  GP_LAUNCH_NORM(gpu, normalise_kernel, TAIL, p, packed, a);
}

/* ---- sums of the backward pass --------------------------------------------------------------- */

template <typename T> struct gp_norm_back {
  const T *dy, *x, *w, *b;
  const T *y, *second;        /* with GP_GATE_BY_Y; second: NULL where there is none */
  T *to;                      /* dx, or what passes the gate */
  const gp_compute<T> *means; /* [2, S, G]: of g and of g h in each group; NULL: given statistics */
  gp_channel_stats<T> stats;
};

template <typename T>
static gp_norm_back<T> gp_norm_back_of(const gp_call *call, const gp_channels &c,
                                       const gp_norm_form &form) {
  gp_norm_back<T> a = {};
  a.dy = (const T *)call->in[0].data, a.x = (const T *)call->in[form.image].data;
  a.w = gp_norm_operand<T>(call, form.weight), a.b = gp_norm_operand<T>(call, form.bias);
  a.y = gp_norm_operand<T>(call, form.gate), a.second = gp_norm_operand<T>(call, form.second);
  a.stats = gp_channel_stats_of<T>(call->in + form.mean, form.eps, c);
  return a;
}

/* What y takes besides the mean: y = (x - mean) scale + shift. */
template <typename T, int COUNT> struct gp_norm_again {
  typedef gp_compute<T> A;
  A scale[COUNT], shift[COUNT];

  /* Read those of channel c. */
  __device__ void read(const gp_norm_back<T> &a, int k, int64_t c, A rstd) {
    scale[k] = a.w ? rstd * gp_load(a.w[c]) : rstd;
    shift[k] = a.b ? gp_load(a.b[c]) : A(0);
  }
  /* Return the gradient dy if it passes; h: x - mean. */
  __device__ A pass(int k, A dy, A h) const {
    return h * scale[k] + shift[k] <= gp_rounded_to_zero<T>() ? A(0) : dy;
  }
};

/* Return what passes of dy (and of a second gradient) where the ReLU made y. */
template <typename T>
static __device__ inline gp_compute<T> gp_gated(T dy, T second, bool both, T y) {
  typedef gp_compute<T> A;
  const A all = both ? gp_rounded<T>(gp_load(dy) + gp_load(second)) : gp_load(dy);
  return gp_load(y) <= A(0) ? A(0) : all;
}

/* Warps take most images whose rows can be moved by packs; here elements are moved one by one. */
template <typename T, gp_norm_gate GATE>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    part_sums_kernel(gp_norm_back<T> a, gp_compute<T> *to, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  const int64_t last = at.group.first < p.width ? at.end : at.first;
  A mean[count], rstd[count], sums[2 * count] = {};
  gp_norm_again<T, count> again;
  gp_channel_stats_read(a.stats, at, mean, rstd);
  if constexpr (GATE == GP_GATE_AGAIN)
    for (int k = 0; k < count; k++)
      again.read(a, k, at.group.at(k) < p.width ? at.group.at(k) : 0, rstd[k]);
#pragma unroll 4
  for (int64_t row = at.first + threadIdx.y; row < last; row += blockDim.y) {
    gp_pack<T> dys = gp_columns_load<false>(a.dy + row * p.width, at.group), ys = {}, seconds = {};
    const gp_pack<T> xs = gp_columns_load<false>(a.x + row * p.width, at.group);
    if constexpr (GATE == GP_GATE_BY_Y) {
      ys = gp_columns_load<false>(a.y + row * p.width, at.group);
      if (a.second) seconds = gp_columns_load<false>(a.second + row * p.width, at.group);
    }
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A h = gp_load(xs.at[k]) - mean[k];
      A dy = gp_load(dys.at[k]);
      if constexpr (GATE == GP_GATE_AGAIN) dy = again.pass(k, dy, h);
      if constexpr (GATE == GP_GATE_BY_Y) {
        dy = gp_gated(dys.at[k], seconds.at[k], a.second != NULL, ys.at[k]);
        dys.at[k] = gp_store<T>(dy);
      }
      sums[k] = gp_plus(sums[k], dy);
      sums[count + k] = gp_plus(sums[count + k], dy * h);
    }
    if constexpr (GATE == GP_GATE_BY_Y)
      gp_columns_store<false>(a.to + row * p.width, dys, at.group);
  }
  gp_columns_fold(sums);
  if (threadIdx.y > 0) return;
#pragma unroll
  for (int k = 0; k < count; k++) sums[count + k] *= rstd[k];
  gp_channels_put(to + at.part * p.width, at.group, sums, count);
  gp_channels_put(to + (p.outer * p.segments + at.part) * p.width, at.group, sums + count, count);
}

/* Return where the statistics of channel c of a set lie. */
template <typename T>
static __device__ inline int64_t gp_stats_at(const gp_channel_stats<T> &s, int64_t set,
                                             uint32_t c) {
  return set * s.groups + (s.each == 1 ? c : c / (uint32_t)s.each);
}

/* The same by a warp: what it adds up. */
template <typename T, gp_norm_gate GATE> struct gp_products {
  typedef gp_compute<T> A;
  static const int count = gp_few<T>::count;
  typedef gp_sums<A, 2 * count> sums;
  const T *dy, *x; /* the lane's channels in the first row of the part */
  uint32_t width;
  A mean[count];
  gp_norm_again<T, GATE == GP_GATE_AGAIN ? count : 1> again;

  __device__ void add(sums *s, int row) const {
    const gp_few<T> dys = gp_few_load(dy + (uint32_t)row * width);
    const gp_few<T> xs = gp_few_load(x + (uint32_t)row * width);
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A h = gp_load(xs.at[k]) - mean[k];
      A d = gp_load(dys.at[k]);
      if constexpr (GATE == GP_GATE_AGAIN) d = again.pass(k, d, h);
      s->at[k] = gp_plus(s->at[k], d);
      s->at[count + k] = gp_plus(s->at[count + k], d * h);
    }
  }
};

/* Write the sums of a lane: those of dy h are divided by the deviation. */
template <typename T, int COUNT>
static __device__ inline void
gp_warp_sums_put(const gp_channel_stats<T> &stats, const gp_warps &w, const gp_warp_place &at,
                 gp_sums<gp_compute<T>, 2 * COUNT> &s, gp_compute<T> *to) {
  typedef gp_compute<T> A;
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    const A variance = stats.variance[gp_stats_at(stats, at.set, at.channel + k)];
    s.at[COUNT + k] *= 1 / gp_sqrt(variance + stats.eps);
  }
  const int64_t list = (int64_t)(w.units / w.tiles) * w.width;
  to += at.part * w.width + at.channel;
  gp_few_put<A, COUNT>(to, s.at);
  gp_few_put<A, COUNT>(to + list, s.at + COUNT);
}

template <typename T, gp_norm_gate GATE, int LEAVES, int ROWS>
static __device__ inline void gp_warp_sums_of(const gp_norm_back<T> &a, gp_compute<T> *to,
                                              const gp_warps &w) {
  typedef gp_compute<T> A;
  const int count = gp_few<T>::count;
  const uint32_t unit = blockIdx.x * GP_PART_WARPS + threadIdx.x / GP_WARP;
  if (unit >= w.units) return;
  const gp_warp_place at = gp_warp_place_of<T>(w, unit);
  const int64_t begin = at.first * w.width + at.channel;
  const bool there = at.channel < w.width;
  gp_products<T, GATE> source = {a.dy + begin, a.x + begin, w.width, {}, {}};
#pragma unroll
  for (int k = 0; k < count; k++) {
    const uint32_t channel = there ? at.channel + k : 0;
    const int64_t from = gp_stats_at(a.stats, at.set, channel);
    source.mean[k] = there ? a.stats.mean[from] : A(0);
    if constexpr (GATE == GP_GATE_AGAIN)
      source.again.read(a, k, channel, 1 / gp_sqrt(a.stats.variance[from] + a.stats.eps));
  }
  gp_sums<A, 2 *count> s = gp_warp_sums<LEAVES, ROWS>(source, w, at);
  if (at.slot == 0 && there) gp_warp_sums_put<T, count>(a.stats, w, at, s, to);
}

/* How the sums of a call are launched: by warps, or by blocks. */
template <typename T> struct gp_norm_sums_launch {
  gp_columns p;
  gp_warps w;
  gp_norm_back<T> a;
  gp_compute<T> *to;
  size_t shared; /* of blocks */
  bool by_warps;
};

template <typename T>
static gp_norm_sums_launch<T> gp_norm_sums_of(const gp_call *call, const gp_norm_form &form) {
  const gp_channels c = gp_norm_channels(call, form);
  gp_norm_sums_launch<T> l = {};
  l.p = gp_channels_columns(c, gp_pack<T>::count);
  l.w = gp_warps_of<T>(l.p);
  l.a = gp_norm_back_of<T>(call, c, form);
  l.a.to = form.gate ? (T *)call->out[0].data : NULL;
  l.to = (gp_compute<T> *)call->out[form.gate ? 1 : 0].data;
  l.shared = 2 * gp_pack<T>::count * GP_COLUMNS_THREADS * sizeof(gp_compute<T>);
  const bool packed = gp_is_packed(l.a.dy) && gp_is_packed(l.a.x) && gp_is_packed(l.a.y) &&
                      gp_is_packed(l.a.second) && gp_is_packed(l.a.to) && gp_is_packed(l.to);
  l.by_warps = l.w.units > 0 && gp_warps_fit<T>(l.p, l.w, packed);
  return l;
}

/* ---- gradient of the input ------------------------------------------------------------------- */

/* A warp works on a group of a set: it makes the means of dy w, and of dy w h, from the
 * sums [2, S, C]. */
template <typename T>
static __global__ void group_means_kernel(const gp_compute<T> *sums, const T *w, gp_channels c,
                                          gp_compute<T> *means) {
  typedef gp_compute<T> A;
  const int64_t units = c.sets * c.groups;
  const int64_t unit = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (unit >= units) return;
  const int64_t set = unit / c.groups, first = unit % c.groups * c.each;
  const A n = (A)c.rows * (A)c.each;
  A g = 0, gh = 0;
  for (int64_t i = first + threadIdx.x; i < first + c.each; i += GP_WARP) {
    const A by = w ? gp_load(w[i]) : A(1);
    g = gp_plus(g, by * sums[set * c.channels + i]);
    gh = gp_plus(gh, by * sums[(c.sets + set) * c.channels + i]);
  }
  g = gp_warp_sum(g), gh = gp_warp_sum(gh);
  if (threadIdx.x == 0) means[unit] = g / n, means[units + unit] = gh / n;
}

/* dx = rstd (g - mean_g - h mean_gh), or rstd g if the statistics were given. */
template <typename T, gp_norm_gate GATE, bool PACKED>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    input_gradient_kernel(gp_norm_back<T> a, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  if (at.group.first >= p.width) return;
  A mean[count], rstd[count], w[count], mean_g[count], mean_gh[count];
  gp_norm_again<T, GATE == GP_GATE_AGAIN ? count : 1> again;
  gp_channel_stats_read(a.stats, at, mean, rstd);
#pragma unroll
  for (int k = 0; k < count; k++) {
    const int64_t c = at.group.at(k) < p.width ? at.group.at(k) : 0;
    const int64_t unit =
        at.set * a.stats.groups + (a.stats.each == 1 ? c : (uint32_t)c / (uint32_t)a.stats.each);
    w[k] = a.w ? gp_load(a.w[c]) : A(1);
    mean_g[k] = a.means ? a.means[unit] : A(0);
    mean_gh[k] = a.means ? a.means[p.outer * a.stats.groups + unit] * rstd[k] : A(0);
    if constexpr (GATE == GP_GATE_AGAIN) again.read(a, k, c, rstd[k]);
  }
  const int ahead = 2;
  for (int64_t row = at.first + threadIdx.y; row < at.end; row += ahead * blockDim.y) {
    gp_pack<T> xs[ahead], dys[ahead];
    gp_read_ahead<PACKED, ahead>(a.x, row, at, p, xs);
    gp_read_ahead<PACKED, ahead>(a.dy, row, at, p, dys);
#pragma unroll
    for (int u = 0; u < ahead; u++) {
#pragma unroll
      for (int k = 0; k < count; k++) {
        const A h = gp_load(xs[u].at[k]) - mean[k];
        A dy = gp_load(dys[u].at[k]);
        if constexpr (GATE == GP_GATE_AGAIN) dy = again.pass(k, dy, h);
        dys[u].at[k] = gp_store<T>(rstd[k] * (dy * w[k] - mean_g[k] - h * mean_gh[k]));
      }
    }
    gp_write_ahead<PACKED, ahead>(a.to, row, at, p, dys);
  }
}

enum { GP_MEANS_WARPS = 4 }; /* of a block that makes the means of groups */

template <typename T, gp_norm_gate GATE>
static gp_status gp_norm_input_gradient(gp_gpu *gpu, const gp_call *call, const gp_norm_form &form,
                                        void *scratch) {
  typedef gp_compute<T> A;
  const gp_channels c = gp_norm_channels(call, form);
  const gp_columns p = gp_channels_stretches(c, gp_pack<T>::count);
  const int64_t units = c.sets * c.groups;
  gp_norm_back<T> a = gp_norm_back_of<T>(call, c, form);
  a.to = (T *)call->out[0].data, a.means = form.given ? NULL : (const A *)scratch;
  if (!form.given && units > 0)
    GP_GPU_TRY(GP_LAUNCH(gpu, group_means_kernel<T>,
                         dim3((unsigned)((units + GP_MEANS_WARPS - 1) / GP_MEANS_WARPS)),
                         dim3(GP_WARP, GP_MEANS_WARPS), 0, (const A *)call->in[form.sums].data, a.w,
                         c, (A *)scratch));
  const bool packed = gp_is_packed(a.dy) && gp_is_packed(a.x) && gp_is_packed(a.to);
  GP_LAUNCH_NORM(gpu, input_gradient_kernel, GATE, p, packed, a);
}

/* The prepare of a gradient whose statistics begin at input 2: scratch for means [2, S, G]. */
static gp_status gp_norm_prepare_dx(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_shape *m = &call->in[2].meta->shape;
  (void)gpu;
  *scratch = (size_t)(2 * m->dim[0] * m->dim[1]) * gp_sum_bytes(call->in[0].meta->dtype);
  return GP_OK;
}

#endif
