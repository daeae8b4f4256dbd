/* ops/channels/running_stats.cu - see running_stats.c: running statistics on a GPU.
 *
 * One block works on all channels, which are few: its threads read the count of batches before one
 * of them writes it. Which micro-batch is the first is read from the step block, because a captured
 * step is replayed. */
#include "device/cuda/kernel/meta.cuh"

enum { THREADS = 512 };

/* Operands of both ops; slots come first. */
enum { RUNNING_MEAN, RUNNING_VARIANCE, BATCHES, PENDING };

template <typename T> struct moving {
  T *running_mean, *running_variance;
  int64_t *batches;
  T *pending; /* [5, C]; move_stats has none */
  const T *mean, *variance;
  int64_t channels;
  double momentum, rows;
  bool cumulative;
};

/* Add to the count of batches; return the share of the way that running values go. */
template <typename T>
static __device__ gp_compute<T> count_batch(const moving<T> &a, int64_t counted) {
  typedef gp_compute<T> A;
  const int64_t batches = *a.batches + counted;
  __syncthreads();
  if (threadIdx.x == 0) *a.batches = batches;
  return a.cumulative ? A(1) / (A)batches : (A)a.momentum;
}

template <typename T> static __device__ T moved(T from, gp_compute<T> to, gp_compute<T> share) {
  const gp_compute<T> start = gp_load(from);
  return gp_store<T>(start + (to - start) * share);
}

template <typename T> static __global__ void __launch_bounds__(THREADS) move_kernel(moving<T> a) {
  typedef gp_compute<T> A;
  const A share = count_batch(a, 1);
  const A unbiased = (A)(a.rows / (a.rows > 2 ? a.rows - 1 : 1));
  for (int64_t j = threadIdx.x; j < a.channels; j += THREADS) {
    a.running_mean[j] = moved<T>(a.running_mean[j], gp_load(a.mean[j]), share);
    a.running_variance[j] =
        moved<T>(a.running_variance[j], gp_load(a.variance[j]) * unbiased, share);
  }
}

/* Merge a channel's statistics into what the micro-batches before left, as the CPU does. */
template <typename T>
static __device__ void merge_channel(const moving<T> &a, int64_t j, bool first) {
  typedef gp_compute<T> A;
  const int64_t c = a.channels;
  T *pending = a.pending + j;
  const double before = first ? 0 : (double)gp_load(pending[0]), all = before + a.rows;
  const double start = first ? 0 : (double)gp_load(pending[c]);
  const double spread = first ? 0 : (double)gp_load(pending[2 * c]);
  const double d = (double)gp_load(a.mean[j]) - start, share = all > 0 ? a.rows / all : 0;
  pending[0] = gp_store<T>((A)all);
  pending[c] = gp_store<T>((A)(start + d * share));
  pending[2 * c] =
      gp_store<T>((A)(spread + (double)gp_load(a.variance[j]) * a.rows + d * d * before * share));
  if (first) pending[3 * c] = a.running_mean[j], pending[4 * c] = a.running_variance[j];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    merge_kernel(moving<T> a, const gp_step_block *step) {
  typedef gp_compute<T> A;
  const int64_t c = a.channels;
  const bool first = step->first_row == 0;
  const A share = count_batch(a, first);
  for (int64_t j = threadIdx.x; j < c; j += THREADS) {
    merge_channel(a, j, first);
    const T *pending = a.pending + j;
    const A others = gp_load(pending[0]) - 1;
    const A unbiased = gp_load(pending[2 * c]) / (others > 1 ? others : A(1));
    a.running_mean[j] = moved<T>(pending[3 * c], gp_load(pending[c]), share);
    a.running_variance[j] = moved<T>(pending[4 * c], unbiased, share);
  }
}

/* stats: the operand that is the batch's mean; its variance is the next. */
template <typename T> static moving<T> operands_of(const gp_call *call, int stats) {
  moving<T> a = {};
  a.running_mean = (T *)call->out[RUNNING_MEAN].data;
  a.running_variance = (T *)call->out[RUNNING_VARIANCE].data;
  a.batches = (int64_t *)call->out[BATCHES].data;
  a.mean = (const T *)call->in[stats].data, a.variance = (const T *)call->in[stats + 1].data;
  a.channels = gp_numel_of(call->out[RUNNING_MEAN].meta);
  return a;
}

/* ---- once for every batch -------------------------------------------------------------------- */

template <typename T> static gp_status launch_move(gp_gpu *gpu, const gp_call *call) {
  const gp_attr_move_stats *attr = &call->attr->move_stats;
  moving<T> a = operands_of<T>(call, PENDING);
  a.momentum = attr->momentum, a.rows = (double)attr->rows, a.cumulative = attr->cumulative;
  return GP_LAUNCH(gpu, move_kernel<T>, 1, THREADS, 0, a);
}

static gp_status run_move(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch_move<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_move_stats = {run_move, NULL};

/* ---- once for every mini-batch --------------------------------------------------------------- */

template <typename T> static gp_status launch_merge(gp_gpu *gpu, const gp_call *call) {
  const gp_attr_merge_stats *attr = &call->attr->merge_stats;
  moving<T> a = operands_of<T>(call, PENDING + 1);
  a.pending = (T *)call->out[PENDING].data;
  a.momentum = attr->momentum, a.rows = (double)attr->rows, a.cumulative = attr->cumulative;
  return GP_LAUNCH(gpu, merge_kernel<T>, 1, THREADS, 0, a, call->step);
}

static gp_status run_merge(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch_merge<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_merge_stats = {run_merge, NULL};
