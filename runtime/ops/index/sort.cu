/* ops/index/sort.cu - see sort.c: elements of a line in order, and their positions.
 *
 * An element's place is the number of those that come before it, so on short lines a thread counts
 * them for one element, a tile of keys in shared memory at a time. That is quadratic in the length
 * of a line. Long lines are sorted by radix (ops/dense/sort.cuh), all at once: by the words of
 * their keys, lowest first, then by line. Both are stable, so the result is the same. */
#include "ops/dense/sort.cuh"
#include "ops/index/scan.cuh"
#include "ops/reduce/extreme.cuh"

enum { THREADS = 256 }; /* of a block, and keys of a tile */

/* Keys as in sort.c. */
static __device__ inline int64_t key_of(double value) {
  if (value != value) return INT64_MAX;
  const int64_t bits = __double_as_longlong(value + 0.0);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}
static __device__ inline int64_t key_of(float value) { return key_of((double)value); }
static __device__ inline int64_t key_of(int64_t value) { return value; }
static __device__ inline int64_t key_of(int32_t value) { return value; }
static __device__ inline int64_t key_of(uint8_t value) { return value; }

template <typename T> struct sorting {
  const T *x;
  T *values;
  int64_t *positions; /* NULL: not wanted */
  gp_axis axis;
  int64_t tiles; /* of a line */
  bool descending;
};

template <typename T>
static __device__ inline int64_t key_at(const sorting<T> &s, int64_t base, int64_t i) {
  if (i >= s.axis.size) return 0;
  const int64_t key = key_of(gp_comparable(s.x[base + i * s.axis.inner]));
  return s.descending ? ~key : key;
}

/* A block takes one tile of a line; neighbouring blocks take those of one line. */
template <typename T> static __global__ void sort_kernel(sorting<T> s) {
  __shared__ int64_t keys[THREADS];
  const int64_t line = blockIdx.x / s.tiles, i = blockIdx.x % s.tiles * THREADS + threadIdx.x;
  const int64_t base = line / s.axis.inner * s.axis.size * s.axis.inner + line % s.axis.inner;
  const int64_t mine = key_at(s, base, i);
  int64_t before = 0;
  for (int64_t first = 0; first < s.axis.size; first += THREADS) {
    const int64_t n = s.axis.size - first < THREADS ? s.axis.size - first : (int64_t)THREADS;
    __syncthreads();
    keys[threadIdx.x] = key_at(s, base, first + threadIdx.x);
    __syncthreads();
    for (int64_t j = 0; j < n; j++) before += keys[j] < mine || (keys[j] == mine && first + j < i);
  }
  if (i >= s.axis.size) return;
  const int64_t to = base + before * s.axis.inner;
  s.values[to] = s.x[base + i * s.axis.inner];
  if (s.positions) s.positions[to] = i + 1;
}

/* ---- long lines ------------------------------------------------------------------------------ */

/* Element `index` of a sort is element index % size of line index / size. */
template <typename T> struct radix {
  sorting<T> s;
  uint32_t n, size;
};

/* Keys of one word, in the order of key_of: all NaN alike and last, one zero. */
static __device__ inline uint32_t narrow_key(float value) {
  if (value != value) return UINT32_MAX;
  const int32_t bits = __float_as_int(value + 0.0f);
  return (uint32_t)(bits < 0 ? bits ^ INT32_MAX : bits) ^ UINT32_C(1) << 31;
}
static __device__ inline uint32_t narrow_key(int32_t value) {
  return (uint32_t)value ^ UINT32_C(1) << 31;
}
static __device__ inline uint32_t narrow_key(uint8_t value) { return value; }

/* Words of a key, and the largest one. */
template <typename T> struct words {
  static const int count = sizeof(T) == 8 ? 2 : 1;
  static const uint32_t largest = sizeof(T) == 1 ? UINT8_MAX : UINT32_MAX;
};

/* Return word w of the key of an element as an unsigned number. */
template <typename T>
static __device__ inline uint32_t word_of(const radix<T> &r, uint32_t index, int w) {
  const uint32_t line = index / r.size, inner = (uint32_t)r.s.axis.inner, i = index - line * r.size;
  const int64_t base = (int64_t)(line / inner) * r.size * inner + line % inner;
  if constexpr (words<T>::count == 2) {
    const uint64_t key = (uint64_t)key_at(r.s, base, i) ^ UINT64_C(1) << 63;
    return (uint32_t)(key >> 32 * w);
  } else {
    const uint32_t key = narrow_key(gp_comparable(r.s.x[base + (int64_t)i * inner]));
    return (r.s.descending ? ~key : key) & words<T>::largest;
  }
}

enum { BY_LINE = 2 }; /* beside the words 0 and 1 */

/* Let the entries be sorted by another word; the first time they are in the order of memory. */
template <typename T>
static __global__ void radix_entries(radix<T> r, gp_entry *entries, int word, bool first) {
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < r.n;
       at += (int64_t)gridDim.x * THREADS) {
    const uint32_t index = first ? (uint32_t)at : (uint32_t)entries[at];
    const uint32_t id = word == BY_LINE ? index / r.size : word_of(r, index, word);
    entries[at] = (gp_entry)id << 32 | index;
  }
}

template <typename T> static __global__ void radix_put(radix<T> r, const gp_entry *entries) {
  const sorting<T> &s = r.s;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < r.n;
       at += (int64_t)gridDim.x * THREADS) {
    const uint32_t line = (uint32_t)at / r.size, rank = (uint32_t)at - line * r.size;
    const int64_t i = (uint32_t)entries[at] - line * r.size;
    const int64_t base = line / s.axis.inner * s.axis.size * s.axis.inner + line % s.axis.inner;
    s.values[base + rank * s.axis.inner] = s.x[base + i * s.axis.inner];
    if (s.positions) s.positions[base + rank * s.axis.inner] = i + 1;
  }
}

/* Sort by one word more; arrays[0] is where the entries are, before and after. */
template <typename T>
static gp_status sort_by(gp_gpu *gpu, const radix<T> &r, gp_entry *arrays[2], uint32_t *counts,
                         int word, uint64_t most, bool first) {
  const gp_sort s = gp_sort_plan(r.n, most);
  const gp_entry *sorted;
  GP_GPU_TRY(GP_LAUNCH(gpu, radix_entries<T>, gp_blocks(r.n, THREADS), THREADS, 0, r, arrays[0],
                       word, first));
  GP_GPU_TRY(gp_sort_run(gpu, s, arrays, counts, &sorted));
  if (sorted != arrays[0]) arrays[1] = arrays[0], arrays[0] = (gp_entry *)sorted;
  return GP_OK;
}

template <typename T> static gp_status sort_long(gp_gpu *gpu, const sorting<T> &s, void *scratch) {
  const int64_t lines = s.axis.outer * s.axis.inner, n = lines * s.axis.size;
  const radix<T> r = {s, (uint32_t)n, (uint32_t)s.axis.size};
  gp_entry *arrays[2] = {(gp_entry *)scratch, (gp_entry *)scratch + n};
  uint32_t *counts = (uint32_t *)(arrays[1] + n);
  for (int w = 0; w < words<T>::count; w++)
    GP_GPU_TRY(sort_by(gpu, r, arrays, counts, w, words<T>::largest, w == 0));
  if (lines > 1) GP_GPU_TRY(sort_by(gpu, r, arrays, counts, BY_LINE, (uint64_t)lines - 1, false));
  return GP_LAUNCH(gpu, radix_put<T>, gp_blocks(n, THREADS), THREADS, 0, r,
                   (const gp_entry *)arrays[0]);
}

/* Entries have 32 bits for a place in memory. */
static bool is_long(const gp_axis &axis) {
  return axis.size > GP_SCAN_LONG && axis.outer * axis.inner * axis.size < (int64_t)UINT32_MAX;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->sort.dim);
  const int64_t n = gp_numel_of(call->in[0].meta);
  const gp_sort s = gp_sort_plan(n, UINT32_MAX);
  (void)gpu;
  *scratch = 0;
  if (is_long(axis))
    *scratch = 2 * (size_t)n * sizeof(gp_entry) + gp_sort_counts(&s) * sizeof(uint32_t);
  return GP_OK;
}

/* ---- launching ------------------------------------------------------------------------------- */

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call, void *scratch) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->sort.dim);
  const int64_t tiles = (axis.size + THREADS - 1) / THREADS;
  const int64_t blocks = axis.outer * axis.inner * tiles;
  const sorting<T> s = {(const T *)call->in[0].data,
                        (T *)call->out[0].data,
                        call->n_out > 1 ? (int64_t *)call->out[1].data : NULL,
                        axis,
                        tiles,
                        call->attr->sort.descending};
  if (blocks == 0) return GP_OK;
  if (is_long(axis)) return sort_long(gpu, s, scratch);
  return GP_LAUNCH(gpu, sort_kernel<T>, dim3((unsigned)blocks), dim3(THREADS), 0, s);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (call->op.in[0].meta->dtype) {
  case GP_U8:
  case GP_BOOL: return launch<uint8_t>(gpu, &call->op, call->scratch);
  default:
    GP_BY_NUMBER(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op, call->scratch));
  }
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_sort = {run, prepare};
