/* optim/verdict.cu - see device/verdict.h: a GPU decides what happens to a step's gradients.
 *
 * One block does it, since there are only a few hundred words. One thread adds the squares, in the
 * order in which the host adds them (engine/update/norm.c); roots and quotients of f64 are rounded
 * correctly on both. */
#include "device/cuda/kernel/device.cuh"
#include "device/cuda/kernel/work.h"

enum { THREADS = 256 };

/* Tell every thread whether a device has found something wrong. */
static __device__ bool find_fault(const double *words, const int32_t *first, int32_t parts) {
  bool found = false;
  for (int32_t k = threadIdx.x; k < parts; k += THREADS)
    found = found || *(const uint64_t *)(words + first[k]) != GP_GPU_NO_FAULT;
  return __syncthreads_or(found) != 0;
}

static __device__ bool is_finite(double x) { return x - x == 0; }

/* Tell whether one of the sums is not finite. Heads are no sums. */
static __device__ bool find_broken(const double *words, const int32_t *first, int32_t parts) {
  bool found = false;
  for (int32_t k = 0; k < parts; k++)
    for (int32_t i = first[k] + GP_VERDICT_HEAD + (int32_t)threadIdx.x; i < first[k + 1];
         i += THREADS)
      found = found || !is_finite(words[i]);
  return __syncthreads_or(found) != 0;
}

/* Add the listed words, one after the other; thread 0 has the sum. */
static __device__ double add_listed(const double *words, const int32_t *listed, int32_t count) {
  __shared__ double line[THREADS];
  double sum = 0;
  for (int32_t begin = 0; begin < count; begin += THREADS) {
    const int32_t own = begin + (int32_t)threadIdx.x, rest = count - begin;
    if (own < count) line[threadIdx.x] = listed[own] < 0 ? 0 : words[listed[own]];
    __syncthreads();
    for (int32_t i = 0; threadIdx.x == 0 && i < rest && i < THREADS; i++) sum += line[i];
    __syncthreads();
  }
  return sum;
}

static __global__ void decide_kernel(const gp_verdict_terms *terms, const double *words,
                                     gp_verdict *verdict) {
  const gp_verdict_terms t = *terms;
  const int32_t *first = (const int32_t *)(terms + 1), *listed = first + t.part_count + 1;
  const bool fault = find_fault(words, first, t.part_count);
  const bool overflow = find_broken(words, first, t.part_count) && t.strict;
  const double sum = add_listed(words, listed, t.listed_count);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(sum) * t.unscale;
  const bool clips = !overflow && t.clip_norm > 0 && norm > t.clip_norm;
  *verdict = {t.unscale, clips ? t.clip_norm / (norm + 1e-6) : 1, !fault && !overflow};
}

gp_status gp_gpu_work_decide(gp_gpu *gpu, const gp_verdict_terms *terms, const double *words,
                             gp_verdict *verdict) {
  return GP_LAUNCH(gpu, decide_kernel, 1, THREADS, 0, terms, words, verdict);
}
