/* base/hash.h - FNV-1a, which tells two lists of numbers or two names apart; no defence against
 * somebody who wants them to collide.
 *
 * Source: Fowler, Noll and Vo, FNV-1a with 64 bits; over words of 8 bytes where the data are
 * numbers. A word's high bits reach the hash's high bits only: fold where the low ones choose a
 * slot, or after each word where most words differ in their high bits alone.
 */
#ifndef GPIPE_BASE_HASH_H
#define GPIPE_BASE_HASH_H

#include <stdint.h>

#define GP_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t gp_hash_word(uint64_t hash, uint64_t word) {
  return (hash ^ word) * UINT64_C(0x100000001b3);
}

static inline uint64_t gp_hash_text(uint64_t hash, const char *text) {
  for (; *text; text++) hash = gp_hash_word(hash, (unsigned char)*text);
  return hash;
}

static inline uint64_t gp_hash_fold(uint64_t hash) { return hash ^ hash >> 32; }

#endif
