/* tests/cuda/on_host/mma.h - the tensor cores of a warp, as device/cuda/kernel/mma.cuh has them.
 *
 * The lanes of a warp are fibers of one thread: what one lane holds, the others can read while they
 * wait for each other. mma.cuh, which defines the layouts, includes this file. */
#ifndef GP_TESTS_CUDA_ON_HOST_MMA_H
#define GP_TESTS_CUDA_ON_HOST_MMA_H

#include <vector>

#include "../on_host.h"

/* Returns the index of the running thread in its block. */
inline unsigned gp_host_thread() {
  const dim3 size = gp_host_now->block_size;
  const uint3 at = gp_host_now->thread;
  return (at.z * size.y + at.y) * size.x + at.x;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* A copy is made as late as possible, so that a missing wait shows as wrong numbers. */
struct gp_host_copy {
  void *to;
  const void *from;
  int bytes;
  bool there;
};
inline thread_local std::vector<gp_host_copy> gp_host_copies[1024]; /* per thread of the block */

inline void gp_host_copy_async(void *to, const void *from, int bytes, bool there) {
  gp_host_copies[gp_host_thread()].push_back({to, from, bytes, there});
}

inline void gp_host_copies_wait() {
  std::vector<gp_host_copy> &copies = gp_host_copies[gp_host_thread()];
  for (const gp_host_copy &copy : copies)
    if (copy.there)
      memcpy(copy.to, copy.from, (size_t)copy.bytes);
    else
      memset(copy.to, 0, (size_t)copy.bytes);
  copies.clear();
}

/* ---- products ------------------------------------------------------------------------------ */

/* The operands that each lane of each warp of the running block brings. */
inline thread_local const void *gp_host_brought[32][32];

/* Returns the operands of all lanes of this warp; they are valid until gp_host_leave. */
inline const void *const *gp_host_bring(const void *what, int line) {
  const void **brought = gp_host_brought[gp_host_thread() / 32];
  brought[gp_host_now->lane] = what;
  __syncwarp(0xffffffff, line);
  return brought;
}

inline void gp_host_leave(int line) { __syncwarp(0xffffffff, line); }

/* Loads rows of eight halves: lane 8 i + r brings row r of matrix i. A lane gets two neighbours
 * from a row of each matrix, or, transposed, from a column. */
inline void gp_host_load_matrices(uint32_t to[4], const void *row, bool transposed,
                                  int line = __builtin_LINE()) {
  const void *const *rows = gp_host_bring(row, line);
  const int r = gp_host_now->lane / 4, c = gp_host_now->lane % 4 * 2;
  for (int i = 0; i < 4; i++) {
    const uint16_t *first = (const uint16_t *)rows[8 * i + (transposed ? c : r)];
    const uint16_t *second = (const uint16_t *)rows[8 * i + (transposed ? c + 1 : r)];
    to[i] =
        transposed ? first[r] | (uint32_t)second[r] << 16 : first[c] | (uint32_t)first[c + 1] << 16;
  }
  gp_host_leave(line);
}

/* The operands of a product that one lane holds, as numbers. */
struct gp_host_operands {
  float a[4][2], b[2][2];
};

template <typename T> inline void gp_host_unpack(float to[2], uint32_t bits) {
  T pair[2];
  memcpy((void *)pair, &bits, sizeof bits);
  to[0] = (float)pair[0], to[1] = (float)pair[1];
}

/* Computes c += a b for a [16, 16] and b [16, 8]. */
template <typename T>
inline void gp_host_mma(float c[4], const uint32_t a[4], const uint32_t b[2],
                        int line = __builtin_LINE()) {
  gp_host_operands mine;
  for (int i = 0; i < 4; i++) gp_host_unpack<T>(mine.a[i], a[i]);
  for (int i = 0; i < 2; i++) gp_host_unpack<T>(mine.b[i], b[i]);
  const void *const *all = gp_host_bring(&mine, line);
  const int row = gp_host_now->lane / 4 * 4, column = gp_host_now->lane % 4 * 8;
  float sum[4] = {c[0], c[1], c[2], c[3]};
  for (int e = 0; e < 4; e++)
    for (int k = 0; k < 16; k++) {
      const int lane = k % 8 / 2;
      const auto *left = (const gp_host_operands *)all[row + lane];
      const auto *right = (const gp_host_operands *)all[column + e % 2 * 4 + lane];
      sum[e] += left->a[e / 2 + k / 8 * 2][k % 2] * right->b[k / 8][k % 2];
    }
  gp_host_leave(line);
  for (int e = 0; e < 4; e++) c[e] = sum[e];
}

#endif
