/* ops/dense/embedding_dw.cu - see embedding.c: the gradient of the table, dw[id] += dy.
 *
 * Positions are sorted by id (sort.cuh, stable: those of one id ascend). A block then adds the rows
 * of a window of sorted entries. It finishes a run of one id that lies within its window; the sums
 * of a run that crosses windows go to scratch, and the block of the window where the run began adds
 * them up. So nothing is slow when every id is the same, nothing is atomic, and the order depends
 * on the ids alone. */
#include "ops/dense/sort.cuh"
#include "ops/ids.cuh"
#include "ops/reduce/columns.cuh"

enum {
  WINDOW = 32,   /* entries of a block: so many that the sums in scratch are few beside dy */
  AHEAD = 4,     /* rows in flight at a time */
  THREADS = 128, /* at most: 16 bytes of dy each */
  FILL_THREADS = 256
};

/* ---- entries -------------------------------------------------------------------------------- */

/* Make (id, position), in the order of positions; ids that are out of range become `count`,
 * after all others. */
static __global__ void entries_kernel(gp_ids ids, gp_entry *entries, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * FILL_THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t id = gp_id_check(ids, i, true);
  entries[i] = (gp_entry)(id < 0 ? ids.count : id) << 32 | (gp_entry)i;
}

/* ---- windows -------------------------------------------------------------------------------- */

template <typename T> struct row_scatter {
  typedef gp_compute<T> A;
  const gp_entry *sorted;
  const T *dy;
  A *dw, *part; /* part [windows, 2, width]: of the run that came in, of the one that goes on */
  int64_t n, windows, width, count; /* count: rows of dw */
  bool accumulate;
  __device__ int64_t id(int64_t at) const { return gp_entry_id(sorted[at]); }
};

/* What to do with one entry of a window: add this row of dy, then, if the run ends here, write
 * the sum there. */
template <typename T> struct step {
  const T *from; /* NULL: no entry, or an id out of range */
  gp_compute<T> *to;
  bool adds; /* to what is there */
};

template <typename T> static __device__ step<T> step_of(const row_scatter<T> &s, int64_t at) {
  const int64_t index = at / WINDOW, begin = index * WINDOW;
  const int64_t end = begin + WINDOW < s.n ? begin + WINDOW : s.n;
  step<T> todo = {NULL, NULL, false};
  if (at >= end || s.id(at) == s.count) return todo;
  const int64_t id = s.id(at);
  todo.from = s.dy + (int64_t)(uint32_t)s.sorted[at] * s.width;
  if (at + 1 < end && s.id(at + 1) == id) return todo;
  const bool came_in = begin > 0 && s.id(begin) == id && s.id(begin - 1) == id;
  const bool goes_on = at + 1 == end && end < s.n && s.id(end) == id;
  if (came_in || goes_on) {
    todo.to = s.part + (2 * index + !came_in) * s.width;
  } else {
    todo.to = s.dw + id * s.width;
    todo.adds = s.accumulate;
  }
  return todo;
}

/* Tell whether the sums of a group can be moved by 16 bytes. */
template <typename A>
static __device__ bool is_aligned(const A *row, const gp_column_group &group) {
  return group.packed && ((uintptr_t)(row + group.first) & 15) == 0;
}

template <typename A, int COUNT>
static __device__ void load_sums(A (&sum)[COUNT], const A *from, const gp_column_group &group) {
  if (is_aligned(from, group)) {
#pragma unroll
    for (int k = 0; k < COUNT; k += gp_pack<A>::count) {
      const gp_pack<A> x = *reinterpret_cast<const gp_pack<A> *>(from + group.first + k);
#pragma unroll
      for (int j = 0; j < gp_pack<A>::count; j++) sum[k + j] = x.at[j];
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++) sum[k] = group.at(k) < group.width ? from[group.at(k)] : 0;
}

template <typename A, int COUNT>
static __device__ void store_sums(A *to, const A (&sum)[COUNT], const gp_column_group &group) {
  if (is_aligned(to, group)) {
#pragma unroll
    for (int k = 0; k < COUNT; k += gp_pack<A>::count) {
      gp_pack<A> x;
#pragma unroll
      for (int j = 0; j < gp_pack<A>::count; j++) x.at[j] = sum[k + j];
      *reinterpret_cast<gp_pack<A> *>(to + group.first + k) = x;
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    if (group.at(k) < group.width) to[group.at(k)] = sum[k];
}

/* Some rows are read ahead, and so are the sums that they end in, so that neither waits
 * for the other. */
template <typename T> static __global__ void windows_kernel(row_scatter<T> s, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  __shared__ step<T> steps[WINDOW];
  const int64_t begin = blockIdx.x / p.tiles * WINDOW;
  const gp_column_group group = gp_column_group_of<count>(p, blockIdx.x % p.tiles);
  if (threadIdx.x < WINDOW) steps[threadIdx.x] = step_of(s, begin + threadIdx.x);
  __syncthreads();
  if (group.first >= s.width) return;
  A sum[count] = {};
  for (int base = 0; base < WINDOW; base += AHEAD) {
    gp_pack<T> rows[AHEAD];
    A old[AHEAD][count];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const step<T> &todo = steps[base + u];
      rows[u] = {}, memset(old[u], 0, sizeof old[u]);
      if (todo.from) rows[u] = gp_columns_read(todo.from, group);
      if (todo.adds) load_sums(old[u], todo.to, group);
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      A *to = steps[base + u].to;
#pragma unroll
      for (int k = 0; k < count; k++) sum[k] = gp_plus(sum[k], (A)gp_load(rows[u].at[k]));
      if (!to) continue;
#pragma unroll
      for (int k = 0; k < count; k++) old[u][k] = gp_plus(old[u][k], sum[k]), sum[k] = 0;
      store_sums(to, old[u], group);
    }
  }
}

/* ---- runs that cross windows ---------------------------------------------------------------- */

/* Count the windows after this one into which the run goes on that began in this one; 0 if there is
 * none. Every thread of the block gets the count. */
template <typename T>
static __device__ int64_t windows_after(const row_scatter<T> &s, int64_t index) {
  const int64_t begin = index * WINDOW, end = begin + WINDOW;
  if (end >= s.n) return 0;
  const int64_t id = s.id(end);
  const bool came_in = begin > 0 && s.id(begin - 1) == id;
  if (id == s.count || came_in || s.id(end - 1) != id) return 0;
  const int threads = blockDim.x * blockDim.y, me = threadIdx.y * blockDim.x + threadIdx.x;
  for (int64_t after = 0;; after += threads) {
    const int64_t at = (index + 1 + after + me) * WINDOW;
    const int here = __syncthreads_count(at < s.n && s.id(at) == id);
    if (here < threads) return after + here;
  }
}

/* Add the window's own sum of the run, then those of the windows after it, in the order
 * of columns.cuh. */
template <typename T> static __global__ void join_kernel(row_scatter<T> s, gp_columns p) {
  typedef gp_compute<T> A;
  const int count = gp_pack<A>::count;
  const int64_t index = blockIdx.x / p.tiles, after = windows_after(s, index);
  if (after == 0) return;
  const gp_column_group group = gp_column_group_of<count>(p, blockIdx.x % p.tiles);
  A sum[count] = {};
#pragma unroll 4
  for (int64_t top = 0; top <= after; top += blockDim.y) { /* all lanes of a warp stay together */
    const int64_t k = top + threadIdx.y;
    if (k > after || group.first >= s.width) continue;
    const A *row = s.part + (2 * (index + k) + (k == 0)) * s.width;
    const gp_pack<A> x = gp_columns_read(row, group);
#pragma unroll
    for (int c = 0; c < count; c++) sum[c] = gp_plus(sum[c], x.at[c]);
  }
  gp_columns_fold(sum);
  if (threadIdx.y > 0 || group.first >= s.width) return;
  A old[count] = {}, *to = s.dw + s.id((index + 1) * WINDOW) * s.width;
  if (s.accumulate) load_sums(old, to, group);
  for (int c = 0; c < count; c++) sum[c] = gp_plus(old[c], sum[c]);
  store_sums(to, sum, group);
}

/* ---- the op ---------------------------------------------------------------------------------- */

/* Scratch: two arrays of entries, the counts of the sort, sums of runs; each on a boundary of 256
 * bytes. */
struct parts {
  size_t second, counts, sums, bytes;
};

static size_t round_up(size_t bytes) { return (bytes + 255) & ~(size_t)255; }

/* `windows` is at least the number of runs that cross a boundary: each window has two
 * sums to write. */
static parts parts_of(const gp_call *call, const gp_sort *sort) {
  const int64_t width = gp_width_of(call->in[0].meta), windows = (sort->n + WINDOW - 1) / WINDOW;
  const size_t item = gp_sum_bytes(call->in[0].meta->dtype);
  parts p = {};
  p.second = round_up((size_t)sort->n * sizeof(gp_entry));
  p.counts = 2 * p.second;
  p.sums = p.counts + round_up(gp_sort_counts(sort) * sizeof(uint32_t));
  p.bytes = p.sums + (size_t)(2 * windows * width) * item;
  return p;
}

static gp_sort sort_of(const gp_call *call) {
  return gp_sort_plan(gp_numel_of(call->in[1].meta), (uint64_t)call->out[0].meta->shape.dim[0]);
}

/* Zero n times 16 bytes, then `bytes` more. */
static __global__ void zero_kernel(gp_pack<uint32_t> *packs, int64_t n, char *rest, int64_t bytes) {
  const int64_t me = (int64_t)blockIdx.x * FILL_THREADS + threadIdx.x;
  const gp_pack<uint32_t> zero = {};
  for (int64_t i = me; i < n; i += (int64_t)gridDim.x * FILL_THREADS) packs[i] = zero;
  for (int64_t i = me; i < bytes; i += (int64_t)gridDim.x * FILL_THREADS) rest[i] = 0;
}

static gp_status zero(gp_gpu *gpu, void *data, int64_t bytes) {
  const int64_t packs = gp_is_packed(data) ? bytes / 16 : 0;
  if (bytes == 0) return GP_OK;
  return GP_LAUNCH(gpu, zero_kernel, gp_blocks(packs ? packs : bytes, FILL_THREADS), FILL_THREADS,
                   0, (gp_pack<uint32_t> *)data, packs, (char *)data + packs * 16,
                   bytes - packs * 16);
}

template <typename T> static gp_status launch_sums(gp_gpu *gpu, const row_scatter<T> &s) {
  const int count = gp_pack<T>::count;
  gp_columns p = gp_columns_plan(1, s.n, s.width, count);
  const int64_t groups = (s.width + count - 1) / count;
  p.wide = groups >= THREADS ? THREADS : (int)(groups + GP_WARP - 1) / GP_WARP * GP_WARP;
  p.tiles = (groups + p.wide - 1) / p.wide;
  GP_GPU_TRY(
      GP_LAUNCH(gpu, windows_kernel<T>, dim3((unsigned)(s.windows * p.tiles)), p.wide, 0, s, p));
  const int sums = gp_pack<gp_compute<T>>::count;
  const size_t shared = 16 * GP_COLUMNS_THREADS;
  p = gp_columns_plan(1, s.n, s.width, sums);
  return GP_LAUNCH(gpu, join_kernel<T>, dim3((unsigned)(s.windows * p.tiles)), dim3(p.wide, p.deep),
                   shared, s, p);
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_gpu_call *call) {
  typedef gp_compute<T> A;
  const gp_arg *dy = &call->op.in[0], *dw = &call->op.out[0];
  const gp_sort sort = sort_of(&call->op);
  const parts at = parts_of(&call->op, &sort);
  char *scratch = (char *)call->scratch;
  gp_entry *const arrays[2] = {(gp_entry *)scratch, (gp_entry *)(scratch + at.second)};
  const gp_ids ids = gp_ids_of(call, 1, dw->meta->shape.dim[0]);
  row_scatter<T> s = {};
  s.dy = (const T *)dy->data, s.dw = (A *)dw->data, s.part = (A *)(scratch + at.sums);
  s.n = sort.n, s.windows = (sort.n + WINDOW - 1) / WINDOW;
  s.width = gp_width_of(dy->meta), s.count = ids.count;
  s.accumulate = call->op.accumulate;
  if (!s.accumulate) GP_GPU_TRY(zero(gpu, s.dw, s.count * s.width * (int64_t)sizeof(A)));
  if (s.n == 0) return GP_OK;
  const unsigned blocks = (unsigned)((s.n + FILL_THREADS - 1) / FILL_THREADS);
  GP_GPU_TRY(GP_LAUNCH(gpu, entries_kernel, blocks, FILL_THREADS, 0, ids, arrays[0], s.n));
  GP_GPU_TRY(gp_ids_finish(gpu, ids));
  if (s.width == 0) return GP_OK;
  GP_GPU_TRY(gp_sort_run(gpu, sort, arrays, (uint32_t *)(scratch + at.counts), &s.sorted));
  return launch_sums(gpu, s);
}

/* Sums are kept in their own type, and entries hold 32 bits of an id and of a position. */
static gp_status check(const gp_call *call) {
  const gp_dtype dtype = call->in[0].meta->dtype, to = call->out[0].meta->dtype;
  const int64_t n = gp_numel_of(call->in[1].meta), count = call->out[0].meta->shape.dim[0];
  if (to != (dtype == GP_F64 ? GP_F64 : GP_F32))
    return gp_gpu_fail(GP_EDTYPE, "embedding_dw: the gradient's dtype is %d, expected f32 (f64)",
                       to);
  if (n <= UINT32_MAX && count < UINT32_MAX) return GP_OK;
  return gp_gpu_fail(GP_EUNSUPPORTED, "embedding_dw: %lld ids of %lld, at most 2^32 are possible",
                     (long long)n, (long long)count);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_GPU_TRY(check(&call->op));
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, call));
  return GP_OK;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  GP_GPU_TRY(check(call));
  const gp_sort sort = sort_of(call);
  *scratch = parts_of(call, &sort).bytes;
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_embedding_dw = {run, prepare};
