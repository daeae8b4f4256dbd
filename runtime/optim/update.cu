/* optim/update.cu - see optim.h: updates of parameters, sums and scales of gradients, on a GPU.
 *
 * The operations of an element and their order are those of kernels.inc; factors are made on the host, in
 * double precision. Everything is one pass at the speed of memory, 16 bytes at a time; sum_squares has a
 * second one over few partial sums, cut by the length alone. */
#include <math.h>

#include "device/cuda/device.cuh"
#include "device/cuda/work.h"
#include "device/cuda/lanes.cuh"

enum {
  THREADS = 256,
  SUM_BLOCKS = GP_GPU_SUM_SCRATCH / sizeof(double), /* partial sums that scratch holds */
  SUM_GROUPS = 4                                    /* 16-byte groups of a thread, at least */
};

/* ---- rules ---------------------------------------------------------------------------------- */

/* Factors of one update, rounded to the element type where they are used. */
template <typename T> struct factors {
  T lr, weight_decay, keep; /* keep: 1 - lr weight_decay */
  T momentum, weight1, beta2, weight2;
  T step_size, correction2, eps;
  bool far1, decay, first, nesterov; /* far1: weight1 >= 0.5 */
};

template <typename T> static factors<T> make_factors(const gp_optim_hyper *h, int64_t step) {
  factors<T> f = {};
  f.lr = (T)h->lr, f.weight_decay = (T)h->weight_decay;
  f.keep = (T)(1.0 - h->lr * h->weight_decay);
  f.momentum = (T)h->momentum;
  f.weight1 = (T)(1.0 - h->beta1), f.beta2 = (T)h->beta2, f.weight2 = (T)(1.0 - h->beta2);
  f.step_size = (T)(h->lr / (1.0 - pow(h->beta1, (double)step)));
  f.correction2 = (T)sqrt(1.0 - pow(h->beta2, (double)step));
  f.eps = (T)h->eps;
  f.far1 = 1.0 - h->beta1 >= 0.5;
  f.decay = h->weight_decay != 0;
  f.first = step == 1;
  f.nesterov = h->nesterov;
  return f;
}

/* A rule updates one element: value p, gradient g, moments m and v as far as `moments` says. */
struct sgd {
  static const int moments = 0;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *, T *) {
    *p -= f.lr * (f.decay ? g + f.weight_decay * *p : g);
  }
};

/* The first step takes the gradient itself, as torch does. */
struct momentum {
  static const int moments = 1;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m, T *) {
    const T d = f.decay ? g + f.weight_decay * *p : g;
    *m = f.first ? d : f.momentum * *m + d;
    *p -= f.lr * (f.nesterov ? d + f.momentum * *m : *m);
  }
};

/* What Adam and AdamW share; d is the gradient to use. The first moment is a lerp, computed from the
 * nearer end. */
template <typename T> static __device__ void adam_core(const factors<T> &f, T *p, T d, T *m, T *v) {
  *m = f.far1 ? d - (d - *m) * (1 - f.weight1) : *m + f.weight1 * (d - *m);
  *v = f.beta2 * *v + f.weight2 * d * d;
  *p -= f.step_size * *m / (gp_sqrt(*v) / f.correction2 + f.eps);
}

struct adam {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m, T *v) {
    adam_core(f, p, f.decay ? g + f.weight_decay * *p : g, m, v);
  }
};

struct adamw {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m, T *v) {
    if (f.decay) *p *= f.keep;
    adam_core(f, p, g, m, v);
  }
};

/* ---- update ---------------------------------------------------------------------------------- */

template <typename T> struct slice {
  int64_t n;
  T *p;
  const T *g;
  T *m, *v; /* NULL where the rule has no such moment */
};

/* By 16 bytes as far as `packs` says, then one by one. */
template <typename Rule, typename T>
static __global__ void update_kernel(factors<T> f, slice<T> s, int64_t packs) {
  typedef gp_pack<T> pack;
  const int64_t me = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t all = (int64_t)gridDim.x * THREADS;
  for (int64_t i = me; i < packs; i += all) {
    pack p = ((pack *)s.p)[i], m = {}, v = {};
    const pack g = ((const pack *)s.g)[i];
    if (Rule::moments > 0) m = ((pack *)s.m)[i];
    if (Rule::moments > 1) v = ((pack *)s.v)[i];
#pragma unroll
    for (int k = 0; k < pack::count; k++) Rule::apply(f, &p.at[k], g.at[k], &m.at[k], &v.at[k]);
    ((pack *)s.p)[i] = p;
    if (Rule::moments > 0) ((pack *)s.m)[i] = m;
    if (Rule::moments > 1) ((pack *)s.v)[i] = v;
  }
  for (int64_t i = packs * pack::count + me; i < s.n; i += all)
    Rule::apply(f, s.p + i, s.g[i], Rule::moments > 0 ? s.m + i : NULL,
                Rule::moments > 1 ? s.v + i : NULL);
}

/* How many 16-byte groups there are at addresses that are all aligned; `addresses`: or of them. */
template <typename T> static int64_t packs_of(uintptr_t addresses, int64_t n) {
  return (addresses & 15) == 0 ? n / gp_pack<T>::count : 0;
}

template <typename Rule, typename T>
static gp_status launch_update(gp_gpu *gpu, const factors<T> &f, const gp_gpu_slice *slice_of) {
  const gp_gpu_slice *s = slice_of;
  const slice<T> t = {s->n, (T *)s->value, (const T *)s->grad, (T *)s->moment1, (T *)s->moment2};
  uintptr_t addresses = (uintptr_t)t.p | (uintptr_t)t.g;
  if (Rule::moments > 0) addresses |= (uintptr_t)t.m;
  if (Rule::moments > 1) addresses |= (uintptr_t)t.v;
  const int64_t packs = packs_of<T>(addresses, t.n);
  return GP_LAUNCH(gpu, (update_kernel<Rule, T>), gp_blocks(packs ? packs : t.n, THREADS), THREADS,
                   0, f, t, packs);
}

template <typename T>
static gp_status update(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                        const gp_gpu_slice *slice) {
  const factors<T> f = make_factors<T>(hyper, step);
  if (hyper->kind == GP_OPTIM_ADAM) return launch_update<adam, T>(gpu, f, slice);
  if (hyper->kind == GP_OPTIM_ADAMW) return launch_update<adamw, T>(gpu, f, slice);
  if (hyper->momentum != 0) return launch_update<momentum, T>(gpu, f, slice);
  return launch_update<sgd, T>(gpu, f, slice);
}

gp_status gp_gpu_work_update(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                             const gp_gpu_slice *slice) {
  if (slice->dtype != GP_F32 && slice->dtype != GP_F64)
    return gp_gpu_fail(GP_EDTYPE, "optimizer: dtype %d, expected f32 or f64", (int)slice->dtype);
  if (step < 1)
    return gp_gpu_fail(GP_ERANGE, "optimizer: step %lld, expected 1 or more", (long long)step);
  if (slice->n <= 0) return GP_OK;
  return slice->dtype == GP_F32 ? update<float>(gpu, hyper, step, slice)
                                : update<double>(gpu, hyper, step, slice);
}

/* ---- add and scale --------------------------------------------------------------------------- */

/* to += from, or to *= factor where from is NULL. */
template <typename T>
static __global__ void change_kernel(T *to, const T *from, gp_compute<T> factor, int64_t n,
                                     int64_t packs) {
  typedef gp_pack<T> pack;
  const int64_t me = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t all = (int64_t)gridDim.x * THREADS;
  for (int64_t i = me; i < packs; i += all) {
    pack x = ((pack *)to)[i], y = {};
    if (from) y = ((const pack *)from)[i];
#pragma unroll
    for (int k = 0; k < pack::count; k++) {
      const gp_compute<T> value = gp_load(x.at[k]);
      x.at[k] = gp_store<T>(from ? value + gp_load(y.at[k]) : value * factor);
    }
    ((pack *)to)[i] = x;
  }
  for (int64_t i = packs * pack::count + me; i < n; i += all)
    to[i] = gp_store<T>(from ? gp_load(to[i]) + gp_load(from[i]) : gp_load(to[i]) * factor);
}

template <typename T>
static gp_status change(gp_gpu *gpu, int64_t n, void *to, const void *from, double factor) {
  const int64_t packs = packs_of<T>((uintptr_t)to | (uintptr_t)from, n);
  if (n <= 0) return GP_OK;
  return GP_LAUNCH(gpu, change_kernel<T>, gp_blocks(packs ? packs : n, THREADS), THREADS, 0,
                   (T *)to, (const T *)from, (gp_compute<T>)factor, n, packs);
}

gp_status gp_gpu_work_add(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *to, const void *from) {
  GP_BY_FLOAT(dtype, return change<T>(gpu, n, to, from, 1));
  return GP_OK;
}

gp_status gp_gpu_work_scale(gp_gpu *gpu, gp_dtype dtype, int64_t n, void *data, double factor) {
  GP_BY_FLOAT(dtype, return change<T>(gpu, n, data, NULL, factor));
  return GP_OK;
}

/* ---- sum of squares -------------------------------------------------------------------------- */

/* Block b adds `each` elements from b * each on; thread t those of every 16-byte group t, t + THREADS,
 * .. whether or not it can read them at once. */
template <typename T>
static __global__ void squares_kernel(const T *x, int64_t n, int64_t each, bool packed,
                                      double *part) {
  const int count = gp_pack<T>::count;
  const int64_t begin = blockIdx.x * each, end = begin + each < n ? begin + each : n;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = begin + (int64_t)threadIdx.x * count; i < end; i += (int64_t)THREADS * count) {
    gp_pack<T> group = {};
    if (packed && i + count <= end) {
      group = *reinterpret_cast<const gp_pack<T> *>(x + i);
    } else {
      for (int k = 0; k < count; k++)
        if (i + k < end) group.at[k] = x[i + k];
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

static __global__ void join_kernel(const double *part, int count, double *to) {
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += THREADS) sum = gp_plus(sum, part[i]);
  sum = gp_block_sum(sum);
  if (threadIdx.x == 0) *to = sum;
}

template <typename T>
static gp_status sum_squares(gp_gpu *gpu, int64_t n, const void *data, double *sum,
                             double *scratch) {
  const int64_t tile = (int64_t)THREADS * gp_pack<T>::count, least = tile * SUM_GROUPS;
  int64_t each = (n + SUM_BLOCKS - 1) / SUM_BLOCKS;
  each = each < least ? least : (each + tile - 1) / tile * tile;
  const int blocks = (int)((n + each - 1) / each);
  if (blocks > 0)
    GP_GPU_TRY(GP_LAUNCH(gpu, squares_kernel<T>, blocks, THREADS, 0, (const T *)data, n, each,
                         gp_is_packed(data), scratch));
  return GP_LAUNCH(gpu, join_kernel, 1, THREADS, 0, scratch, blocks, sum);
}

gp_status gp_gpu_work_sum_squares(gp_gpu *gpu, gp_dtype dtype, int64_t n, const void *data,
                                  double *sum, void *scratch) {
  GP_BY_FLOAT(dtype, return sum_squares<T>(gpu, n, data, sum, (double *)scratch));
  return GP_OK;
}
