/* tests/cuda/staged_mask_test.cpp - the kernel that brings a mask into the form that cuDNN's graphs
 * of attention read: the library needs a GPU, the kernel runs on the host too. */
#include "launcher.h"
#include "test.h"

#include "ops/attention/beside_cudnn.cu"

enum { HEADS = 2, QUERIES = 3, KEYS = 5, ROW = 8, ELEMENTS = HEADS * QUERIES * KEYS };

/* Replaces a function of another file: masks here are small. */
gp_status gp_flash_too_many(const gp_attention *a) {
  (void)a;
  return GP_ERANGE;
}

/* Checks the rows of a mask [1, H, Tq, Tk] that differs between heads, or does not. */
static void check_stage(bool of_heads, float hidden) {
  device d;
  const size_t heads = of_heads ? HEADS : 1;
  array<float> mask(ELEMENTS), to(ELEMENTS * 2);
  for (size_t k = 0; k < ELEMENTS; k++) mask[k] = (float)k;
  mask[1] = hidden;
  for (size_t k = 0; k < ELEMENTS * 2; k++) to[k] = NAN;
  gp_attention a = {};
  a.dtype = GP_BF16, a.masked = true, a.mask_dtype = GP_F32;
  a.batches = 1, a.heads = a.groups = HEADS, a.queries = QUERIES, a.keys = KEYS;
  a.mask = {mask.data, 0, of_heads ? QUERIES * KEYS : 0, KEYS, 1};
  const gp_attention_value there = {to.data, 0, of_heads ? QUERIES * ROW : 0, ROW, 1};
  CHECK(gp_attention_stage_mask(&d.gpu, &a, &there) == GP_OK);
  for (size_t row = 0; row < heads * QUERIES; row++)
    for (size_t key = 0; key < ROW; key++) {
      const float want = key < KEYS ? mask[row * KEYS + key] : (float)GP_MASK_HIDDEN;
      CHECK(to[row * ROW + key] == (isinf(want) ? (float)GP_MASK_HIDDEN : want));
    }
  CHECK(isnan(to[heads * QUERIES * ROW]));
}

TEST(a_mask_is_written_without_infinities) { check_stage(true, -INFINITY); }
TEST(a_mask_of_all_heads_is_written_once) { check_stage(false, 7); }
/* The library may read what lies between rows, so the kernel must overwrite what was there
 * before. */
TEST(rows_of_a_mask_are_written_to_their_ends) { check_stage(true, 3); }

TEST_MAIN(a_mask_is_written_without_infinities, a_mask_of_all_heads_is_written_once,
          rows_of_a_mask_are_written_to_their_ends)
