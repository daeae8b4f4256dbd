/* ops/random/dropout.cu - dropout on a GPU: the mask has the bits that it has on the CPU.
 *
 * Random words come in blocks of four, for elements 16 apart (base/random/philox.h), so a thread
 * takes as many neighbouring blocks as make accesses of 16 bytes, four of them. If elements do not
 * lie on such boundaries (a micro-batch may begin anywhere in the mini-batch) it takes one block,
 * and single elements. The kernel reads the step block: a captured graph serves every step. */
#include "device/cuda/kernel/philox.cuh"
#include "ops/constants.h"
#include "ops/elementwise/map.cuh"
#include "ops/elements.h"
#include "ops/shape/boxes.cuh"

/* Eight warps, as in map.cuh. Four such blocks on an SM have 64 KiB in flight, and 64 registers a
 * thread: enough for the words of a unit of halves. */
enum { THREADS = 256, BLOCKS = 4 };

typedef struct rule {
  uint32_t threshold; /* keep where word >= threshold; 2^32 p */
  double scale;
  uint32_t number; /* of the random op */
} rule;

static rule make_rule(const gp_attrs *attr) {
  const double p = attr->dropout.p;
  return {(uint32_t)(p * GP_WORD_RANGE), 1.0 / (1.0 - p), attr->random};
}

static __device__ inline float times(float x, float scale) { return __fmul_rn(x, scale); }
static __device__ inline double times(double x, double scale) { return __dmul_rn(x, scale); }

/* The stream that the random numbers of this launch come from. */
typedef struct draw {
  uint64_t seed;
  uint32_t step;
  uint64_t first; /* number of element 0 */
} draw;

/* The values of one dtype, and the rule for each. */
template <typename T> struct dropper {
  const T *x;
  T *y;
  int64_t n, leading; /* elements; the first dimension */
  rule r;

  __device__ T drop(T value, uint32_t word) const {
    const gp_compute<T> kept = times(gp_load(value), (gp_compute<T>)r.scale);
    return gp_store<T>(word >= r.threshold ? kept : gp_compute<T>(0));
  }
  __device__ bool is_inside(int64_t i) const { return i >= 0 && i < n; }
};

/* Drop by LANES neighbouring blocks from number `block` on: as many elements from position i on,
 * and those 16, 32 and 48 behind them, none of which may lie outside if LANES is not 1. The
 * elements are read first: computing the words then hides the latency of memory. */
template <int LANES, typename T>
static __device__ inline void drop_unit(const dropper<T> &d, const draw &stream, uint64_t block,
                                        int64_t i) {
  gp_lanes<T, LANES> v[GP_PHILOX_WORDS];
  uint32_t words[LANES][GP_PHILOX_WORDS];
#pragma unroll
  for (int w = 0; w < GP_PHILOX_WORDS; w++)
    if (LANES > 1 || d.is_inside(i + w * GP_PHILOX_BLOCKS))
      v[w] = gp_read_lanes<T, LANES>(d.x + i + w * GP_PHILOX_BLOCKS, 1);
#pragma unroll
  for (int k = 0; k < LANES; k++)
    gp_philox_block(stream.seed, stream.step, d.r.number, block + k, words[k]);
#pragma unroll
  for (int w = 0; w < GP_PHILOX_WORDS; w++) {
    if (LANES == 1 && !d.is_inside(i + w * GP_PHILOX_BLOCKS)) continue;
#pragma unroll
    for (int k = 0; k < LANES; k++) v[w].at[k] = d.drop(v[w].at[k], words[k][w]);
    gp_write_whole(d.y + i + w * GP_PHILOX_BLOCKS, v[w]);
  }
}

/* Drop this thread's share, LANES blocks at a time, counted from the chunk in which the
 * first element lies. */
template <int LANES, typename T>
static __device__ inline void drop_share(const dropper<T> &d, const draw &stream) {
  const int reach = (GP_PHILOX_WORDS - 1) * GP_PHILOX_BLOCKS + LANES; /* of a unit */
  const uint64_t first_chunk = stream.first / GP_PHILOX_CHUNK;
  const uint64_t last_chunk = (stream.first + (uint64_t)d.n - 1) / GP_PHILOX_CHUNK;
  const uint64_t units = (last_chunk - first_chunk + 1) * (GP_PHILOX_BLOCKS / LANES);
  for (uint64_t u = blockIdx.x * THREADS + threadIdx.x; u < units; u += gridDim.x * THREADS) {
    const uint64_t block = first_chunk * GP_PHILOX_BLOCKS + u * LANES;
    const uint64_t element = block / GP_PHILOX_BLOCKS * GP_PHILOX_CHUNK + block % GP_PHILOX_BLOCKS;
    const int64_t i = (int64_t)(element - stream.first);
    if (i >= 0 && i + reach <= d.n) {
      drop_unit<LANES>(d, stream, block, i);
      continue;
    }
#pragma unroll 1
    for (int k = 0; k < LANES; k++) drop_unit<1>(d, stream, block + k, i + k);
  }
}

/* packed: x and y can be accessed by LANES elements. */
template <int LANES, typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    dropout_kernel(dropper<T> d, const gp_step_block *step, bool packed) {
  __shared__ draw stream; /* one thread makes the division */
  if (threadIdx.x == 0) stream = {step->seed, step->step, gp_first_element(step, d.leading, d.n)};
  __syncthreads();
  if (packed && stream.first % LANES == 0)
    drop_share<LANES>(d, stream);
  else
    drop_share<1>(d, stream);
}

/* ---- the op -------------------------------------------------------------------------------- */

template <typename T> static gp_status drop_as(gp_gpu *gpu, const gp_call *op, const void *x) {
  constexpr int lanes = gp_pack<T>::count;
  const gp_meta *meta = op->out[0].meta;
  const int64_t n = gp_numel_of(meta), leading = meta->shape.rank > 0 ? meta->shape.dim[0] : 1;
  const dropper<T> d = {(const T *)x, (T *)op->out[0].data, n, leading, make_rule(op->attr)};
  const bool packed = gp_is_packed(d.x) && gp_is_packed(d.y);
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, (dropout_kernel<lanes, T>), gp_blocks(n / (4 * lanes) + 1, THREADS),
                   THREADS, 0, d, op->step, packed);
}

/* A strided input is made contiguous first, in the output's memory. */
static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_call *op = &call->op;
  const gp_arg *out = &op->out[0], *in = &op->in[0];
  const double p = op->attr->dropout.p;
  if (p == 0) return gp_move(gpu, out, in);
  if (p == 1) return gp_clear(gpu, out);
  const bool contiguous = gp_is_flat(in->meta);
  if (!contiguous) GP_GPU_TRY(gp_move(gpu, out, in));
  GP_BY_FLOAT(out->meta->dtype, return drop_as<T>(gpu, op, contiguous ? in->data : out->data))
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_dropout = {run, NULL};
