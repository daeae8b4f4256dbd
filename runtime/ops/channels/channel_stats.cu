/* ops/channels/channel_stats.cu - see channel_stats.c: means and variances of channels on a GPU. */
#include "ops/channels/channels.cuh"

/* ---- of parts -------------------------------------------------------------------------------- */

/* Add up distances from the first row of the part, and their squares. */
template <typename T, bool PACKED>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    part_stats_kernel(const T *x, gp_compute<T> *to, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  const gp_channel_place at = gp_channel_place_of<count>(p);
  const bool there = at.group.first < p.width;
  const int64_t last = there ? at.end : at.first;
  gp_pack<T> zero = {};
  A sums[2 * count] = {};
  if (there) zero = gp_columns_load<PACKED>(x + at.first * p.width, at.group);
#pragma unroll 4
  for (int64_t row = at.first + threadIdx.y; row < last; row += blockDim.y) {
    const gp_pack<T> xs = gp_columns_load<PACKED>(x + row * p.width, at.group);
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

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_shape *image = &call->in[0].meta->shape;
  const int64_t sets = call->attr->channel_stats.samples ? image->dim[0] : 1;
  const int count = gp_pack<T>::count;
  const gp_columns p = gp_channels_columns(gp_channels_of(image, sets, image->dim[1]), count);
  const size_t shared = 2 * count * GP_COLUMNS_THREADS * sizeof(gp_compute<T>);
  const T *x = (const T *)call->in[0].data;
  GP_LAUNCH_PARTS(gpu, part_stats_kernel, p, shared, gp_is_packed(x), x,
                  (gp_compute<T> *)call->out[0].data);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_stats = {run, NULL};

/* ---- of sets --------------------------------------------------------------------------------- */

/* A block has few statistics across and many threads deep, since parts are many and channels
 * few. */
enum { UNITS = 8, DEEP = 64 };

template <typename T> struct joined {
  const T *origin, *mean, *spread; /* of the parts */
  T *to_mean, *to_variance;
  int64_t units, groups, each, rows, parts, channels;
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

/* The items of a set and group are the channels of the group in each part. */
template <typename T>
static __global__ void __launch_bounds__(UNITS *DEEP) join_kernel(joined<T> a) {
  __shared__ double kept[DEEP][UNITS];
  const int64_t unit = (int64_t)blockIdx.x * UNITS + threadIdx.x;
  const int64_t items = unit < a.units ? a.parts * a.each : 0;
  const int64_t first = unit / a.groups * a.parts * a.channels + unit % a.groups * a.each;
  const double n = (double)a.rows * (double)a.each;
  double mean = 0, spread = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < items; i += DEEP) {
    const int64_t p = a.each == 1 ? i : i / a.each, rest = a.rows - p * GP_CHANNEL_ROWS;
    const double count =
        (double)(rest < (int64_t)GP_CHANNEL_ROWS ? rest : (int64_t)GP_CHANNEL_ROWS);
    const int64_t at = first + p * a.channels + (i - p * a.each);
    mean += count * ((double)gp_load(a.origin[at]) + (double)gp_load(a.mean[at]));
  }
  mean = sum_deep(mean, kept);
  mean = n > 0 ? mean / n : 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < items; i += DEEP) {
    const int64_t p = a.each == 1 ? i : i / a.each, rest = a.rows - p * GP_CHANNEL_ROWS;
    const double count =
        (double)(rest < (int64_t)GP_CHANNEL_ROWS ? rest : (int64_t)GP_CHANNEL_ROWS);
    const int64_t at = first + p * a.channels + (i - p * a.each);
    const double d = (double)gp_load(a.origin[at]) - mean + (double)gp_load(a.mean[at]);
    spread += (double)gp_load(a.spread[at]) + count * d * d;
  }
  spread = sum_deep(spread, kept);
  if (threadIdx.y > 0 || unit >= a.units) return;
  a.to_mean[unit] = gp_store<T>((gp_compute<T>)mean);
  a.to_variance[unit] = gp_store<T>((gp_compute<T>)(n > 0 ? spread / n : 0));
}

template <typename T> static gp_status join(gp_gpu *gpu, const gp_call *call) {
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
  const dim3 grid((unsigned)((a.units + UNITS - 1) / UNITS)), block(UNITS, DEEP);
  return GP_LAUNCH(gpu, join_kernel<T>, grid, block, 0, a);
}

static gp_status run_join(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return join<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_channel_stats_join = {run_join, NULL};
