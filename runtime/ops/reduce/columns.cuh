/* ops/reduce/columns.cuh - sums over rows: [rows, width] -> [width], in two passes of a fixed
 * order.
 *
 * A block takes a tile of neighbouring columns and a segment of the rows. Its threads stand `depth`
 * deep: thread y adds rows y, y + depth, .. of the segment, and a tree adds the threads. If there
 * are several segments, their sums go to scratch and are rows again, for a second pass. Tiles and
 * segments depend on the shapes only. The source defines what a term is: an element of x, or dy (x
 * - mean) rstd.
 *
 * Memory is the bound, so a thread reads several rows before it adds the first: an H200 has 25 KB
 * in flight per multiprocessor at 4.8 TB/s and 700 ns; three blocks whose threads wait for 64
 * bytes each have 48. */
#ifndef GP_OPS_REDUCE_COLUMNS_CUH
#define GP_OPS_REDUCE_COLUMNS_CUH

#include "ops/reduce/terms.cuh"

enum {
  GP_COLUMNS_THREADS = 256,
  GP_COLUMNS_LOADS = 8, /* rows a thread adds at least: more segments are more partial sums */
  /* At most, if rows are long: several times what a GPU runs at once, so that the last ones to run
   * keep few multiprocessors waiting. */
  GP_COLUMNS_BLOCKS = 4096,
  GP_COLUMNS_JOINED = 64 /* threads that stand behind one another in the second pass, at most */
};

/* `outer` times [rows, width] -> [width]. */
struct gp_columns {
  int64_t outer, rows, width;
  int64_t tiles, segments, per_segment; /* per_segment: rows */
  int wide, deep;                       /* threads: each has a group of `count` columns */
  bool spread; /* the columns of a group lie `wide` apart, since width is no multiple of count */
  int lists;   /* lists of results, each with a sink of its own: the outer dim covers all of them */
};

/* Choose the threads of a block: as wide as a warp or the groups, the rest behind one another. */
static inline void gp_columns_stand(gp_columns *p, int count, int widest) {
  const int64_t groups = (p->width + count - 1) / count;
  for (p->wide = 1; p->wide < widest && p->wide < groups;) p->wide *= 2;
  p->deep = GP_COLUMNS_THREADS / p->wide;
  p->spread = p->width % count != 0;
  p->tiles = (groups + p->wide - 1) / p->wide;
}

/* count: columns of a group, which are one access if they are neighbours. */
static inline gp_columns gp_columns_plan(int64_t outer, int64_t rows, int64_t width, int count) {
  gp_columns p = {};
  p.outer = outer, p.rows = rows, p.width = width, p.lists = 1;
  gp_columns_stand(&p, count, GP_WARP);
  const int64_t most = rows / (p.deep * GP_COLUMNS_LOADS), across = outer * p.tiles;
  const int64_t wanted = across > 0 ? (GP_COLUMNS_BLOCKS + across - 1) / across : 1;
  p.segments = most < 1 ? 1 : most < wanted ? most : wanted;
  p.per_segment = (rows + p.segments - 1) / p.segments;
  if (p.per_segment > 0) p.segments = (rows + p.per_segment - 1) / p.per_segment;
  return p;
}

/* Plan the second pass, of `lists` sums: few columns a block and many threads deep, so that all
 * multiprocessors take part and a thread reads few rows. */
static inline gp_columns gp_columns_join_plan(const gp_columns *first, int lists, int count) {
  gp_columns p = {};
  int deep = GP_COLUMNS_THREADS / GP_WARP;
  while (deep < GP_COLUMNS_JOINED && deep * GP_COLUMNS_LOADS < first->segments) deep *= 2;
  p.outer = lists * first->outer, p.rows = first->segments, p.width = first->width;
  p.lists = lists;
  gp_columns_stand(&p, count, GP_COLUMNS_THREADS / deep);
  p.segments = 1, p.per_segment = p.rows;
  return p;
}

/* Return the bytes for the segments' sums; 0 if one pass is enough. item: bytes of a sum. */
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

/* Load the columns of `from`, by one access or one by one; 0 past the last one. */
template <bool PACKED, typename T>
static __device__ inline gp_pack<T> gp_columns_load(const T *from, const gp_column_group &group) {
  if constexpr (PACKED) {
    return *reinterpret_cast<const gp_pack<T> *>(from + group.first);
  } else {
    gp_pack<T> x;
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      x.at[k] = group.at(k) < group.width ? from[group.at(k)] : T();
    return x;
  }
}

template <bool PACKED, typename T>
static __device__ inline void gp_columns_store(T *to, const gp_pack<T> &x,
                                               const gp_column_group &group) {
  if constexpr (PACKED) {
    if (group.first < group.width) *reinterpret_cast<gp_pack<T> *>(to + group.first) = x;
  } else {
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      if (group.at(k) < group.width) to[group.at(k)] = x.at[k];
  }
}

/* The same, by whichever way the address allows. */
template <typename T>
static __device__ inline gp_pack<T> gp_columns_read(const T *from, const gp_column_group &group) {
  const bool aligned = ((uintptr_t)(from + group.first) & 15) == 0;
  return group.packed && aligned && group.first < group.width ? gp_columns_load<true>(from, group)
                                                              : gp_columns_load<false>(from, group);
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

/* Write the sums of a thread of depth 0. They pass through its places in shared memory, which no
 * other thread reads, where a loop can count them: a sink knows several dtypes, and its code for
 * each of sixteen registers would be most of a kernel. */
template <int COUNT, typename A, int SUMS>
static __device__ inline void gp_columns_put(const A (&sum)[SUMS], const gp_column_group &group,
                                             const gp_sink *out, int64_t to) {
  GP_SHARED(A, part);
  const int threads = blockDim.x * blockDim.y;
#pragma unroll
  for (int k = 0; k < SUMS; k++) part[k * threads + (int)threadIdx.x] = sum[k];
#pragma unroll 1
  for (int k = 0; k < SUMS; k++) {
    const int64_t column = group.at(k % COUNT);
    if (column < group.width)
      gp_sink_put(out[k / COUNT], to + column, part[k * threads + (int)threadIdx.x]);
  }
}

/* A source has
 *   - sum: the type of sums; count: columns of a group; sums: sums of each column, where those of a
 *     group stand behind one another; terms: what it reads of a row;
 *   - ahead: rows that a thread reads before it adds them;
 *   - read<PACKED>(outer, row, group) and add(sums, terms);
 *   - packed(), on the host: whether all rows can be read by packs.
 * Past the end, the rows ahead are the last row once more, so that no read waits for a
 * condition. */
template <typename Source, bool PACKED, int SINKS>
static __global__ void __launch_bounds__(GP_COLUMNS_THREADS)
    gp_columns_kernel(Source source, gp_columns p, gp_column_sinks<SINKS> out) {
  typedef typename Source::sum A;
  /* no more tiles or segments than blocks, whose number has 32 bits */
  const uint32_t tiles = (uint32_t)p.tiles, segments = (uint32_t)p.segments;
  const uint32_t rest = blockIdx.x / tiles, tile = blockIdx.x - rest * tiles;
  const uint32_t outer = rest / segments, segment = rest - outer * segments;
  const int64_t begin = segment * p.per_segment;
  const int64_t end = begin + p.per_segment < p.rows ? begin + p.per_segment : p.rows;
  const gp_column_group group = gp_column_group_of<Source::count>(p, tile);
  const int ahead = PACKED ? Source::ahead : 2; /* rows; their elements are read one by one */
  A sum[Source::sums * Source::count] = {};
  const int64_t first = group.first < p.width ? begin : end; /* none past the last column */
  for (int64_t row = first + threadIdx.y; row < end; row += ahead * blockDim.y) {
    typename Source::terms terms[ahead];
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      const int64_t at = row + u * (int)blockDim.y;
      terms[u] = source.template read<PACKED>(outer, at < end ? at : end - 1, group);
    }
#pragma unroll
    for (int u = 0; u < ahead; u++)
      if (row + u * (int)blockDim.y < end) source.add(sum, terms[u]);
  }
  gp_columns_fold(sum);
  if (threadIdx.y > 0) return;
  const uint32_t each = (uint32_t)p.outer / (uint32_t)p.lists, list = outer / each;
  const int64_t to = ((int64_t)(outer - list * each) * segments + segment) * p.width;
  gp_columns_put<Source::count>(sum, group, out.of + list, to);
}

/* ---- sums of elements ------------------------------------------------------------------------ */

/* x of any layout whose columns are neighbours. */
template <typename T> struct gp_plain_columns {
  typedef typename gp_sum_of<T>::type sum;
  typedef gp_pack<T> terms;
  static const int count = gp_pack<T>::count, sums = 1, ahead = 4;
  const T *x;
  gp_strides outer, rows;

  bool packed(void) const {
    bool all = gp_is_packed(x);
    for (const gp_strides *list : {&outer, &rows})
      for (int d = 0; d < list->rank; d++) all = all && list->stride[d] % count == 0;
    return all;
  }
  template <bool PACKED>
  __device__ terms read(int64_t o, int64_t row, const gp_column_group &group) const {
    return gp_columns_load<PACKED>(x + gp_offset_of(outer, o) + gp_offset_of(rows, row), group);
  }
  __device__ void add(sum *to, const terms &x_group) const {
#pragma unroll
    for (int k = 0; k < count; k++) to[k] = gp_plus(to[k], (sum)gp_load(x_group.at[k]));
  }
};

/* ---- launching ------------------------------------------------------------------------------ */

template <typename Source, int SINKS>
static gp_status gp_columns_launch(gp_gpu *gpu, const Source &source, const gp_columns &p,
                                   const gp_column_sinks<SINKS> &out) {
  const size_t values = Source::sums * Source::count * GP_COLUMNS_THREADS;
  const size_t shared = values * sizeof(typename Source::sum);
  const int64_t blocks = p.outer * p.tiles * p.segments;
  if (blocks == 0) return GP_OK;
  const dim3 grid((unsigned)blocks), block(p.wide, p.deep);
  if (!p.spread && source.packed())
    return GP_LAUNCH(gpu, (gp_columns_kernel<Source, true, SINKS>), grid, block, shared, source, p,
                     out);
  return GP_LAUNCH(gpu, (gp_columns_kernel<Source, false, SINKS>), grid, block, shared, source, p,
                   out);
}

/* Run the second pass: [lists, outer, segments, width] in scratch. */
template <typename A, int SUMS>
static gp_status gp_columns_join(gp_gpu *gpu, const A *parts, const gp_columns &p,
                                 const gp_column_sinks<SUMS> &out) {
  gp_plain_columns<A> again = {parts, {}, {}};
  const gp_columns second = gp_columns_join_plan(&p, SUMS, gp_pack<A>::count);
  gp_strides_push(&again.outer, second.outer, p.segments * p.width);
  gp_strides_push(&again.rows, p.segments, p.width);
  return gp_columns_launch(gpu, again, second, out);
}

/* Run both passes. scratch: of all sums. */
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
  return gp_columns_join(gpu, (const A *)scratch, p, out);
}

/* The same for one sum. */
template <typename Source>
static gp_status gp_columns_run(gp_gpu *gpu, const Source &source, const gp_columns &p, gp_sink out,
                                void *scratch) {
  return gp_columns_run_all(gpu, source, p, gp_column_sinks<1>{{out}}, scratch);
}

#endif
