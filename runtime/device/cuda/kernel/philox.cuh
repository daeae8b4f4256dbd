/* device/cuda/kernel/philox.cuh - the random words of base/random/philox.h, computed where they are
 * used.
 *
 * The bits are the same as on the CPU: a word is a function of (seed, stream words, element), so a
 * kernel may compute any of them in any order and keeps no state. A block makes four words, for
 * elements 16 apart; a thread that wants several elements computes whole blocks.
 *
 * Source: Salmon et al. 2011, section 3.3 and table 2 (rounds, multipliers, Weyl constants). */
#ifndef GP_DEVICE_CUDA_PHILOX_CUH
#define GP_DEVICE_CUDA_PHILOX_CUH

#include "device/cuda/kernel/device.cuh"

/* Elements of a chunk; block b of chunk c (number 16 c + b) holds its elements b, b + 16, .. */
enum { GP_PHILOX_CHUNK = 64, GP_PHILOX_BLOCKS = 16, GP_PHILOX_WORDS = 4 };

/* The four words of a block of stream (word2, word3). */
static __device__ inline void gp_philox_block(uint64_t seed, uint32_t word2, uint32_t word3,
                                              uint64_t block, uint32_t out[GP_PHILOX_WORDS]) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = word2, c3 = word3;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* The block that holds an element's word. */
static __device__ inline uint64_t gp_philox_block_of(uint64_t element) {
  return element / GP_PHILOX_CHUNK * GP_PHILOX_BLOCKS + element % GP_PHILOX_BLOCKS;
}

/* The element's word of that block. */
static __device__ inline uint32_t gp_philox_pick(const uint32_t words[GP_PHILOX_WORDS],
                                                 uint64_t element) {
  const uint32_t which = (uint32_t)(element / GP_PHILOX_BLOCKS) % GP_PHILOX_WORDS;
  const uint32_t low = which & 1 ? words[1] : words[0], high = which & 1 ? words[3] : words[2];
  return which & 2 ? high : low;
}

/* The word of one element. It costs four times a block's share, so use it for scattered
 * elements. */
static __device__ inline uint32_t gp_philox_word(uint64_t seed, uint32_t word2, uint32_t word3,
                                                 uint64_t element) {
  uint32_t words[GP_PHILOX_WORDS];
  gp_philox_block(seed, word2, word3, gp_philox_block_of(element), words);
  return gp_philox_pick(words, element);
}

#endif
