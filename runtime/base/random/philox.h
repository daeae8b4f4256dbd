/* base/random/philox.h - counter-based random numbers: a value is a function of (seed, stream
 * words, index) and of nothing else.
 *
 * Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), Philox4x32 with 10
 * rounds. Element mapping (the same on every device): chunks of 64 elements; element e of chunk c
 * is word e/16 of the block with counter {16c + e%16 (64 bits), word2, word3} and key = seed. */
#ifndef GP_BASE_PHILOX_H
#define GP_BASE_PHILOX_H

#include <stdint.h>

/* One block: out[4] from counter[4] and key[2]. */
void gp_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Words of elements first .. first + n - 1 of stream (word2, word3) into out[n]. */
void gp_philox_words(uint64_t seed, uint32_t word2, uint32_t word3, uint64_t first, int64_t n,
                     uint32_t *out);

#endif
