/* gpipe/random.h - numbers that are a function of (seed, stream) alone. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_RANDOM_H
#define GP_PUBLIC_RANDOM_H

#include "gpipe/tensor.h"

typedef enum gp_init_kind { GP_INIT_CONSTANT, GP_INIT_UNIFORM, GP_INIT_NORMAL } gp_init_kind;

/* What fills a tensor: a constant a; uniform in [a, b); normal with mean a and deviation b. */
typedef struct gp_init {
  gp_init_kind kind;
  double a, b;
} gp_init;

/* Fill a contiguous f32 or f64 tensor from Philox stream (seed, stream). The bits depend on nothing
 * else. Errors: GP_EINVAL, GP_EDTYPE.
 * Source: Salmon et al. 2011, Philox4x32-10; Box-Muller for normals. */
gp_status gp_tensor_fill(gp_tensor *tensor, const gp_init *init, uint64_t seed, uint64_t stream);
/* order[n] receives a permutation of 0..n-1. Source: Fisher-Yates over Philox (seed, stream). */
void gp_random_permutation(int64_t *order, int64_t n, uint64_t seed, uint64_t stream);

#endif
