/* base/random/random.c - constants, uniform and normal values, and permutations, from Philox words.
 *
 * Element i of a stream depends on i alone: f32 uses word i, f64 words 2i and 2i + 1. Normals come
 * in pairs (elements 2j, 2j + 1), both from the two uniforms at their own places, so a piece may
 * begin and end anywhere. They are computed in double on the host; devices get copies.
 *
 * Source: Box and Muller 1958 for normals; Fisher and Yates (Durstenfeld 1964) for permutations. */
#include "base/random/random.h"

#include <math.h>

#include "base/memory.h"
#include "base/random/philox.h"
#include "base/tensor.h"

enum { BLOCK = 256 }; /* elements drawn at a time; even, so that pairs stay together */

/* The domain lies in the two highest bits, so that streams of different domains never meet. */
static gp_random_stream make_stream(enum gp_random_domain domain, uint64_t seed, uint64_t stream) {
  uint32_t high = (uint32_t)(stream >> 32) & 0x3fffffffu;
  return (gp_random_stream){seed, (uint32_t)stream, high | (uint32_t)domain << 30};
}

/* n uniform doubles in [0, 1) for elements first ..: 24 bits each for f32, exact there, else 53. */
static void draw_uniform(const gp_random_stream *s, gp_dtype dtype, uint64_t first, int64_t n,
                         double *u) {
  uint32_t words[2 * BLOCK];
  if (dtype == GP_F32) {
    gp_philox_words(s->seed, s->word2, s->word3, first, n, words);
    for (int64_t i = 0; i < n; i++) u[i] = (words[i] >> 8) * 0x1p-24;
  } else {
    gp_philox_words(s->seed, s->word2, s->word3, 2 * first, 2 * n, words);
    for (int64_t i = 0; i < n; i++) {
      uint64_t bits = (uint64_t)(words[2 * i] >> 5) << 26 | words[2 * i + 1] >> 6;
      u[i] = (double)bits * 0x1p-53;
    }
  }
}

/* Turn pairs of uniforms into pairs of standard normals, n even. */
static void box_muller(int64_t n, double *values) {
  double u[BLOCK / 2], v[BLOCK / 2], even[BLOCK / 2], odd[BLOCK / 2];
  for (int64_t i = 0; i < n / 2; i++) u[i] = values[2 * i], v[i] = values[2 * i + 1];
  gp_normal_pairs(n / 2, u, v, even, odd);
  for (int64_t i = 0; i < n / 2; i++) values[2 * i] = even[i], values[2 * i + 1] = odd[i];
}

/* Scale to the distribution that is asked for; rounding must not reach the open end of [a, b). */
static void scale_uniform(const gp_init *init, gp_dtype dtype, int64_t n, double *u) {
  for (int64_t i = 0; i < n; i++) {
    double value = init->a + u[i] * (init->b - init->a);
    if (dtype == GP_F32) {
      float rounded = (float)value;
      u[i] = rounded >= init->b && init->a < init->b ? nextafterf(rounded, -INFINITY) : rounded;
    } else {
      u[i] = value >= init->b && init->a < init->b ? nextafter(init->b, -INFINITY) : value;
    }
  }
}

/* Draw elements first .. first + n - 1; first and n are even, n is at most BLOCK. */
static void draw_block(const gp_random_stream *stream, const gp_init *init, gp_dtype dtype,
                       uint64_t first, int64_t n, double *values) {
  if (init->kind == GP_INIT_CONSTANT) {
    for (int64_t i = 0; i < n; i++) values[i] = init->a;
    return;
  }
  draw_uniform(stream, dtype, first, n, values);
  if (init->kind == GP_INIT_UNIFORM) {
    scale_uniform(init, dtype, n, values);
  } else {
    box_muller(n, values);
    for (int64_t i = 0; i < n; i++) values[i] = init->a + init->b * values[i];
  }
}

static gp_status check_draw(const gp_draw *draw) {
  const gp_init *init = &draw->init;
  if (draw->dtype == GP_I64 && init->kind == GP_INIT_CONSTANT) return GP_OK;
  if (draw->dtype != GP_F32 && draw->dtype != GP_F64)
    return gp_fail(GP_EDTYPE, "random: dtype is %s, expected f32 or f64",
                   gp_dtype_name(draw->dtype));
  if (init->kind == GP_INIT_UNIFORM && !(init->a <= init->b && isfinite(init->b - init->a)))
    return gp_fail(GP_EINVAL, "random: uniform from %g to %g, expected finite limits in order",
                   init->a, init->b);
  if (init->kind == GP_INIT_NORMAL && !(init->b >= 0 && isfinite(init->b) && isfinite(init->a)))
    return gp_fail(GP_EINVAL, "random: normal(%g, %g), expected a finite mean and deviation >= 0",
                   init->a, init->b);
  return GP_OK;
}

/* An odd `first` begins in the middle of a pair: draw the element before it too, and skip it. */
void gp_random_values(const gp_random_stream *stream, const gp_init *init, gp_dtype dtype,
                      uint64_t first, int64_t n, void *out) {
  double values[BLOCK];
  const int64_t skipped = (int64_t)(first % 2), all = n + skipped;
  for (int64_t start = 0; start < all; start += BLOCK) {
    int64_t count = all - start < BLOCK ? all - start : BLOCK;
    uint64_t at = first - (uint64_t)skipped + (uint64_t)start;
    draw_block(stream, init, dtype, at, count + count % 2, values);
    for (int64_t i = start == 0 ? skipped : 0; i < count; i++) {
      int64_t place = start + i - skipped;
      if (dtype == GP_F32)
        ((float *)out)[place] = (float)values[i];
      else if (dtype == GP_I64)
        ((int64_t *)out)[place] = (int64_t)values[i];
      else
        ((double *)out)[place] = values[i];
    }
  }
}

gp_status gp_random_draw(const gp_draw *draw, int64_t first, int64_t n, void *out) {
  GP_TRY(check_draw(draw));
  const gp_random_stream stream = make_stream(GP_RANDOM_FILL, draw->seed, draw->stream);
  gp_random_values(&stream, &draw->init, draw->dtype, (uint64_t)first, n, out);
  return GP_OK;
}

/* Fill a tensor piece by piece through the host: the bits are the same, and the host
 * needs less memory. */
static gp_status fill_elsewhere(const gp_draw *draw, gp_tensor *tensor) {
  enum { PIECE = 1 << 20 };
  gp_space *space = gp_tensor_space(tensor);
  size_t size = gp_dtype_size(draw->dtype);
  int64_t n = gp_tensor_numel(tensor), room = n < PIECE ? n : PIECE;
  void *piece;
  GP_TRY(gp_alloc((size_t)room * size, &piece));
  gp_status status = GP_OK;
  for (int64_t first = 0; !status && first < n; first += PIECE) {
    int64_t count = n - first < PIECE ? n - first : PIECE;
    status = gp_random_draw(draw, first, count, piece);
    char *to = (char *)gp_tensor_data(tensor) + (size_t)first * size;
    if (!status) status = space->write(space, to, piece, (size_t)count * size);
  }
  gp_free(piece);
  return status;
}

gp_status gp_tensor_fill(gp_tensor *tensor, const gp_init *init, uint64_t seed, uint64_t stream) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  if (!gp_meta_is_contiguous(meta))
    return gp_fail(GP_EINVAL, "fill: the tensor is strided, expected a contiguous one");
  gp_draw draw = {.dtype = meta->dtype, .init = *init, .seed = seed, .stream = stream};
  if (gp_tensor_space(tensor)) return fill_elsewhere(&draw, tensor);
  return gp_random_draw(&draw, 0, gp_tensor_numel(tensor), gp_tensor_data(tensor));
}

/* floor(word * bound / 2^64) is below bound; its bias is at most bound / 2^64. */
static uint64_t scale_word(uint64_t word, uint64_t bound) {
  __extension__ typedef unsigned __int128 wide;
  return (uint64_t)((wide)word * bound >> 64);
}

void gp_random_permutation(int64_t *order, int64_t n, uint64_t seed, uint64_t stream) {
  gp_random_stream s = make_stream(GP_RANDOM_PERMUTATION, seed, stream);
  uint32_t words[2 * BLOCK];
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t drawn = n - 1 - i, at = drawn % BLOCK; /* exchange number `drawn` takes two words */
    if (at == 0) gp_philox_words(s.seed, s.word2, s.word3, 2 * (uint64_t)drawn, 2 * BLOCK, words);
    uint64_t word = (uint64_t)words[2 * at] << 32 | words[2 * at + 1];
    int64_t j = (int64_t)scale_word(word, (uint64_t)i + 1);
    int64_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}
