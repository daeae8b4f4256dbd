/* tests/c/base/random_test.c - Philox against its published answers, and what is drawn from it
 * against values computed independently (a dozen lines of Python from the definitions in the
 * headers). */
#include "base/random/random.h"

#include <stdlib.h>

#include "base/random/philox.h"
#include "base/tensor.h"
#include "test.h"

/* ---- words ---- */

/* Source: Random123, kat_vectors, philox4x32 10 rounds. */
TEST(philox_gives_the_known_answers) {
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t out[4];
    gp_philox(cases[i].counter, cases[i].key, out);
    CHECK(memcmp(out, cases[i].out, sizeof out) == 0);
  }
}

/* Computes the word of one element from the definition in base/random/philox.h. */
static uint32_t word_at(uint64_t seed, uint32_t word2, uint32_t word3, uint64_t element) {
  uint64_t block = element / 64 * 16 + element % 16;
  uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), word2, word3}, out[4];
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  gp_philox(counter, key, out);
  return out[element % 64 / 16];
}

TEST(words_follow_the_element_mapping) {
  static const uint64_t starts[] = {0, 1, 63, 64, 1000, UINT64_C(1) << 34, (UINT64_C(1) << 40) - 9};
  uint64_t seed = 0x0123456789abcdef;
  uint32_t words[200];
  for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
    gp_philox_words(seed, 11, 22, starts[s], 200, words);
    for (uint64_t i = 0; i < 200; i++) CHECK(words[i] == word_at(seed, 11, 22, starts[s] + i));
  }
}

TEST(words_do_not_depend_on_the_cut) {
  uint32_t whole[500], pieces[500];
  gp_philox_words(5, 6, 7, 3, 500, whole);
  for (int64_t size = 1; size < 200; size += 13) {
    memset(pieces, 0, sizeof pieces);
    for (int64_t i = 0; i < 500; i += size)
      gp_philox_words(5, 6, 7, 3 + (uint64_t)i, size < 500 - i ? size : 500 - i, pieces + i);
    CHECK(memcmp(whole, pieces, sizeof whole) == 0);
  }
  gp_philox_words(5, 6, 7, 3, 0, pieces);
}

/* ---- values ---- */

static gp_draw draw_of(gp_dtype dtype, gp_init_kind kind, double a, double b) {
  return (gp_draw){.dtype = dtype, .init = {kind, a, b}, .seed = 42, .stream = 7};
}

TEST(uniform_values_are_the_defined_ones) {
  float f32[65];
  double f64[65];
  gp_draw narrow = draw_of(GP_F32, GP_INIT_UNIFORM, -1, 3);
  gp_draw wide = draw_of(GP_F64, GP_INIT_UNIFORM, 0, 1);
  CHECK_STATUS(gp_random_draw(&narrow, 0, 65, f32), GP_OK);
  CHECK(f32[0] == -0x1.2c3298p-1f && f32[17] == 0x1.4b81dap+1f && f32[64] == -0x1.9e4760p-3f);
  CHECK_STATUS(gp_random_draw(&wide, 0, 65, f64), GP_OK);
  CHECK(f64[0] == 0x1.a79adff85ab80p-4 && f64[17] == 0x1.8f43cd3a66938p-2);
  CHECK(f64[64] == 0x1.07643dcc3fb4ep-1);
}

TEST(normal_values_are_the_defined_ones) {
  float f32[66];
  gp_draw draw = draw_of(GP_F32, GP_INIT_NORMAL, 0, 1);
  CHECK_STATUS(gp_random_draw(&draw, 0, 66, f32), GP_OK);
  CHECK_NEAR(f32[0], 0.4652065458441755, 1e-7); /* math libraries differ in the last bits */
  CHECK_NEAR(f32[1], -0.04377700336277121, 1e-8);
  CHECK_NEAR(f32[64], 0.5480656771449602, 1e-7);
  CHECK_NEAR(f32[65], -0.38011020316357863, 1e-7);
}

/* Compares with the math library, at the ends and at the borders of the octants. */
TEST(normals_are_accurate) {
  static const double ends[] = {0,           0x1p-53,     1e-9,  0.125, 0.25,  0.2928932188134524,
                                0.375,       0.5,         0.625, 0.75,  0.875, 0.9,
                                1 - 0x1p-30, 1 - 0x1p-53, 0.01,  0.3};
  enum { N = sizeof ends / sizeof *ends };
  int wrong = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double even, odd, u = floor(ends[i] * 0x1p53) * 0x1p-53, angle = 2 * acos(-1) * ends[j];
      gp_normal_pairs(1, &u, &ends[j], &even, &odd);
      double radius = sqrt(-2 * log1p(-u)), allowed = 4e-15 * radius; /* angle near 2 pi */
      wrong += !(fabs(even - radius * cos(angle)) <= allowed);
      wrong += !(fabs(odd - radius * sin(angle)) <= allowed);
    }
  CHECK(wrong == 0);
}

/* The bits are the same on every machine, because only additions, multiplications, divisions and
 * square roots make them. */
TEST(normals_have_fixed_bits) {
  float f32[4096];
  uint32_t hash = 2166136261u;
  gp_draw draw = draw_of(GP_F32, GP_INIT_NORMAL, 0, 1);
  CHECK_STATUS(gp_random_draw(&draw, 0, 4096, f32), GP_OK);
  for (int i = 0; i < 4096; i++) {
    uint32_t bits;
    memcpy(&bits, &f32[i], sizeof bits);
    hash = (hash ^ bits) * 16777619u;
  }
  CHECK(hash == 0x3a6d59b2); /* FNV-1a; gcc and clang, SSE2, AVX2 and AVX-512 */
}

TEST(values_do_not_depend_on_the_cut) {
  static const gp_init_kind kinds[] = {GP_INIT_UNIFORM, GP_INIT_NORMAL, GP_INIT_CONSTANT};
  static double whole[1200], pieces[1200];
  for (int kind = 0; kind < 3; kind++)
    for (int dtype = GP_F32; dtype <= GP_F64; dtype++)
      for (int64_t size = 1; size < 700; size += 231) {
        gp_draw draw = draw_of((gp_dtype)dtype, kinds[kind], 0.5, 2);
        size_t bytes = gp_dtype_size((gp_dtype)dtype);
        CHECK_STATUS(gp_random_draw(&draw, 100, 1001, whole), GP_OK);
        for (int64_t i = 0; i < 1001; i += size)
          CHECK_STATUS(gp_random_draw(&draw, 100 + i, size < 1001 - i ? size : 1001 - i,
                                      (char *)pieces + (size_t)i * bytes),
                       GP_OK);
        CHECK(memcmp(whole, pieces, 1001 * bytes) == 0);
      }
}

TEST(moments_are_those_of_the_distribution) {
  enum { N = 200000 };
  double *values = malloc(N * sizeof *values), sum = 0, squares = 0, low = 9, high = -9;
  gp_draw normal = draw_of(GP_F64, GP_INIT_NORMAL, 3, 2);
  CHECK_STATUS(gp_random_draw(&normal, 0, N, values), GP_OK);
  for (int i = 0; i < N; i++) sum += values[i], squares += (values[i] - 3) * (values[i] - 3);
  CHECK_NEAR(sum / N, 3, 5 * 2 / sqrt(N)); /* five standard errors */
  CHECK_NEAR(squares / N, 4, 5 * 4 * sqrt(2.0 / N));
  gp_draw uniform = draw_of(GP_F64, GP_INIT_UNIFORM, -2, 2);
  CHECK_STATUS(gp_random_draw(&uniform, 0, N, values), GP_OK);
  for (int i = 0; i < N; i++) low = fmin(low, values[i]), high = fmax(high, values[i]);
  CHECK(low >= -2 && low < -1.999 && high < 2 && high > 1.999);
  free(values);
}

TEST(the_upper_limit_is_never_reached) {
  enum { N = 100000 };
  float *values = malloc(N * sizeof *values);
  int reached = 0;
  gp_draw draw = draw_of(GP_F32, GP_INIT_UNIFORM, 1, 1 + 0x1p-22); /* two steps of a float */
  CHECK_STATUS(gp_random_draw(&draw, 0, N, values), GP_OK);
  for (int i = 0; i < N; i++) reached += values[i] >= 1 + 0x1p-22f || values[i] < 1;
  CHECK(reached == 0);
  draw.init.b = 1;
  CHECK_STATUS(gp_random_draw(&draw, 0, 10, values), GP_OK);
  CHECK(values[0] == 1 && values[9] == 1);
  free(values);
}

TEST(distributions_that_make_no_sense_are_errors) {
  float value[2];
  gp_draw draw = draw_of(GP_F32, GP_INIT_UNIFORM, 1, 0);
  CHECK_STATUS(gp_random_draw(&draw, 0, 2, value), GP_EINVAL);
  draw = draw_of(GP_F32, GP_INIT_UNIFORM, 0, INFINITY);
  CHECK_STATUS(gp_random_draw(&draw, 0, 2, value), GP_EINVAL);
  draw = draw_of(GP_F32, GP_INIT_UNIFORM, NAN, 1);
  CHECK_STATUS(gp_random_draw(&draw, 0, 2, value), GP_EINVAL);
  draw = draw_of(GP_F32, GP_INIT_NORMAL, 0, -1);
  CHECK_STATUS(gp_random_draw(&draw, 0, 2, value), GP_EINVAL);
  draw = draw_of(GP_BF16, GP_INIT_NORMAL, 0, 1);
  CHECK_STATUS(gp_random_draw(&draw, 0, 2, value), GP_EDTYPE);
}

TEST(tensors_are_filled_by_seed_and_stream) {
  gp_shape shape = {.rank = 2, .dim = {10, 20}};
  gp_init init = {GP_INIT_NORMAL, 0, 0.02};
  gp_tensor *t[4] = {0};
  for (int i = 0; i < 4; i++) CHECK_STATUS(gp_tensor_new(GP_F32, &shape, &t[i]), GP_OK);
  CHECK_STATUS(gp_tensor_fill(t[0], &init, 1, 2), GP_OK);
  CHECK_STATUS(gp_tensor_fill(t[1], &init, 1, 2), GP_OK);
  CHECK_STATUS(gp_tensor_fill(t[2], &init, 1, 3), GP_OK);
  CHECK_STATUS(gp_tensor_fill(t[3], &init, 2, 2), GP_OK);
  CHECK(gp_tensor_equal(t[0], t[1]));
  CHECK(!gp_tensor_equal(t[0], t[2]) && !gp_tensor_equal(t[0], t[3]));
  gp_meta turned = {.dtype = GP_F32, .shape = {2, {20, 10}}, .stride = {1, 20}};
  gp_tensor *view = NULL;
  CHECK_STATUS(gp_tensor_view(t[0], &turned, &view), GP_OK);
  CHECK_STATUS(gp_tensor_fill(view, &init, 1, 2), GP_EINVAL);
  gp_tensor_free(view);
  for (int i = 0; i < 4; i++) gp_tensor_free(t[i]);
}

/* ---- permutations ---- */

TEST(permutations_are_the_defined_ones) {
  static const int64_t expected[] = {10, 9, 7, 1, 4, 8, 3, 0, 6, 2, 5, 11};
  int64_t order[1000];
  gp_random_permutation(order, 12, 42, 7);
  CHECK(memcmp(order, expected, sizeof expected) == 0);
  gp_random_permutation(order, 1000, 42, 7);
  CHECK(order[0] == 303 && order[3] == 727 && order[996] == 691 && order[999] == 937);
  bool seen[1000] = {0};
  for (int i = 0; i < 1000; i++) {
    CHECK(order[i] >= 0 && order[i] < 1000 && !seen[order[i]]);
    seen[order[i]] = true;
  }
  gp_random_permutation(order, 0, 1, 1);
  gp_random_permutation(order, 1, 1, 1);
  CHECK(order[0] == 0);
}

TEST_MAIN(philox_gives_the_known_answers, words_follow_the_element_mapping,
          words_do_not_depend_on_the_cut, uniform_values_are_the_defined_ones,
          normal_values_are_the_defined_ones, normals_are_accurate, normals_have_fixed_bits,
          values_do_not_depend_on_the_cut, moments_are_those_of_the_distribution,
          the_upper_limit_is_never_reached, distributions_that_make_no_sense_are_errors,
          tensors_are_filled_by_seed_and_stream, permutations_are_the_defined_ones)
