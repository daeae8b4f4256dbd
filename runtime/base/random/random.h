/* base/random/random.h - values drawn from Philox streams, piece by piece if there are too many.
 *
 * The last two words of the Philox counter tell streams apart. Ops that draw on a device (dropout,
 * rand) keep the two highest bits of word 3 clear; what the host draws has them set as below, so
 * that no two uses of one seed ever share a word. */
#ifndef GP_BASE_RANDOM_H
#define GP_BASE_RANDOM_H

#include "base/status.h"
#include "gpipe/random.h"

enum gp_random_domain {
  GP_RANDOM_ITEMS = 1,      /* augmentation of data: gp_items_words */
  GP_RANDOM_FILL = 2,       /* initial values: gp_tensor_fill */
  GP_RANDOM_PERMUTATION = 3 /* gp_random_permutation */
};

/* A piece of the values that gp_tensor_fill would write: elements first .. first + n - 1. */
typedef struct gp_draw {
  gp_dtype dtype; /* f32 or f64 */
  gp_init init;
  uint64_t seed, stream; /* stream < 2^62 */
} gp_draw;
/* Errors: GP_EDTYPE, GP_EINVAL for limits that make no sense. */
gp_status gp_random_draw(const gp_draw *draw, int64_t first, int64_t n, void *out);

/* Any stream: the seed, and the last two words of the counter. */
typedef struct gp_random_stream {
  uint64_t seed;
  uint32_t word2, word3;
} gp_random_stream;
/* Elements first .. first + n - 1 of a stream, f32 or f64. Limits are not checked. */
void gp_random_values(const gp_random_stream *stream, const gp_init *init, gp_dtype dtype,
                      uint64_t first, int64_t n, void *out);

/* Two independent standard normals from each pair of uniforms u and v in [0, 1): radius
 * sqrt(-2 log(1 - u)) and v turns; even receives the cosines, odd the sines. */
void gp_normal_pairs(int64_t pairs, const double *u, const double *v, double *even, double *odd);

#endif
