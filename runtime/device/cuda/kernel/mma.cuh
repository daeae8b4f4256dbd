/* device/cuda/kernel/mma.cuh - products of small matrices of halves on a warp's tensor cores, and
 * the asynchronous copies that feed them.
 *
 * This is the only file with inline PTX. In a product all 32 lanes of a warp take part, each with
 * its part of the matrices. Lane l has of
 *
 *   a [16, 16]: rows l/4 (a[0], a[2]) and l/4 + 8 (a[1], a[3]), columns 2 (l%4) and the next
 *               (a[0], a[1]), and 8 further (a[2], a[3])
 *   b [16, 8]:  column l/4, rows 2 (l%4) and the next (b[0]), and 8 further (b[1])
 *   c [16, 8]:  rows l/4 (c[0], c[1]) and l/4 + 8 (c[2], c[3]), columns 2 (l%4) and the next
 *
 * A register holds two halves, the lower one first; c is f32. GPUs before compute capability 8.0
 * have no such products: a launcher must ask gp_has_mma first.
 *
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k16", "ldmatrix", "cp.async". */
#ifndef GP_DEVICE_CUDA_KERNEL_MMA_CUH
#define GP_DEVICE_CUDA_KERNEL_MMA_CUH

#include "device/cuda/kernel/device.cuh"

/* Compute capability 8.0 and later. */
static inline bool gp_has_mma(const gp_gpu *gpu) { return gpu->info.major >= 8; }

#ifdef GP_CUDA_ON_HOST
#include "on_host/mma.h"

static inline void gp_load_matrices(uint32_t to[4], const void *row) {
  gp_host_load_matrices(to, row, false);
}
static inline void gp_load_transposed(uint32_t to[4], const void *row) {
  gp_host_load_matrices(to, row, true);
}
template <typename T>
static inline void gp_mma(float c[4], const uint32_t a[4], const uint32_t *b) {
  gp_host_mma<T>(c, a, b);
}

template <int BYTES> static inline void gp_copy_async(void *to, const void *from, bool there) {
  gp_host_copy_async(to, from, BYTES, there);
}
static inline void gp_copies_wait() { gp_host_copies_wait(); }
static inline float gp_exp2(float x) { return exp2f(x); }

#else

/* Begin to copy 4 or 16 bytes, aligned to their size, from device to shared memory; zeros if
 * `there` is false (`from` must still be a device address). The thread sees them after
 * gp_copies_wait, the block after a following barrier. */
template <int BYTES>
static __device__ inline void gp_copy_async(void *to, const void *from, bool there) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to), bytes = there ? BYTES : 0;
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(at), "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(at), "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
#endif
}

static __device__ inline void gp_copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* 2^x in one instruction; 0 for results below 2^-126. */
static __device__ inline float gp_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Load four matrices of 8 x 8 halves from shared memory: lane 8 i + r passes the address of row r
 * of matrix i, aligned to 16 bytes. to[i]: row l/4, columns 2 (l%4) and the next of matrix i. */
static __device__ inline void gp_load_matrices(uint32_t to[4], const void *row) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
#endif
}

/* The same for the transposed matrices. */
static __device__ inline void gp_load_transposed(uint32_t to[4], const void *row) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
#endif
}

#if __CUDA_ARCH__ >= 800
#define GP_MMA(type, c, a, b)                                                                      \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                      \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else
#define GP_MMA(type, c, a, b) (void)c, (void)a, (void)b
#endif

/* c += a b */
template <typename T>
static __device__ inline void gp_mma(float c[4], const uint32_t a[4], const uint32_t *b);
template <>
__device__ inline void gp_mma<gp_bf16>(float c[4], const uint32_t a[4], const uint32_t *b) {
  GP_MMA("bf16", c, a, b);
}
template <>
__device__ inline void gp_mma<gp_f16>(float c[4], const uint32_t a[4], const uint32_t *b) {
  GP_MMA("f16", c, a, b);
}
#undef GP_MMA

#endif
#endif
