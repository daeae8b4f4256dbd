/* ops/random/rand.cu - rand and randn on a GPU, see rand.c: the bits that they have on the CPU.
 *
 * Kernels are compiled without contraction (scripts/cmake/cuda.cmake), as base/random/normal.h
 * requires. A thread takes as many neighbouring blocks of words as make an element, or a pair of
 * normals: four elements or pairs, 16 words apart. The kernel reads the step block: a captured
 * graph serves every step. */
#include "device/cuda/kernel/meta.cuh"
#include "device/cuda/kernel/philox.cuh"

#include "base/random/normal.h" /* after the headers that define __device__ */
#include "ops/elements.h"

enum { THREADS = 256 }; /* eight warps */

/* The words of an element, and the uniform number that they make: 24 bits for f32, exact
 * there, else 53. */
template <typename T> struct words_of { static const int count = sizeof(T) / sizeof(uint32_t); };

template <typename T> static __device__ inline double uniform_of(const uint32_t *words);
template <> __device__ inline double uniform_of<float>(const uint32_t *words) {
  return (words[0] >> 8) * 0x1p-24;
}
template <> __device__ inline double uniform_of<double>(const uint32_t *words) {
  return (double)((uint64_t)(words[0] >> 5) << 26 | words[1] >> 6) * 0x1p-53;
}

/* The values that a launch fills. */
template <typename T> struct drawing {
  T *out;
  int64_t n, leading; /* elements; the first dimension */
  uint32_t number;    /* of the random op */
};

/* Write the elements from position i on from those words; 0 + is the mean that random.c adds. */
template <typename T, bool normal>
static __device__ inline void put(const drawing<T> &d, int64_t i, const uint32_t *words) {
  double value[2] = {uniform_of<T>(words), 0};
  if (normal) {
    gp_normal_pair(value[0], uniform_of<T>(words + words_of<T>::count), &value[0], &value[1]);
    value[0] = 0.0 + value[0], value[1] = 0.0 + value[1];
  }
  for (int k = 0; k < (normal ? 2 : 1); k++)
    if (i + k >= 0 && i + k < d.n) d.out[i + k] = (T)value[k];
}

template <typename T, bool normal>
static __global__ void random_kernel(drawing<T> d, const gp_step_block *step) {
  const int group = words_of<T>::count * (normal ? 2 : 1);
  const uint64_t first = gp_first_element(step, d.leading, d.n);
  const uint64_t first_chunk = first * words_of<T>::count / GP_PHILOX_CHUNK;
  const uint64_t last_chunk = ((first + (uint64_t)d.n) * words_of<T>::count - 1) / GP_PHILOX_CHUNK;
  const uint64_t units = (last_chunk - first_chunk + 1) * (GP_PHILOX_BLOCKS / group);
  for (uint64_t u = blockIdx.x * THREADS + threadIdx.x; u < units; u += gridDim.x * THREADS) {
    const uint64_t block = first_chunk * GP_PHILOX_BLOCKS + u * group;
    uint32_t words[GP_PHILOX_WORDS][4], four[GP_PHILOX_WORDS];
#pragma unroll
    for (int k = 0; k < group; k++) {
      gp_philox_block(step->seed, step->step, d.number, block + k, four);
#pragma unroll
      for (int w = 0; w < GP_PHILOX_WORDS; w++) words[w][k] = four[w];
    }
    const uint64_t word = block / GP_PHILOX_BLOCKS * GP_PHILOX_CHUNK + block % GP_PHILOX_BLOCKS;
#pragma unroll
    for (int w = 0; w < GP_PHILOX_WORDS; w++) {
      const uint64_t element = (word + w * GP_PHILOX_BLOCKS) / words_of<T>::count;
      put<T, normal>(d, (int64_t)(element - first), words[w]);
    }
  }
}

template <typename T, bool normal> static gp_status draw(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *out = &call->op.out[0];
  const gp_shape *shape = &out->meta->shape;
  const drawing<T> d = {(T *)out->data, gp_numel_of(out->meta), shape->rank > 0 ? shape->dim[0] : 1,
                        call->op.attr->random};
  if (d.n == 0) return GP_OK;
  return GP_LAUNCH(gpu, (random_kernel<T, normal>), gp_blocks(d.n / 4 + 1, THREADS), THREADS, 0, d,
                   call->op.step);
}

template <bool normal> static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  if (call->op.out[0].meta->dtype == GP_F64) return draw<double, normal>(gpu, call);
  return draw<float, normal>(gpu, call);
}

const gp_gpu_kernel gp_gpu_rand = {run<false>, NULL};
const gp_gpu_kernel gp_gpu_randn = {run<true>, NULL};
