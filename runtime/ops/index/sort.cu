/* ops/index/sort.cu - see sort.c: elements of a line in order, and their positions.
 *
 * An element's place is the number of those that come before it, so a thread counts them for one
 * element, a tile of keys in shared memory at a time. That is quadratic in the length of a line and
 * needs no memory beside the result; lines of some ten thousand elements fill a GPU anyway. */
#include "ops/index/number.cuh"
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

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
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
  return GP_LAUNCH(gpu, sort_kernel<T>, dim3((unsigned)blocks), dim3(THREADS), 0, s);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (call->op.in[0].meta->dtype) {
  case GP_U8:
  case GP_BOOL: return launch<uint8_t>(gpu, &call->op);
  default: GP_BY_NUMBER(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  }
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_sort = {run, NULL};
