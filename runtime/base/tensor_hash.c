/* base/tensor_hash.c - see gp_tensor_hash. */
#include <string.h>

#include "base/hash.h"
#include "base/tensor.h"

enum { HASHED = 4096 }; /* bytes at either end */

static uint64_t mix(uint64_t hash, const char *data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, data + at, bytes - at < sizeof word ? bytes - at : sizeof word);
    hash = gp_hash_word(hash, word);
  }
  return hash;
}

uint64_t gp_tensor_hash(const gp_tensor *tensor, uint64_t hash) {
  if (gp_tensor_space(tensor) || !gp_tensor_is_contiguous(tensor)) return hash;
  const char *data = gp_tensor_data(tensor);
  const size_t bytes = gp_meta_bytes(gp_tensor_meta(tensor));
  const size_t part = bytes < HASHED ? bytes : HASHED;
  return mix(mix(hash, data, part), data + bytes - part, part);
}
