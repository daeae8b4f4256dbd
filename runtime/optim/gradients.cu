/* optim/gradients.cu - all gradients on a GPU: added, scaled, and the sums of their squares.
 *
 * add and scale are one pass at the speed of memory, 16 bytes at a time. sum_squares has a second
 * pass over few partial sums, cut by the length of each tensor alone. */
#include "device/cuda/kernel/lanes.cuh"
#include "device/cuda/kernel/work.h"
#include "optim/batch.cuh"

enum {
  THREADS = GP_BATCH_THREADS,
  SUM_BLOCKS = 1024, /* partial sums of one tensor, at most */
  SUM_GROUPS = 4     /* 16-byte groups of a thread, at least */
};
static_assert(sizeof(double) * GP_BATCH * SUM_BLOCKS <= GP_GPU_SUM_SCRATCH,
              "scratch holds a batch");

/* ---- add and scale --------------------------------------------------------------------------- */

template <typename T> struct change {
  T *to;
  const T *from; /* NULL: scale */
  int64_t n;
  bool packed;
};

/* to += from, or to *= factor. */
template <typename T> struct rule {
  gp_compute<T> factor;

  __device__ T add(T to, T from) const { return gp_store<T>(gp_load(to) + gp_load(from)); }
  __device__ T scale(T to) const { return gp_store<T>(gp_load(to) * factor); }
};

/* A block changes one tile of a tensor. */
template <typename T> static __global__ void change_kernel(gp_batch<change<T>> list, rule<T> r) {
  typedef gp_pack<T> pack;
  int64_t number;
  const change<T> c = list.item[list.find(blockIdx.x, &number)];
  const gp_tile tile = gp_tile_of<T>(number, c.n, c.packed);
  for (int64_t i = tile.begin + (int64_t)threadIdx.x * pack::count; i < tile.whole;
       i += (int64_t)THREADS * pack::count) {
    pack x = *(pack *)(c.to + i), y = {};
    if (c.from) y = *(const pack *)(c.from + i);
#pragma unroll
    for (int k = 0; k < pack::count; k++)
      x.at[k] = c.from ? r.add(x.at[k], y.at[k]) : r.scale(x.at[k]);
    *(pack *)(c.to + i) = x;
  }
  for (int64_t i = tile.whole + threadIdx.x; i < tile.end; i += THREADS)
    c.to[i] = c.from ? r.add(c.to[i], c.from[i]) : r.scale(c.to[i]);
}

/* For a scale, from is NULL, which counts as aligned. */
template <typename T> static change<T> change_of(void *to, const void *from, int64_t n) {
  return {(T *)to, (const T *)from, n, gp_is_packed(to) && gp_is_packed(from)};
}

template <typename T>
static gp_status launch_change(gp_gpu *gpu, const gp_batch<change<T>> &list, double factor) {
  const rule<T> r = {(gp_compute<T>)factor};
  if (!list.blocks()) return GP_OK;
  return GP_LAUNCH(gpu, change_kernel<T>, list.blocks(), THREADS, 0, list, r);
}

template <typename T> static gp_status add(gp_gpu *gpu, int64_t n, void *to, const void *from) {
  gp_batch<change<T>> list;
  list.push(change_of<T>(to, from, n), gp_batch_tiles<T>(n));
  return launch_change(gpu, list, 1);
}

gp_status gp_gpu_work_add(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *to, const void *from) {
  GP_BY_FLOAT(dtype, return add<T>(gpu, n, to, from));
  return GP_OK;
}

template <typename T>
static gp_status scale(gp_gpu *gpu, const gp_gpu_run *runs, int count, double factor) {
  gp_batch<change<T>> list;
  for (int i = 0; i < count; i++)
    list.push(change_of<T>(runs[i].data, NULL, runs[i].n), gp_batch_tiles<T>(runs[i].n));
  return launch_change(gpu, list, factor);
}

/* ---- sum of squares -------------------------------------------------------------------------- */

template <typename T> struct squares {
  const T *x;
  int64_t n, each; /* elements; those of a block */
  bool packed;
};

/* A block adds `each` elements; thread t adds those of the 16-byte groups t, t + THREADS, ..,
 * whether or not it can read each group at once. */
template <typename T>
static __global__ void squares_kernel(gp_batch<squares<T>> list, double *part) {
  const int count = gp_pack<T>::count;
  int64_t number;
  const squares<T> s = list.item[list.find(blockIdx.x, &number)];
  const int64_t begin = number * s.each, end = begin + s.each < s.n ? begin + s.each : s.n;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = begin + (int64_t)threadIdx.x * count; i < end; i += (int64_t)THREADS * count) {
    gp_pack<T> group = {};
    if (s.packed && i + count <= end) {
      group = *reinterpret_cast<const gp_pack<T> *>(s.x + i);
    } else {
      for (int k = 0; k < count; k++)
        if (i + k < end) group.at[k] = s.x[i + k];
    }
#pragma unroll
    for (int k = 0; k < count; k++) {
      const double value = (double)gp_load(group.at[k]);
      sum = gp_plus(sum, value * value);
    }
  }
  sum = gp_block_sum(sum);
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

/* Block k adds the partial sums of tensor k; a tensor without elements has none. */
template <typename T>
static __global__ void join_kernel(gp_batch<squares<T>> list, const double *part, double *sums) {
  double sum = 0;
  for (int i = list.first[blockIdx.x] + threadIdx.x; i < list.first[blockIdx.x + 1]; i += THREADS)
    sum = gp_plus(sum, part[i]);
  sum = gp_block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/* Cut a tensor into few large partial sums: each adds as many elements as it takes to keep their
 * number within the scratch. */
template <typename T> static void push_squares(gp_batch<squares<T>> *list, const gp_gpu_run *run) {
  const int64_t tile = (int64_t)THREADS * gp_pack<T>::count, least = tile * SUM_GROUPS;
  int64_t each = (run->n + SUM_BLOCKS - 1) / SUM_BLOCKS;
  each = each < least ? least : (each + tile - 1) / tile * tile;
  list->push({(const T *)run->data, run->n, each, gp_is_packed(run->data)},
             (run->n + each - 1) / each);
}

template <typename T>
static gp_status sum_squares(gp_gpu *gpu, const gp_gpu_run *runs, int count, double *sums,
                             double *part) {
  gp_batch<squares<T>> list;
  for (int i = 0; i < count; i++) push_squares(&list, &runs[i]);
  if (list.blocks())
    GP_GPU_TRY(GP_LAUNCH(gpu, squares_kernel<T>, list.blocks(), THREADS, 0, list, part));
  return GP_LAUNCH(gpu, join_kernel<T>, count, THREADS, 0, list, part, sums);
}

/* ---- lists of any length --------------------------------------------------------------------- */

/* One launch takes tensors of one dtype. */
gp_status gp_gpu_work_scale(gp_gpu *gpu, const gp_gpu_run *runs, int count, double factor) {
  gp_status status = GP_OK;
  for (int i = 0, n; i < count && !status; i += n) {
    n = gp_batch_alike(runs + i, count - i);
    GP_BY_FLOAT(runs[i].dtype, status = scale<T>(gpu, runs + i, n, factor));
  }
  return status;
}

/* Launch one batch after the other on the stream: they share the scratch. */
gp_status gp_gpu_work_sum_squares(gp_gpu *gpu, const gp_gpu_run *runs, int count, double *sums,
                                  void *scratch) {
  gp_status status = GP_OK;
  for (int i = 0, n; i < count && !status; i += n) {
    n = gp_batch_alike(runs + i, count - i);
    GP_BY_FLOAT(runs[i].dtype,
                status = sum_squares<T>(gpu, runs + i, n, sums + i, (double *)scratch));
  }
  return status;
}
