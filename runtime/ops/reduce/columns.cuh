/* ops/reduce/columns.cuh - sums over rows: [rows, width] -> [width], in two passes of a fixed
 * order.
 *
 * A block takes a tile of neighbouring columns and a segment of the rows; its threads stand `depth`
 * deep, thread y adding rows y, y + depth, .. of the segment, and are then added as a tree. Where
 * there are several segments their sums go to scratch and are rows again, for a second pass. Tiles
 * and segments depend on the shapes only. What a term is, is the source's: an element of x, or dy
 * (x - mean) rstd. */
#ifndef GP_OPS_REDUCE_COLUMNS_CUH
#define GP_OPS_REDUCE_COLUMNS_CUH

#include "ops/reduce/terms.cuh"

enum {
  GP_COLUMNS_THREADS = 256,
  GP_COLUMNS_LOADS = 8, /* rows a thread adds at least before it pays to cut into more segments */
  GP_COLUMNS_BLOCKS = 1024 /* enough for every GPU; more would only make more partial sums */
};

/* `outer` times [rows, width] -> [width]. */
struct gp_columns {
  int64_t outer, rows, width;
  int64_t tiles, segments, per_segment; /* per_segment: rows */
  int wide, deep;                       /* threads: each has a group of `count` columns */
  bool spread; /* the columns of a group lie `wide` apart, since width is no multiple of count */
};

/* count: columns of a group, one access where they are neighbours. */
static inline gp_columns gp_columns_plan(int64_t outer, int64_t rows, int64_t width, int count) {
  gp_columns p = {};
  p.outer = outer, p.rows = rows, p.width = width;
  const int64_t groups = (width + count - 1) / count;
  for (p.wide = 1; p.wide < GP_WARP && p.wide < groups;) p.wide *= 2;
  p.deep = GP_COLUMNS_THREADS / p.wide;
  p.spread = width % count != 0;
  p.tiles = (groups + p.wide - 1) / p.wide;
  const int64_t most = rows / (p.deep * GP_COLUMNS_LOADS), across = outer * p.tiles;
  const int64_t wanted = across > 0 ? (GP_COLUMNS_BLOCKS + across - 1) / across : 1;
  p.segments = most < 1 ? 1 : most < wanted ? most : wanted;
  p.per_segment = (rows + p.segments - 1) / p.segments;
  if (p.per_segment > 0) p.segments = (rows + p.per_segment - 1) / p.per_segment;
  return p;
}

/* Bytes for the segments' sums; 0 where one pass does. item: of a sum. */
static inline size_t gp_columns_scratch(const gp_columns *p, size_t item) {
  return p->segments > 1 ? (size_t)(p->outer * p->segments * p->width) * item : 0;
}

/* ---- kernel --------------------------------------------------------------------------------- */

/* Where the columns of this thread's group lie. */
struct gp_column_group {
  int64_t first, step, width;
  bool packed;
  __device__ int64_t at(int k) const { return first + k * step; }
};

template <int COUNT>
static __device__ inline gp_column_group gp_column_group_of(const gp_columns &p, int64_t tile) {
  const int64_t base = tile * p.wide * COUNT;
  if (p.spread) return {base + threadIdx.x, p.wide, p.width, false};
  return {base + (int64_t)threadIdx.x * COUNT, 1, p.width, true};
}

/* Columns of `from`, by one access where they and the address allow it; 0 past the last one. */
template <typename T>
static __device__ inline gp_pack<T> gp_columns_read(const T *from, const gp_column_group &group) {
  gp_pack<T> x;
  if (group.packed && ((uintptr_t)(from + group.first) & 15) == 0 && group.first < group.width)
    return *reinterpret_cast<const gp_pack<T> *>(from + group.first);
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++)
    x.at[k] = group.at(k) < group.width ? from[group.at(k)] : T();
  return x;
}

/* Add the threads that stand behind one another; those of depth 0 have the sums. */
template <typename A, int COUNT> static __device__ inline void gp_columns_fold(A (&sum)[COUNT]) {
  GP_SHARED(A, part);
  const int threads = blockDim.x * blockDim.y, me = threadIdx.y * blockDim.x + threadIdx.x;
  for (int deep = blockDim.y / 2; deep > 0; deep /= 2) {
    const bool gives = (int)threadIdx.y >= deep && (int)threadIdx.y < 2 * deep;
    if (gives)
      for (int k = 0; k < COUNT; k++) part[k * threads + me] = sum[k];
    __syncthreads();
    if ((int)threadIdx.y < deep)
      for (int k = 0; k < COUNT; k++)
        sum[k] = gp_plus(sum[k], part[k * threads + me + deep * (int)blockDim.x]);
  }
}

/* Where the sums of a column go. */
template <int SUMS> struct gp_column_sinks { gp_sink of[SUMS]; };

/* A source has `sum` (the type of sums), `count` (columns of a group), `sums` (of each column:
 * those of a group stand behind one another) and add(sums, outer, row, group). */
template <typename Source>
static __global__ void gp_columns_kernel(Source source, gp_columns p,
                                         gp_column_sinks<Source::sums> out) {
  typedef typename Source::sum A;
  const int64_t tile = blockIdx.x % p.tiles, rest = blockIdx.x / p.tiles;
  const int64_t segment = rest % p.segments, outer = rest / p.segments;
  const int64_t begin = segment * p.per_segment;
  const int64_t end = begin + p.per_segment < p.rows ? begin + p.per_segment : p.rows;
  const gp_column_group group = gp_column_group_of<Source::count>(p, tile);
  A sum[Source::sums * Source::count] = {};
#pragma unroll 4
  for (int64_t top = begin; top < end; top += blockDim.y) { /* all lanes of a warp stay together */
    const int64_t row = top + threadIdx.y;
    if (row < end && group.first < p.width) source.add(sum, outer, row, group);
  }
  gp_columns_fold(sum);
  if (threadIdx.y > 0) return;
  const int64_t row = (outer * p.segments + segment) * p.width;
  for (int s = 0; s < Source::sums; s++)
    for (int k = 0; k < Source::count; k++)
      if (group.at(k) < p.width)
        gp_sink_put(out.of[s], row + group.at(k), sum[s * Source::count + k]);
}

/* ---- sums of elements ------------------------------------------------------------------------ */

/* x of any layout whose columns are neighbours. */
template <typename T> struct gp_plain_columns {
  typedef typename gp_sum_of<T>::type sum;
  static const int count = gp_pack<T>::count, sums = 1;
  const T *x;
  gp_strides outer, rows;
  __device__ void add(sum *to, int64_t o, int64_t row, const gp_column_group &group) const {
    const gp_pack<T> x_group =
        gp_columns_read(x + gp_offset_of(outer, o) + gp_offset_of(rows, row), group);
#pragma unroll
    for (int k = 0; k < count; k++) to[k] = gp_plus(to[k], (sum)gp_load(x_group.at[k]));
  }
};

/* ---- launching ------------------------------------------------------------------------------ */

template <typename Source>
static gp_status gp_columns_launch(gp_gpu *gpu, const Source &source, const gp_columns &p,
                                   const gp_column_sinks<Source::sums> &out) {
  const size_t values = Source::sums * Source::count * GP_COLUMNS_THREADS;
  const int64_t blocks = p.outer * p.tiles * p.segments;
  if (blocks == 0) return GP_OK;
  return GP_LAUNCH(gpu, gp_columns_kernel<Source>, dim3((unsigned)blocks), dim3(p.wide, p.deep),
                   values * sizeof(typename Source::sum), source, p, out);
}

/* The second pass of one of the sums. */
template <typename A>
static gp_status gp_columns_join(gp_gpu *gpu, const A *parts, const gp_columns &p, gp_sink out) {
  gp_plain_columns<A> again = {parts, {}, {}};
  gp_strides_push(&again.outer, p.outer, p.segments * p.width);
  gp_strides_push(&again.rows, p.segments, p.width);
  gp_columns second = gp_columns_plan(p.outer, p.segments, p.width, gp_pack<A>::count);
  second.segments = 1, second.per_segment = p.segments;
  return gp_columns_launch(gpu, again, second, gp_column_sinks<1>{{out}});
}

/* Both passes. scratch: of all sums. */
template <typename Source>
static gp_status gp_columns_run_all(gp_gpu *gpu, const Source &source, const gp_columns &p,
                                    const gp_column_sinks<Source::sums> &out, void *scratch) {
  typedef typename Source::sum A;
  const int64_t parts = p.outer * p.segments * p.width;
  gp_column_sinks<Source::sums> first;
  if (p.segments == 1) return gp_columns_launch(gpu, source, p, out);
  for (int s = 0; s < Source::sums; s++)
    first.of[s] = {(A *)scratch + s * parts, gp_sum_dtype(A()), false};
  GP_GPU_TRY(gp_columns_launch(gpu, source, p, first));
  for (int s = 0; s < Source::sums; s++)
    GP_GPU_TRY(gp_columns_join(gpu, (const A *)first.of[s].data, p, out.of[s]));
  return GP_OK;
}

/* The same for one sum. */
template <typename Source>
static gp_status gp_columns_run(gp_gpu *gpu, const Source &source, const gp_columns &p, gp_sink out,
                                void *scratch) {
  return gp_columns_run_all(gpu, source, p, gp_column_sinks<1>{{out}}, scratch);
}

#endif
