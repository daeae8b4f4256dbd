/* optim/update.cu - see optim.h: updates of parameters, on a GPU.
 *
 * The operations of an element and their order are those of kernels.inc; the host computes the
 * factors, in double precision. An update is one pass at the speed of memory, 16 bytes at a time,
 * over many parameters at once. Parameters that kernels read in halves are rounded and written in
 * the same pass, so that they are not read once more to be cast. */
#include <math.h>

#include "device/cuda/kernel/lanes.cuh"
#include "device/cuda/kernel/work.h"
#include "optim/batch.cuh"
#include "optim/rate.h"

enum { THREADS = GP_BATCH_THREADS };

/* ---- rules ---------------------------------------------------------------------------------- */

/* Factors of one update, rounded to the element type where they are used. */
template <typename T> struct factors {
  T lr, weight_decay, keep;                           /* keep: 1 - lr weight_decay */
  T momentum, damped, beta1, weight1, beta2, weight2; /* damped: 1 - dampening */
  T step_size, lead, correction2, eps;
  T plain, rectified; /* RAdam: the rate of the mean; the same times the rectification */
  T grow, shrink, least, most;
  bool far1, decay, first, nesterov, decoupled; /* far1: weight1 >= 0.5 */
};

/* Compute factors in f64 and round them once, as the CPU does. */
template <typename T> static factors<T> make_factors(const gp_optim_hyper *h, int64_t all_steps) {
  const int64_t step = all_steps - h->since;
  factors<T> f = {};
  f.lr = (T)h->lr, f.weight_decay = (T)h->weight_decay;
  f.keep = (T)(1.0 - h->lr * h->weight_decay);
  f.momentum = (T)h->momentum, f.damped = (T)(1.0 - h->dampening);
  f.grow = (T)h->grow, f.shrink = (T)h->shrink, f.least = (T)h->least, f.most = (T)h->most;
  f.plain = (T)(1.0 - pow(h->beta1, (double)step)), f.rectified = (T)gp_optim_rectified(h, step);
  f.beta1 = (T)h->beta1, f.weight1 = (T)(1.0 - h->beta1);
  f.beta2 = (T)h->beta2, f.weight2 = (T)(1.0 - h->beta2);
  f.step_size = (T)gp_optim_rate(h, step);
  f.lead = (T)gp_optim_lead(h, step);
  f.correction2 = (T)sqrt(1.0 - pow(h->beta2, (double)step));
  f.eps = (T)h->eps;
  f.far1 = 1.0 - h->beta1 >= 0.5;
  f.decay = h->weight_decay != 0;
  f.first = step == 1;
  f.nesterov = h->nesterov;
  f.decoupled = h->decoupled;
  return f;
}

/* Compute the gradient to use: weight decay is added to it. */
template <typename T> static __device__ T gradient(const factors<T> &f, T p, T g) {
  return f.decay ? g + f.weight_decay * p : g;
}

/* A rule updates one element: value p, gradient g, as many moments m as `moments` says. */
struct sgd {
  static const int moments = 0;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *) {
    *p -= f.lr * gradient(f, *p, g);
  }
};

/* The first step takes the gradient itself, as torch does. */
struct momentum {
  static const int moments = 1;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    const T d = gradient(f, *p, g);
    *m = f.first ? d : f.momentum * *m + f.damped * d;
    *p -= f.lr * (f.nesterov ? d + f.momentum * *m : *m);
  }
};

/* A mean that moves towards d: a lerp, computed from the nearer end. */
template <typename T> static __device__ T lerp(const factors<T> &f, T m, T d) {
  return f.far1 ? d - (d - m) * (1 - f.weight1) : m + f.weight1 * (d - m);
}

/* Update as Adam and AdamW both do; d is the gradient to use. Ams: divide by the greatest
 * mean of squares. */
template <bool Ams, typename T>
static __device__ void adam_core(const factors<T> &f, T *p, T d, T *m) {
  m[0] = lerp(f, m[0], d);
  m[1] = f.beta2 * m[1] + f.weight2 * d * d;
  if (Ams) m[1 + Ams] = m[1 + Ams] > m[1] || !(m[1 + Ams] == m[1 + Ams]) ? m[1 + Ams] : m[1];
  *p -= f.step_size * m[0] / (gp_sqrt(m[1 + Ams]) / f.correction2 + f.eps);
}

template <bool Ams> struct adam {
  static const int moments = 2 + Ams;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    adam_core<Ams>(f, p, gradient(f, *p, g), m);
  }
};

template <bool Ams> struct adamw {
  static const int moments = 2 + Ams;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    if (f.decay) *p *= f.keep;
    adam_core<Ams>(f, p, g, m);
  }
};

/* m: mean of squares; then the velocity if it has momentum, and the mean of gradients if
 * it is centered. */
template <bool Moves, bool Centered> struct rmsprop {
  static const int moments = 1 + Moves + Centered;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    const T d = gradient(f, *p, g);
    m[0] = f.beta2 * m[0] + f.weight2 * d * d;
    T size = m[0];
    if (Centered) {
      T *mean = m + moments - 1;
      *mean = lerp(f, *mean, d);
      size = size - *mean * *mean;
    }
    size = gp_sqrt(size) + f.eps;
    if (Moves) {
      T *velocity = m + (moments > 1);
      *velocity = f.momentum * *velocity + d / size;
      *p -= f.lr * *velocity;
    } else {
      *p -= f.lr * d / size;
    }
  }
};

/* m: sum of squares. */
struct adagrad {
  static const int moments = 1;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    const T d = gradient(f, *p, g);
    *m += d * d;
    *p -= f.step_size * d / (gp_sqrt(*m) + f.eps);
  }
};

/* m: mean of gradients. The step is the sign of another mean, which weighs the last gradient
 * more. */
struct lion {
  static const int moments = 1;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    if (f.decay) *p *= f.keep;
    const T d = f.beta1 * *m + f.weight1 * g;
    *p -= f.lr * (T)((d > 0) - (d < 0));
    *m = f.beta2 * *m + f.weight2 * g;
  }
};

/* m: mean of gradients, and their greatest size, which decays. */
struct adamax {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    const T d = gradient(f, *p, g);
    m[0] = lerp(f, m[0], d);
    const T before = f.beta2 * m[1], size = (d < 0 ? -d : d) + f.eps;
    m[1] = before > size || !(before == before) ? before : size;
    *p -= f.step_size * m[0] / m[1];
  }
};

/* m: means of squared gradients, and of squared steps. */
struct adadelta {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    T d = gradient(f, *p, g);
    m[0] = f.beta2 * m[0] + f.weight2 * d * d;
    d = gp_sqrt(m[1] + f.eps) / gp_sqrt(m[0] + f.eps) * d;
    m[1] = f.beta2 * m[1] + f.weight2 * d * d;
    *p -= f.lr * d;
  }
};

/* Adam with Nesterov momentum: it steps by the mean of the next step, as far as that is known. */
struct nadam {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    if (f.decoupled && f.decay) *p *= f.keep;
    const T d = f.decoupled ? g : gradient(f, *p, g);
    m[0] = lerp(f, m[0], d);
    m[1] = f.beta2 * m[1] + f.weight2 * d * d;
    const T size = gp_sqrt(m[1]) / f.correction2 + f.eps;
    *p -= f.lead * d / size;
    *p -= f.step_size * m[0] / size;
  }
};

/* Adam that divides by the root of the mean of squares, rectified by how far that can be
 * trusted. */
struct radam {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    if (f.decoupled && f.decay) *p *= f.keep;
    T d = f.decoupled ? g : gradient(f, *p, g);
    m[0] = lerp(f, m[0], d);
    m[1] = f.beta2 * m[1] + f.weight2 * d * d;
    d = m[0] / f.plain * f.lr;
    if (f.rectified != 0) d = d * (f.correction2 / (gp_sqrt(m[1]) + f.eps)) * f.rectified;
    *p -= d;
  }
};

/* m: the last gradient, 0 if its sign turned; the size of the step. */
struct rprop {
  static const int moments = 2;
  template <typename T> static __device__ void apply(const factors<T> &f, T *p, T g, T *m) {
    if (f.first) m[0] = 0, m[1] = f.lr;
    T d = gradient(f, *p, g);
    const T same = d * m[0];
    const T size = m[1] * (same > 0 ? f.grow : same < 0 ? f.shrink : 1);
    m[1] = size < f.least ? f.least : size > f.most ? f.most : size;
    if (same < 0) d = 0;
    *p -= (T)((d > 0) - (d < 0)) * m[1];
    m[0] = d;
  }
};

/* ---- update ---------------------------------------------------------------------------------- */

template <typename T> struct slice {
  int64_t n;
  T *p;
  const T *g;
  T *m[GP_OPTIM_MOMENTS]; /* as many as the rule has */
  void *half;             /* receives p as bf16 or f16; NULL: not wanted */
  bool bf16, packed;
};

template <typename H, typename T>
static __device__ inline void put_halves(void *half, int64_t i, const T *p) {
  struct alignas(gp_pack<T>::count * sizeof(H)) group {
    H at[gp_pack<T>::count];
  } g;
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++) g.at[k] = gp_store<H>(p[k]);
  *(group *)((H *)half + i) = g;
}

/* Write a pack of values as halves, too, if the launch has some. All threads of a launch take one
 * branch; kernels of their own for each dtype would be three times as many. */
template <typename T>
static __device__ inline void write_halves(const slice<T> &s, int64_t i, const T *p) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (!s.half) return;
    if (s.bf16)
      put_halves<gp_bf16>(s.half, i, p);
    else
      put_halves<gp_f16>(s.half, i, p);
  }
}

/* The same for one value. */
template <typename T> static __device__ inline void write_half(const slice<T> &s, int64_t i, T p) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (!s.half) return;
    if (s.bf16)
      ((gp_bf16 *)s.half)[i] = gp_store<gp_bf16>(p);
    else
      ((gp_f16 *)s.half)[i] = gp_store<gp_f16>(p);
  }
}

template <typename Rule, typename T>
static __global__ void update_kernel(gp_batch<slice<T>> list, factors<T> f) {
  typedef gp_pack<T> pack;
  int64_t number;
  const slice<T> s = list.item[list.find(blockIdx.x, &number)];
  const gp_tile tile = gp_tile_of<T>(number, s.n, s.packed);
  for (int64_t i = tile.begin + (int64_t)threadIdx.x * pack::count; i < tile.whole;
       i += (int64_t)THREADS * pack::count) {
    pack p = *(pack *)(s.p + i), m[GP_OPTIM_MOMENTS];
    const pack g = *(const pack *)(s.g + i);
#pragma unroll
    for (int j = 0; j < Rule::moments; j++) m[j] = *(pack *)(s.m[j] + i);
#pragma unroll
    for (int k = 0; k < pack::count; k++) {
      T one[GP_OPTIM_MOMENTS];
#pragma unroll
      for (int j = 0; j < Rule::moments; j++) one[j] = m[j].at[k];
      Rule::apply(f, &p.at[k], g.at[k], one);
#pragma unroll
      for (int j = 0; j < Rule::moments; j++) m[j].at[k] = one[j];
    }
    *(pack *)(s.p + i) = p;
#pragma unroll
    for (int j = 0; j < Rule::moments; j++) *(pack *)(s.m[j] + i) = m[j];
    write_halves(s, i, p.at);
  }
  for (int64_t i = tile.whole + threadIdx.x; i < tile.end; i += THREADS) {
    T m[GP_OPTIM_MOMENTS];
#pragma unroll
    for (int j = 0; j < Rule::moments; j++) m[j] = s.m[j][i];
    Rule::apply(f, s.p + i, s.g[i], m);
#pragma unroll
    for (int j = 0; j < Rule::moments; j++) s.m[j][i] = m[j];
    write_half(s, i, s.p[i]);
  }
}

/* Read by 16 bytes only if all that the rule touches is aligned. */
template <typename Rule, typename T> static slice<T> slice_of(const gp_optim_slice *s) {
  uintptr_t addresses = (uintptr_t)s->value | (uintptr_t)s->grad;
  if (s->half) addresses |= 2 * (uintptr_t)s->half; /* written by 8 bytes */
  slice<T> made = {s->n, (T *)s->value, (const T *)s->grad, {}, s->half, s->half_dtype == GP_BF16,
                   false};
  for (int k = 0; k < Rule::moments; k++) {
    made.m[k] = (T *)s->moments[k];
    addresses |= (uintptr_t)s->moments[k];
  }
  made.packed = (addresses & 15) == 0;
  return made;
}

/* Launch over slices of one T. */
template <typename Rule, typename T>
static gp_status launch_update(gp_gpu *gpu, const factors<T> &f, const gp_optim_slice *slices,
                               int count) {
  gp_batch<slice<T>> list;
  for (int i = 0; i < count; i++)
    list.push(slice_of<Rule, T>(&slices[i]), gp_batch_tiles<T>(slices[i].n));
  if (!list.blocks()) return GP_OK;
  return GP_LAUNCH(gpu, (update_kernel<Rule, T>), list.blocks(), THREADS, 0, list, f);
}

template <bool Moves, typename T>
static gp_status update_rmsprop(gp_gpu *gpu, const gp_optim_hyper *hyper, const factors<T> &f,
                                const gp_optim_slice *slices, int count) {
  if (hyper->centered) return launch_update<rmsprop<Moves, true>>(gpu, f, slices, count);
  return launch_update<rmsprop<Moves, false>>(gpu, f, slices, count);
}

template <bool Ams, typename T>
static gp_status update_adam(gp_gpu *gpu, const gp_optim_hyper *hyper, const factors<T> &f,
                             const gp_optim_slice *slices, int count) {
  if (hyper->kind == GP_OPTIM_ADAM) return launch_update<adam<Ams>>(gpu, f, slices, count);
  return launch_update<adamw<Ams>>(gpu, f, slices, count);
}

template <typename T>
static gp_status update(gp_gpu *gpu, const gp_optim_hyper *hyper, const factors<T> &f,
                        const gp_optim_slice *slices, int count) {
  const bool moves = hyper->momentum != 0;
  switch (hyper->kind) {
  case GP_OPTIM_ADAM:
  case GP_OPTIM_ADAMW:
    return hyper->amsgrad ? update_adam<true>(gpu, hyper, f, slices, count)
                          : update_adam<false>(gpu, hyper, f, slices, count);
  case GP_OPTIM_RADAM: return launch_update<radam>(gpu, f, slices, count);
  case GP_OPTIM_RPROP: return launch_update<rprop>(gpu, f, slices, count);
  case GP_OPTIM_ADAGRAD: return launch_update<adagrad>(gpu, f, slices, count);
  case GP_OPTIM_LION: return launch_update<lion>(gpu, f, slices, count);
  case GP_OPTIM_ADAMAX: return launch_update<adamax>(gpu, f, slices, count);
  case GP_OPTIM_ADADELTA: return launch_update<adadelta>(gpu, f, slices, count);
  case GP_OPTIM_NADAM: return launch_update<nadam>(gpu, f, slices, count);
  case GP_OPTIM_RMSPROP:
    return moves ? update_rmsprop<true>(gpu, hyper, f, slices, count)
                 : update_rmsprop<false>(gpu, hyper, f, slices, count);
  default:
    return moves ? launch_update<momentum>(gpu, f, slices, count)
                 : launch_update<sgd>(gpu, f, slices, count);
  }
}

/* Check all slices before any is changed. */
static gp_status check_slices(const gp_optim_slice *slices, int count) {
  for (int i = 0; i < count; i++)
    if (slices[i].dtype != GP_F32 && slices[i].dtype != GP_F64)
      return gp_gpu_fail(GP_EDTYPE, "optimizer: dtype %d, expected f32 or f64",
                         (int)slices[i].dtype);
  return GP_OK;
}

static gp_status check_step(int64_t step) {
  if (step >= 1) return GP_OK;
  return gp_gpu_fail(GP_ERANGE, "optimizer: step %lld, expected 1 or more", (long long)step);
}

/* Tell whether both write halves of the same dtype, or both none. */
static bool are_alike(const gp_optim_slice *a, const gp_optim_slice *b) {
  return !a->half == !b->half && (!a->half || a->half_dtype == b->half_dtype);
}

/* Neighbours of one dtype share a launch. */
gp_status gp_gpu_work_update(gp_gpu *gpu, const gp_optim_hyper *hyper, int64_t step,
                             const gp_optim_slice *slices, int count) {
  GP_GPU_TRY(check_step(step));
  GP_GPU_TRY(check_slices(slices, count));
  const factors<double> f64 = make_factors<double>(hyper, step);
  const factors<float> f32 = make_factors<float>(hyper, step);
  gp_status status = GP_OK;
  for (int i = 0, n; i < count && !status; i += n) {
    const int most = gp_batch_alike(slices + i, count - i);
    for (n = 1; n < most && are_alike(&slices[i], &slices[i + n]);) n++;
    status = slices[i].dtype == GP_F32 ? update<float>(gpu, hyper, f32, slices + i, n)
                                       : update<double>(gpu, hyper, f64, slices + i, n);
  }
  return status;
}
