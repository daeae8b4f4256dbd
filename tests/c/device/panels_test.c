/* tests/c/device/panels_test.c - products in panels against sums in f64, and the same bits for
 * every cut; on every processor that can compute them, whether the runtime uses them there or not.
 */
#include "device/cpu/panels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static uint32_t random_state = 1;

static float *draw(int64_t count) {
  float *values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) {
    random_state = random_state * 1664525u + 1013904223u;
    values[i] = (float)((double)(random_state >> 8) * 0x1p-23 - 1);
  }
  return values;
}

static bool same(const float *a, const float *b, int64_t count) {
  return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Sums of so many terms below 1 differ from those in f64 by less than this. */
static double tolerance(int64_t terms) { return 1e-6 * (double)(terms + 1); }

/* ---- rows times a weight -------------------------------------------------------------------- */

typedef struct size {
  int64_t rows, depth, columns;
} size;

/* Rows that fill tiles and do not, widths of panels: 64, 48, 32 and 16 columns, no depth. */
static const size sizes[] = {{64, 40, 128}, {1, 33, 16}, {13, 17, 48},  {5, 100, 112},
                             {70, 9, 160},  {3, 0, 80},  {11, 384, 64}, {0, 5, 16}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* c = a w + bias by panels; w is stored as [depth, columns], or transposed. */
static float *product(const size *s, const float *a, const float *w, bool transposed,
                      const float *bias) {
  float *panels = draw(s->depth * s->columns + 1), *c = draw(s->rows * s->columns + 1);
  const gp_panels_weight weight = {s->depth, s->columns, w, transposed ? s->depth : s->columns,
                                   transposed};
  for (int64_t first = 0; first < s->columns; first += GP_PANEL) /* one panel after the other */
    gp_panels_pack(&weight, first, s->columns - first < GP_PANEL ? s->columns : first + GP_PANEL,
                   panels);
  const gp_panels p = {s->rows, s->depth, s->columns, a, panels, bias, s->depth, s->columns, c};
  gp_panels_multiply(&p);
  float *row = draw(s->columns);
  for (int64_t r = 0; r < s->rows; r++) { /* a row alone has the same bits */
    gp_panels one = p;
    one.rows = 1, one.a += r * p.lda, one.c = row;
    gp_panels_multiply(&one);
    CHECK(same(row, c + r * s->columns, s->columns));
  }
  free(row);
  free(panels);
  return c;
}

static void check_product(const size *s) {
  float *a = draw(s->rows * s->depth + 1), *w = draw(s->depth * s->columns + 1);
  float *turned = draw(s->depth * s->columns + 1), *bias = draw(s->columns);
  for (int64_t k = 0; k < s->depth; k++)
    for (int64_t j = 0; j < s->columns; j++) turned[j * s->depth + k] = w[k * s->columns + j];
  float *c = product(s, a, w, false, bias), *again = product(s, a, turned, true, bias);
  float *plain = product(s, a, w, false, NULL);
  CHECK(same(c, again, s->rows * s->columns));
  for (int64_t i = 0; i < s->rows; i++)
    for (int64_t j = 0; j < s->columns; j++) {
      double sum = 0;
      for (int64_t k = 0; k < s->depth; k++)
        sum += (double)a[i * s->depth + k] * (double)w[k * s->columns + j];
      CHECK_NEAR(plain[i * s->columns + j], sum, tolerance(s->depth));
      CHECK_NEAR(c[i * s->columns + j], sum + (double)bias[j], tolerance(s->depth));
    }
  float *all[] = {a, w, turned, bias, c, again, plain};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

TEST(products_are_those_in_f64_and_a_row_has_the_bits_it_has_alone) {
  for (int i = 0; gp_panels_built() && i < SIZES; i++) check_product(&sizes[i]);
}

/* ---- a weight's gradient -------------------------------------------------------------------- */

/* sums (+)= left^T right for `s` as columns of the left, places, columns of the right. */
static void outer(const size *s, int64_t first, int64_t places, const float *left,
                  const float *right, bool add, float *sums) {
  void *scratch = malloc(GP_OUTER_SCRATCH);
  for (int64_t i = 0; i < s->rows; i += 50) /* blocks that are not whole tiles */
    for (int64_t j = 0; j < s->columns; j += 80)
      gp_panels_outer_multiply(
          &(gp_panels_outer){.places = places,
                             .rows = s->rows - i < 50 ? s->rows - i : 50,
                             .columns = s->columns - j < 80 ? s->columns - j : 80,
                             .left = left + first * s->rows + i,
                             .right = right + first * s->columns + j,
                             .ld_left = s->rows,
                             .ld_right = s->columns,
                             .ld = s->columns,
                             .sums = sums + i * s->columns + j,
                             .add = add,
                             .scratch = scratch});
  free(scratch);
}

static void check_outer(const size *s) {
  const int64_t count = s->rows * s->columns, half = s->depth / 3;
  float *left = draw(s->depth * s->rows + 1), *right = draw(s->depth * s->columns + 1);
  float *sums = draw(count + 1), *parts = draw(count + 1);
  outer(s, 0, s->depth, left, right, false, sums);
  outer(s, 0, half, left, right, false, parts); /* as micro-batches add to what is there */
  outer(s, half, s->depth - half, left, right, true, parts);
  CHECK(same(sums, parts, count));
  for (int64_t i = 0; i < s->rows; i++)
    for (int64_t j = 0; j < s->columns; j++) {
      double sum = 0;
      for (int64_t p = 0; p < s->depth; p++)
        sum += (double)left[p * s->rows + i] * (double)right[p * s->columns + j];
      CHECK_NEAR(sums[i * s->columns + j], sum, tolerance(s->depth));
    }
  float *all[] = {left, right, sums, parts};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

TEST(gradients_are_those_in_f64_and_have_the_same_bits_summed_in_parts) {
  static const size more[] = {{192, 300, 64}, {7, 128, 144}, {100, 257, 96}, {6, 0, 64}};
  for (int i = 0; gp_panels_built() && i < SIZES; i++) check_outer(&sizes[i]);
  for (int i = 0; gp_panels_built() && i < 4; i++) check_outer(&more[i]);
}

/* ---- the rule ------------------------------------------------------------------------------- */

TEST(large_weights_of_whole_vectors_are_served_where_it_pays) {
  CHECK(gp_panels_serve(384, 384) == gp_panels_pay());
  CHECK(gp_panels_serve(256, 512) == gp_panels_serve(512, 256));
  CHECK(!gp_panels_serve(256, 384)); /* small */
  CHECK(!gp_panels_serve(1000, 2048) && !gp_panels_serve(2048, 1000));
  CHECK(!gp_panels_serve(0, 384) && !gp_panels_serve(384, 0));
}

TEST_MAIN(products_are_those_in_f64_and_a_row_has_the_bits_it_has_alone,
          gradients_are_those_in_f64_and_have_the_same_bits_summed_in_parts,
          large_weights_of_whole_vectors_are_served_where_it_pays)
