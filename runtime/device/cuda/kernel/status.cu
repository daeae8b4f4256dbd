/* device/cuda/kernel/status.cu - facts that the host would otherwise have to read back: values that
 * are not finite, and the count of a mini-batch.
 *
 * Both stay on the GPU, so that a step needs no round trip. Broken values rarely come alone, so
 * each block lowers the key only once, with the first that it has. */
#include "device/cuda/kernel/work.h"
#include "device/cuda/kernel/meta.cuh"

enum { THREADS = 256 };

/* ---- values that are not finite -------------------------------------------------------------- */

static const unsigned long long NONE = ~0ull;

template <typename T> static __device__ bool is_finite(T x) {
  const gp_compute<T> value = gp_load(x);
  return value - value == 0; /* inf - inf and NaN - NaN are NaN */
}

template <typename T> struct values {
  const T *x;
  gp_strides at;
  int64_t n, packs; /* packs: how many groups can be read as 16 bytes */
};

/* The first of this thread's elements that is not finite. */
template <typename T> static __device__ unsigned long long find_broken(const values<T> &v) {
  const int64_t me = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t all = (int64_t)gridDim.x * THREADS;
  unsigned long long first = NONE;
  for (int64_t i = me; i < v.packs && first == NONE; i += all) {
    const gp_pack<T> group = ((const gp_pack<T> *)v.x)[i];
#pragma unroll
    for (int k = gp_pack<T>::count - 1; k >= 0; k--)
      if (!is_finite(group.at[k])) first = i * gp_pack<T>::count + k;
  }
  for (int64_t i = v.packs * gp_pack<T>::count + me; i < v.n && first == NONE; i += all)
    if (!is_finite(v.x[gp_offset_of(v.at, i)])) first = i;
  return first;
}

template <typename T>
static __global__ void check_kernel(values<T> v, gp_gpu_fault *fault, uint32_t tag) {
  __shared__ unsigned long long block_first;
  if (threadIdx.x == 0) block_first = NONE;
  __syncthreads();
  const unsigned long long first = find_broken(v);
  if (first != NONE) atomicMin(&block_first, first);
  __syncthreads();
  if (threadIdx.x == 0 && block_first != NONE)
    atomicMin((unsigned long long *)&fault->key,
              (unsigned long long)tag << 32 | (uint32_t)block_first);
}

template <typename T>
static gp_status check(gp_gpu *gpu, const gp_arg *value, gp_gpu_fault *fault, uint32_t tag) {
  const bool packed = gp_is_flat(value->meta) && gp_is_packed(value->data);
  const int64_t n = gp_numel_of(value->meta);
  const values<T> v = {(const T *)value->data, gp_strides_of(value->meta, value->meta->shape.rank),
                       n, packed ? n / gp_pack<T>::count : 0};
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, check_kernel<T>, gp_blocks(packed ? v.packs : n, THREADS), THREADS, 0, v,
                   fault, tag);
}

gp_status gp_gpu_work_check_finite(gp_gpu *gpu, const gp_arg *value, gp_gpu_fault *fault,
                                   uint32_t tag) {
  switch (value->meta->dtype) {
  case GP_F32: return check<float>(gpu, value, fault, tag);
  case GP_F64: return check<double>(gpu, value, fault, tag);
  case GP_BF16: return check<gp_bf16>(gpu, value, fault, tag);
  case GP_F16: return check<gp_f16>(gpu, value, fault, tag);
  default: return GP_OK;
  }
}

/* ---- the count of a mini-batch --------------------------------------------------------------- */

/* One block; every thread adds all counts, which are few. */
static __global__ void settle_kernel(const int64_t *counts, gp_step_block *blocks, int count) {
  int64_t sum = 0;
  for (int i = 0; i < count; i++) sum += counts[i];
  for (int i = threadIdx.x; i < count; i += THREADS)
    blocks[i].inverse_count = sum ? 1.0 / (double)sum : 0.0;
}

gp_status gp_gpu_work_settle(gp_gpu *gpu, const int64_t *counts, gp_step_block *blocks, int count) {
  if (count <= 0) return GP_OK;
  return GP_LAUNCH(gpu, settle_kernel, 1, THREADS, 0, counts, blocks, count);
}
