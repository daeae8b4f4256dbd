/* base/sha256.c - see sha256.h. Source: FIPS 180-4, sections 4.1.2, 5.1.1 and 6.2. */
#include "base/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

gp_sha256 gp_sha256_begin(void) {
  return (gp_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

/* Spread a block over 64 words. */
static void schedule(const unsigned char *block, uint32_t w[64]) {
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
           (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
}

/* Take one block into the state; h[0] to h[7] are the letters a to h of the standard. */
static void mix(gp_sha256 *sum) {
  uint32_t w[64], h[8];
  schedule(sum->block, w);
  memcpy(h, sum->state, sizeof h);
  for (int i = 0; i < 64; i++) {
    const uint32_t choice = (h[4] & h[5]) ^ (~h[4] & h[6]);
    const uint32_t majority = (h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]);
    const uint32_t one =
        h[7] + (turn(h[4], 6) ^ turn(h[4], 11) ^ turn(h[4], 25)) + choice + constants[i] + w[i];
    const uint32_t two = (turn(h[0], 2) ^ turn(h[0], 13) ^ turn(h[0], 22)) + majority;
    memmove(h + 1, h, 7 * sizeof *h);
    h[4] += one;
    h[0] = one + two;
  }
  for (int i = 0; i < 8; i++) sum->state[i] += h[i];
}

void gp_sha256_put(gp_sha256 *sum, const void *data, size_t bytes) {
  const unsigned char *from = data;
  for (size_t i = 0; i < bytes; i++) {
    sum->block[sum->bytes++ % GP_SHA256_BLOCK] = from[i];
    if (sum->bytes % GP_SHA256_BLOCK == 0) mix(sum);
  }
}

/* The end of the text is a bit, zeros, and the number of bits, which fills the last block. */
void gp_sha256_end(gp_sha256 *sum, unsigned char digest[GP_SHA256_BYTES]) {
  const uint64_t bits = 8 * sum->bytes;
  unsigned char count[8];
  gp_sha256_put(sum, "\x80", 1);
  while (sum->bytes % GP_SHA256_BLOCK != GP_SHA256_BLOCK - sizeof count) gp_sha256_put(sum, "", 1);
  for (int i = 0; i < 8; i++) count[i] = (unsigned char)(bits >> (56 - 8 * i));
  gp_sha256_put(sum, count, sizeof count);
  for (int i = 0; i < GP_SHA256_BYTES; i++)
    digest[i] = (unsigned char)(sum->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* The sum of the key, mixed with a byte, and of two texts. */
static void sum_with(const unsigned char *key, unsigned char with, const gp_proof_text texts[2],
                     unsigned char digest[GP_SHA256_BYTES]) {
  unsigned char pad[GP_SHA256_BLOCK];
  gp_sha256 sum = gp_sha256_begin();
  for (int i = 0; i < GP_SHA256_BLOCK; i++) pad[i] = key[i] ^ with;
  gp_sha256_put(&sum, pad, sizeof pad);
  for (int i = 0; i < 2; i++) gp_sha256_put(&sum, texts[i].data, texts[i].bytes);
  gp_sha256_end(&sum, digest);
}

void gp_proof(const char *key, gp_proof_text first, gp_proof_text second,
              unsigned char digest[GP_SHA256_BYTES]) {
  unsigned char block[GP_SHA256_BLOCK] = {0}, inner[GP_SHA256_BYTES];
  const size_t length = strlen(key);
  if (length > sizeof block) {
    gp_sha256 sum = gp_sha256_begin();
    gp_sha256_put(&sum, key, length);
    gp_sha256_end(&sum, block);
  } else {
    memcpy(block, key, length);
  }
  sum_with(block, 0x36, (gp_proof_text[2]){first, second}, inner);
  sum_with(block, 0x5c, (gp_proof_text[2]){{inner, sizeof inner}, {"", 0}}, digest);
}
