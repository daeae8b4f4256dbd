/* ops/channels/channel_stats.cu - see channel_stats.c: means and variances of channels on a GPU. */
#include "ops/channels/warps.cuh"

/* ---- of parts -------------------------------------------------------------------------------- */

/* Add up distances from the first row of the part, and their squares. Warps take most images whose
 * rows can be moved by packs, so here elements are moved one by one. */
template <typename T>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    part_stats_kernel(const T *x, gp_compute<T> *to, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  const bool there = at.group.first < p.width;
  const int64_t last = there ? at.end : at.first;
  gp_pack<T> zero = {};
  A sums[2 * count] = {};
  if (there) zero = gp_columns_load<false>(x + at.first * p.width, at.group);
#pragma unroll 4
  for (int64_t row = at.first + threadIdx.y; row < last; row += blockDim.y) {
    const gp_pack<T> xs = gp_columns_load<false>(x + row * p.width, at.group);
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A d = gp_load(xs.at[k]) - gp_load(zero.at[k]);
      sums[k] = gp_plus(sums[k], d), sums[count + k] = gp_plus(sums[count + k], d * d);
    }
  }
  gp_columns_fold(sums);
  if (threadIdx.y > 0) return;
  A origin[count], mean[count], spread[count];
#pragma unroll
  for (int k = 0; k < count; k++) {
    const A d = sums[k] / (A)(at.end - at.first), rest = sums[count + k] - sums[k] * d;
    origin[k] = gp_load(zero.at[k]), mean[k] = d, spread[k] = rest < 0 ? A(0) : rest;
  }
  const int64_t list = p.outer * p.segments * p.width;
  to += at.part * p.width;
  gp_channels_put(to, at.group, origin, count);
  gp_channels_put(to + list, at.group, mean, count);
  gp_channels_put(to + 2 * list, at.group, spread, count);
}

/* The same by a warp. */
template <typename T> struct distances {
  typedef gp_compute<T> A;
  static const int count = gp_few<T>::count;
  typedef gp_sums<A, 2 * count> sums;
  const T *x; /* the lane's channels in the first row of the part */
  uint32_t width;
  gp_few<T> zero;

  __device__ void add(sums *s, int row) const {
    const gp_few<T> xs = gp_few_load(x + (uint32_t)row * width);
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A d = gp_load(xs.at[k]) - gp_load(zero.at[k]);
      s->at[k] = gp_plus(s->at[k], d), s->at[count + k] = gp_plus(s->at[count + k], d * d);
    }
  }
};

template <typename T, int LEAVES, int ROWS>
static __global__ void __launch_bounds__(GP_PART_WARPS *GP_WARP, GP_PART_BLOCKS)
    warp_stats_kernel(const T *x, gp_compute<T> *to, gp_warps w) {
  typedef gp_compute<T> A;
  const int count = gp_few<T>::count;
  const uint32_t unit = blockIdx.x * GP_PART_WARPS + threadIdx.x / GP_WARP;
  if (unit >= w.units) return;
  const gp_warp_place at = gp_warp_place_of<T>(w, unit);
  distances<T> d = {x + at.first * w.width + at.channel, w.width, {}};
  if (at.channel < w.width) d.zero = gp_few_load(d.x);
  const gp_sums<A, 2 *count> s = gp_warp_sums<LEAVES, ROWS>(d, w, at);
  if (at.slot > 0 || at.channel >= w.width) return;
  A origin[count], mean[count], spread[count];
#pragma unroll
  for (int k = 0; k < count; k++) {
    const A m = s.at[k] / (A)at.rows, rest = s.at[count + k] - s.at[k] * m;
    origin[k] = gp_load(d.zero.at[k]), mean[k] = m, spread[k] = rest < 0 ? A(0) : rest;
  }
  const int64_t list = (int64_t)(w.units / w.tiles) * w.width;
  to += at.part * w.width + at.channel;
  gp_few_put<A, count>(to, origin);
  gp_few_put<A, count>(to + list, mean);
  gp_few_put<A, count>(to + 2 * list, spread);
}

template <typename T>
static gp_status launch_warps(gp_gpu *gpu, const gp_call *call, const gp_warps &w) {
  GP_LAUNCH_WARPS(gpu, warp_stats_kernel, w, (const T *)call->in[0].data,
                  (gp_compute<T> *)call->out[0].data);
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_shape *image = &call->in[0].meta->shape;
  const int64_t sets = call->attr->channel_stats.samples ? image->dim[0] : 1;
  const int count = gp_pack<T>::count;
  const gp_columns p = gp_channels_columns(gp_channels_of(image, sets, image->dim[1]), count);
  const size_t shared = 2 * count * GP_COLUMNS_THREADS * sizeof(gp_compute<T>);
  const T *x = (const T *)call->in[0].data;
  const gp_warps w = gp_warps_of<T>(p);
  const bool packed = gp_is_packed(x) && gp_is_packed(call->out[0].data);
  if (w.units > 0 && gp_warps_fit<T>(p, w, packed)) return launch_warps<T>(gpu, call, w);
  GP_LAUNCH_PARTS(gpu, part_stats_kernel<T>, p, shared, x, (gp_compute<T> *)call->out[0].data);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_stats = {run, NULL};

/* ---- of sets --------------------------------------------------------------------------------- */

/* A block has few statistics across and many threads deep, since parts are many and channels
 * few. Where the parts are more than STRETCH, blocks join stretches of them first, so that all
 * multiprocessors take part; the stretches are joined like parts then. */
enum { UNITS = 8, DEEP = 64, STRETCH = 512 };

template <typename T> struct joined {
  const T *origin, *mean, *spread; /* of the parts */
  T *to_mean, *to_variance;
  int64_t units, groups, each, rows, parts, channels;
  int64_t stretches;       /* of the parts of a set, STRETCH each */
  double *means, *spreads; /* of the stretches [stretch, unit]: NULL if there is one */
};

/* Add x over the threads that stand behind one another; all of them get the sum. */
static __device__ inline double sum_deep(double x, double (*kept)[UNITS]) {
  kept[threadIdx.y][threadIdx.x] = x;
  __syncthreads();
  for (int deep = DEEP / 2; deep > 0; deep /= 2) {
    if ((int)threadIdx.y < deep)
      kept[threadIdx.y][threadIdx.x] += kept[threadIdx.y + deep][threadIdx.x];
    __syncthreads();
  }
  const double sum = kept[0][threadIdx.x];
  __syncthreads();
  return sum;
}

/* Return how many rows parts [part, part + count) of a set have. */
static __device__ inline int64_t rows_of(int64_t rows, int64_t part, int64_t count) {
  const int64_t first = part * GP_CHANNEL_ROWS, end = (part + count) * GP_CHANNEL_ROWS;
  return (end < rows ? end : rows) - (first < rows ? first : rows);
}

/* The items of a set and group are the channels of the group in each part. A block joins those of
 * one stretch of the parts. */
template <typename T>
static __global__ void __launch_bounds__(UNITS *DEEP) join_kernel(joined<T> a) {
  __shared__ double kept[DEEP][UNITS];
  const int64_t unit = (int64_t)blockIdx.x * UNITS + threadIdx.x, part = blockIdx.y * STRETCH;
  const int64_t rest_of = a.parts - part;
  const int64_t parts = a.stretches > 1 && rest_of > STRETCH ? (int64_t)STRETCH : rest_of;
  const int64_t items = unit < a.units ? parts * a.each : 0;
  const int64_t first = (unit / a.groups * a.parts + part) * a.channels + unit % a.groups * a.each;
  const int64_t rows = rows_of(a.rows, part, parts);
  const double n = (double)rows * (double)a.each;
  double mean = 0, spread = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < items; i += DEEP) {
    const int64_t p = a.each == 1 ? i : i / a.each, rest = rows - p * GP_CHANNEL_ROWS;
    const double count =
        (double)(rest < (int64_t)GP_CHANNEL_ROWS ? rest : (int64_t)GP_CHANNEL_ROWS);
    const int64_t at = first + p * a.channels + (i - p * a.each);
    mean += count * ((double)gp_load(a.origin[at]) + (double)gp_load(a.mean[at]));
  }
  mean = sum_deep(mean, kept);
  mean = n > 0 ? mean / n : 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < items; i += DEEP) {
    const int64_t p = a.each == 1 ? i : i / a.each, rest = rows - p * GP_CHANNEL_ROWS;
    const double count =
        (double)(rest < (int64_t)GP_CHANNEL_ROWS ? rest : (int64_t)GP_CHANNEL_ROWS);
    const int64_t at = first + p * a.channels + (i - p * a.each);
    const double d = (double)gp_load(a.origin[at]) - mean + (double)gp_load(a.mean[at]);
    spread += (double)gp_load(a.spread[at]) + count * d * d;
  }
  spread = sum_deep(spread, kept);
  if (threadIdx.y > 0 || unit >= a.units) return;
  if (a.stretches > 1) {
    a.means[blockIdx.y * a.units + unit] = mean, a.spreads[blockIdx.y * a.units + unit] = spread;
    return;
  }
  a.to_mean[unit] = gp_store<T>((gp_compute<T>)mean);
  a.to_variance[unit] = gp_store<T>((gp_compute<T>)(n > 0 ? spread / n : 0));
}

/* Join the stretches, as parts are joined. */
template <typename T>
static __global__ void __launch_bounds__(UNITS *DEEP) join_stretches_kernel(joined<T> a) {
  __shared__ double kept[DEEP][UNITS];
  const int64_t unit = (int64_t)blockIdx.x * UNITS + threadIdx.x;
  const int64_t stretches = unit < a.units ? a.stretches : 0;
  const double n = (double)a.rows * (double)a.each;
  double mean = 0, spread = 0;
#pragma unroll 4
  for (int64_t s = threadIdx.y; s < stretches; s += DEEP)
    mean += (double)(rows_of(a.rows, s * STRETCH, STRETCH) * a.each) * a.means[s * a.units + unit];
  mean = sum_deep(mean, kept) / n;
#pragma unroll 4
  for (int64_t s = threadIdx.y; s < stretches; s += DEEP) {
    const double d = a.means[s * a.units + unit] - mean;
    const double count = (double)(rows_of(a.rows, s * STRETCH, STRETCH) * a.each);
    spread += a.spreads[s * a.units + unit] + count * d * d;
  }
  spread = sum_deep(spread, kept);
  if (threadIdx.y > 0 || unit >= a.units) return;
  a.to_mean[unit] = gp_store<T>((gp_compute<T>)mean);
  a.to_variance[unit] = gp_store<T>((gp_compute<T>)(spread / n));
}

static int64_t stretches_of(int64_t parts) { return (parts + STRETCH - 1) / STRETCH; }

template <typename T> static gp_status join(gp_gpu *gpu, const gp_call *call, void *scratch) {
  const gp_attr_channel_stats_join *attr = &call->attr->channel_stats_join;
  const gp_shape *out = &call->out[0].meta->shape;
  joined<T> a = {};
  a.rows = attr->rows, a.parts = gp_channel_parts(attr->rows);
  a.channels = call->in[0].meta->shape.dim[2], a.groups = out->dim[1];
  a.units = out->dim[0] * a.groups;
  if (a.units == 0) return GP_OK;
  a.each = a.channels / a.groups;
  const int64_t list = attr->sets * a.parts * a.channels;
  a.origin = (const T *)call->in[0].data, a.mean = a.origin + list, a.spread = a.mean + list;
  a.to_mean = (T *)call->out[0].data, a.to_variance = (T *)call->out[1].data;
  a.stretches = stretches_of(a.parts);
  if (a.stretches > 1) a.means = (double *)scratch, a.spreads = a.means + a.stretches * a.units;
  const unsigned across = (unsigned)((a.units + UNITS - 1) / UNITS);
  const unsigned stretches = a.stretches > 0 ? (unsigned)a.stretches : 1;
  const dim3 block(UNITS, DEEP);
  GP_GPU_TRY(GP_LAUNCH(gpu, join_kernel<T>, dim3(across, stretches), block, 0, a));
  if (a.stretches < 2) return GP_OK;
  return GP_LAUNCH(gpu, join_stretches_kernel<T>, dim3(across), block, 0, a);
}

static gp_status run_join(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return join<T>(gpu, &call->op, call->scratch));
  return GP_OK;
}

static gp_status prepare_join(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const int64_t stretches = stretches_of(gp_channel_parts(call->attr->channel_stats_join.rows));
  (void)gpu;
  *scratch = 0;
  if (stretches > 1)
    *scratch = (size_t)(2 * stretches * gp_numel_of(call->out[0].meta)) * sizeof(double);
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_stats_join = {run_join, prepare_join};
