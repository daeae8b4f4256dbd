/* device/cpu/gemm_plain.c - vector arithmetic for the blocked product, which gemm_plain.inc holds
 * once for both dtypes.
 *
 * Contraction is off in the whole build, because bits are promised. Here the code names the fused
 * multiply-add where the build's instruction set has it: it gives the same bits in every run of one
 * binary, and is twice as fast. */
#include "device/cpu/gemm_plain.h"

#include "base/loop.h"

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, TILE_ROWS = 8 }; /* 16 of 32 registers hold sums */
#define FUSED_F32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FUSED_F64(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(__FMA__)
enum { VECTOR_BYTES = 32, TILE_ROWS = 6 }; /* 12 of 16 registers hold sums */
#define FUSED_F32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FUSED_F64(a, b, c) _mm256_fmadd_pd(a, b, c)
#else
enum { VECTOR_BYTES = 16, TILE_ROWS = 6 };
#define FUSED_F32(a, b, c) ((a) * (b) + (c))
#define FUSED_F64(a, b, c) ((a) * (b) + (c))
#endif

enum {
  TILE_VECTORS = 2,
  BLOCK_DEPTH = 256,           /* a packed sliver of B stays in the first-level cache */
  BLOCK_ROWS = 12 * TILE_ROWS, /* a packed block of A stays in the second-level cache */
};

/* gcc at -O2 unrolls such loops only when told to, and the sums must be registers. */
#define UNROLL GP_UNROLL(16)

/* Indices first .. last - 1 of rows, columns or depth. */
typedef struct range {
  int64_t first, last;
} range;

static range block_of(int64_t first, int64_t size, int64_t end) {
  return (range){first, first + size < end ? first + size : end};
}

#define T          float
#define NAME(name) name##_f32
#define FUSED      FUSED_F32
#include "device/cpu/gemm_plain.inc"
#undef T
#undef NAME
#undef FUSED

#define T          double
#define NAME(name) name##_f64
#define FUSED      FUSED_F64
#include "device/cpu/gemm_plain.inc"
