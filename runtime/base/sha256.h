/* base/sha256.h - SHA-256 and a proof that one knows a key without telling it. */
#ifndef GP_BASE_SHA256_H
#define GP_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { GP_SHA256_BYTES = 32, GP_SHA256_BLOCK = 64 };

typedef struct gp_sha256 {
  uint32_t state[8];
  uint64_t bytes; /* taken in so far */
  unsigned char block[GP_SHA256_BLOCK];
} gp_sha256;

gp_sha256 gp_sha256_begin(void);
void gp_sha256_put(gp_sha256 *sum, const void *data, size_t bytes);
void gp_sha256_end(gp_sha256 *sum, unsigned char digest[GP_SHA256_BYTES]);

/* The keyed sum of two texts, one after the other. Source: RFC 2104 (HMAC). */
typedef struct gp_proof_text {
  const void *data;
  size_t bytes;
} gp_proof_text;
void gp_proof(const char *key, gp_proof_text first, gp_proof_text second,
              unsigned char digest[GP_SHA256_BYTES]);

#endif
