/* ops/channels/channel_norm.cu - see channel_norm.c: channels normalised on a GPU, and the
 * gradients. */
#include "ops/channels/stretches.cuh"
#include "ops/channels/warps.cuh"

/* ---- forward --------------------------------------------------------------------------------- */

template <typename T> struct normal {
  const T *x, *w, *b; /* w, b: NULL where there is none */
  T *to;
  gp_channel_stats<T> stats;
};

template <typename T, bool PACKED>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    normalise_kernel(normal<T> a, gp_columns p) {
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
  const int ahead = 4;
  for (int64_t row = at.first + threadIdx.y; row < at.end; row += ahead * blockDim.y) {
    gp_pack<T> xs[ahead];
    gp_read_ahead<PACKED, ahead>(a.x, row, at, p, xs);
#pragma unroll
    for (int u = 0; u < ahead; u++) {
#pragma unroll
      for (int k = 0; k < count; k++)
        xs[u].at[k] = gp_store<T>((gp_load(xs[u].at[k]) - mean[k]) * scale[k] + shift[k]);
    }
    gp_write_ahead<PACKED, ahead>(a.to, row, at, p, xs);
  }
}

/* Return the channels of in[image] and of the statistics in[mean]. */
static gp_channels channels_of(const gp_call *call, int image, int mean) {
  const gp_shape *m = &call->in[mean].meta->shape;
  return gp_channels_of(&call->in[image].meta->shape, m->dim[0], m->dim[1]);
}

template <typename T> static gp_status forward(gp_gpu *gpu, const gp_call *call) {
  const gp_channels c = channels_of(call, 0, 1);
  const gp_columns p = gp_channels_stretches(c, gp_pack<T>::count);
  const normal<T> a = {(const T *)call->in[0].data,
                       call->n_in > 3 ? (const T *)call->in[3].data : NULL,
                       call->n_in > 4 ? (const T *)call->in[4].data : NULL, (T *)call->out[0].data,
                       gp_channel_stats_of<T>(call->in + 1, call->attr->channel_norm.eps, c)};
  GP_LAUNCH_PARTS(gpu, normalise_kernel, p, 0, gp_is_packed(a.x) && gp_is_packed(a.to), a);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm = {run, NULL};

/* ---- sums of the backward pass --------------------------------------------------------------- */

template <typename T> struct backward {
  const T *dy, *x, *w;
  T *to;
  const gp_compute<T> *means; /* [2, S, G]: of g and of g h in each group; NULL: given statistics */
  gp_channel_stats<T> stats;
};

template <typename T>
static backward<T> backward_of(const gp_call *call, const gp_channels &c, double eps) {
  backward<T> a = {};
  a.dy = (const T *)call->in[0].data, a.x = (const T *)call->in[1].data;
  a.w = call->n_in > 5 ? (const T *)call->in[5].data : NULL;
  a.stats = gp_channel_stats_of<T>(call->in + 2, eps, c);
  return a;
}

template <typename T, bool PACKED>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    part_sums_kernel(backward<T> a, gp_compute<T> *to, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  const int64_t last = at.group.first < p.width ? at.end : at.first;
  A mean[count], rstd[count], sums[2 * count] = {};
  gp_channel_stats_read(a.stats, at, mean, rstd);
#pragma unroll 4
  for (int64_t row = at.first + threadIdx.y; row < last; row += blockDim.y) {
    const gp_pack<T> dys = gp_columns_load<PACKED>(a.dy + row * p.width, at.group);
    const gp_pack<T> xs = gp_columns_load<PACKED>(a.x + row * p.width, at.group);
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A dy = gp_load(dys.at[k]);
      sums[k] = gp_plus(sums[k], dy);
      sums[count + k] = gp_plus(sums[count + k], dy * (gp_load(xs.at[k]) - mean[k]));
    }
  }
  gp_columns_fold(sums);
  if (threadIdx.y > 0) return;
#pragma unroll
  for (int k = 0; k < count; k++) sums[count + k] *= rstd[k];
  gp_channels_put(to + at.part * p.width, at.group, sums, count);
  gp_channels_put(to + (p.outer * p.segments + at.part) * p.width, at.group, sums + count, count);
}

/* The same by a warp. */
template <typename T> struct products {
  typedef gp_compute<T> A;
  static const int count = gp_few<T>::count;
  typedef gp_sums<A, 2 * count> sums;
  const T *dy, *x; /* the lane's channels in the first row of the part */
  uint32_t width;
  A mean[count];

  __device__ void add(sums *s, int row) const {
    const gp_few<T> dys = gp_few_load(dy + (uint32_t)row * width);
    const gp_few<T> xs = gp_few_load(x + (uint32_t)row * width);
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A d = gp_load(dys.at[k]);
      s->at[k] = gp_plus(s->at[k], d);
      s->at[count + k] = gp_plus(s->at[count + k], d * (gp_load(xs.at[k]) - mean[k]));
    }
  }
};

/* Return where the statistics of channel c of a set lie. */
template <typename T>
static __device__ inline int64_t stats_at(const gp_channel_stats<T> &s, int64_t set, uint32_t c) {
  return set * s.groups + (s.each == 1 ? c : c / (uint32_t)s.each);
}

template <typename T, int LEAVES, int ROWS>
static __global__ void __launch_bounds__(GP_PART_WARPS *GP_WARP, GP_PART_BLOCKS)
    warp_sums_kernel(backward<T> a, gp_compute<T> *to, gp_warps w) {
  typedef gp_compute<T> A;
  const int count = gp_few<T>::count;
  const uint32_t unit = blockIdx.x * GP_PART_WARPS + threadIdx.x / GP_WARP;
  if (unit >= w.units) return;
  const gp_warp_place at = gp_warp_place_of<T>(w, unit);
  const int64_t begin = at.first * w.width + at.channel;
  const bool there = at.channel < w.width;
  products<T> source = {a.dy + begin, a.x + begin, w.width, {}};
#pragma unroll
  for (int k = 0; k < count; k++)
    source.mean[k] = there ? a.stats.mean[stats_at(a.stats, at.set, at.channel + k)] : A(0);
  gp_sums<A, 2 *count> s = gp_warp_sums<LEAVES, ROWS>(source, w, at);
  if (at.slot > 0 || !there) return;
#pragma unroll
  for (int k = 0; k < count; k++) {
    const A variance = a.stats.variance[stats_at(a.stats, at.set, at.channel + k)];
    s.at[count + k] *= 1 / gp_sqrt(variance + a.stats.eps);
  }
  const int64_t list = (int64_t)(w.units / w.tiles) * w.width;
  to += at.part * w.width + at.channel;
  gp_few_put<A, count>(to, s.at);
  gp_few_put<A, count>(to + list, s.at + count);
}

template <typename T>
static gp_status sums_by_warps(gp_gpu *gpu, const backward<T> &a, gp_compute<T> *to,
                               const gp_warps &w) {
  GP_LAUNCH_WARPS(gpu, warp_sums_kernel, w, a, to);
}

template <typename T> static gp_status sums(gp_gpu *gpu, const gp_call *call) {
  const gp_channels c = channels_of(call, 1, 2);
  const gp_columns p = gp_channels_columns(c, gp_pack<T>::count);
  const backward<T> a = backward_of<T>(call, c, call->attr->channel_norm_sums.eps);
  const size_t shared = 2 * gp_pack<T>::count * GP_COLUMNS_THREADS * sizeof(gp_compute<T>);
  gp_compute<T> *to = (gp_compute<T> *)call->out[0].data;
  const bool packed = gp_is_packed(a.dy) && gp_is_packed(a.x);
  const gp_warps w = gp_warps_of<T>(p);
  if (w.units > 0 && gp_warps_fit(p, w, packed && gp_is_packed(to)))
    return sums_by_warps(gpu, a, to, w);
  GP_LAUNCH_PARTS(gpu, part_sums_kernel, p, shared, packed, a, to);
}

static gp_status run_sums(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return sums<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_sums = {run_sums, NULL};

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
template <typename T, bool PACKED>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    input_gradient_kernel(backward<T> a, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  if (at.group.first >= p.width) return;
  A mean[count], rstd[count], w[count], mean_g[count], mean_gh[count];
  gp_channel_stats_read(a.stats, at, mean, rstd);
#pragma unroll
  for (int k = 0; k < count; k++) {
    const int64_t c = at.group.at(k) < p.width ? at.group.at(k) : 0;
    const int64_t unit =
        at.set * a.stats.groups + (a.stats.each == 1 ? c : (uint32_t)c / (uint32_t)a.stats.each);
    w[k] = a.w ? gp_load(a.w[c]) : A(1);
    mean_g[k] = a.means ? a.means[unit] : A(0);
    mean_gh[k] = a.means ? a.means[p.outer * a.stats.groups + unit] * rstd[k] : A(0);
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
        const A h = (gp_load(xs[u].at[k]) - mean[k]) * mean_gh[k];
        dys[u].at[k] = gp_store<T>(rstd[k] * (gp_load(dys[u].at[k]) * w[k] - mean_g[k] - h));
      }
    }
    gp_write_ahead<PACKED, ahead>(a.to, row, at, p, dys);
  }
}

enum { WARPS = 4 }; /* of a block that makes the means of groups */

template <typename T>
static gp_status input_gradient(gp_gpu *gpu, const gp_call *call, void *scratch) {
  typedef gp_compute<T> A;
  const gp_attr_channel_norm_dx *attr = &call->attr->channel_norm_dx;
  const gp_channels c = channels_of(call, 1, 2);
  const gp_columns p = gp_channels_stretches(c, gp_pack<T>::count);
  const int64_t units = c.sets * c.groups;
  backward<T> a = backward_of<T>(call, c, attr->eps);
  a.to = (T *)call->out[0].data, a.means = attr->given ? NULL : (const A *)scratch;
  if (!attr->given && units > 0)
    GP_GPU_TRY(GP_LAUNCH(gpu, group_means_kernel<T>, dim3((unsigned)((units + WARPS - 1) / WARPS)),
                         dim3(GP_WARP, WARPS), 0, (const A *)call->in[4].data, a.w, c,
                         (A *)scratch));
  GP_LAUNCH_PARTS(gpu, input_gradient_kernel, p, 0,
                  gp_is_packed(a.dy) && gp_is_packed(a.x) && gp_is_packed(a.to), a);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return input_gradient<T>(gpu, &call->op, call->scratch));
  return GP_OK;
}

static gp_status prepare_dx(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  const gp_shape *mean = &call->in[2].meta->shape;
  *scratch = (size_t)(2 * mean->dim[0] * mean->dim[1]) * gp_sum_bytes(call->in[0].meta->dtype);
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_norm_dx = {run_dx, prepare_dx};
