/* tests/c/ops/loss_test.c - cross_entropy, mse, and the op that starts the backward pass. */
#include "kernel.h"

enum { ROWS = 70, V = 37 };

static gp_attrs options(bool has_ignore, int64_t ignore, double smoothing) {
  return (gp_attrs){.cross_entropy = {.ignore = {has_ignore, ignore}, .smoothing = smoothing}};
}

/* ---- cross_entropy ------------------------------------------------------------------------- */

/* Returns (1 - e) nll(id) + e mean(nll), by definition. */
static double expected_loss(const gp_tensor *x, int64_t row, int64_t id, double e) {
  double sum = 0, mean = 0;
  for (int64_t j = 0; j < V; j++) sum += exp(get(x, row * V + j));
  for (int64_t j = 0; j < V; j++) mean += (log(sum) - get(x, row * V + j)) / V;
  return (1 - e) * (log(sum) - get(x, row * V + id)) + e * mean;
}

TEST(cross_entropy_is_its_definition) {
  static const gp_dtype dtypes[] = {GP_I64, GP_I32, GP_U8};
  gp_tensor *x = noise(GP_F64, SHAPE(7, 10, V), 1);
  for (int i = 0; i < 6; i++) {
    gp_tensor *id = ids(dtypes[i % 3], SHAPE(7, 10), V, 2);
    double e = i < 3 ? 0 : 0.1;
    application a = APPLY(cross_entropy, options(i % 2, 5, e), x, id);
    near_in_f32(a, 2e-6);
    a = same_in_pieces(a);
    for (int64_t r = 0; r < ROWS; r++) {
      int64_t c = gp_tensor_get_int(id, r);
      double want = i % 2 && c == 5 ? 0 : expected_loss(x, r, c, e);
      CHECK_NEAR(get(a.out[0], r), want, 1e-13);
    }
  }
  finish();
}

TEST(cross_entropy_keeps_its_digits_for_large_logits) {
  gp_tensor *x = constant(GP_F32, SHAPE(1, 2), 1e6), *id = zeros(GP_I64, SHAPE(1));
  CHECK_NEAR(get(output(APPLY(cross_entropy, NO_ATTRS, x, id)), 0), log(2), 1e-6);
  finish();
}

/* Returns the gradient op of a forward application, with dloss of any layout. */
static application gradient_of(application f, gp_tensor *dloss) {
  CHECK_STATUS(apply(&f), GP_OK);
  return APPLY(cross_entropy_dx, f.attr, f.in[0], f.in[1], f.out[1], dloss);
}

TEST(cross_entropy_dx_is_the_gradient) {
  gp_tensor *x = noise(GP_F64, SHAPE(ROWS, V), 1), *id = ids(GP_I64, SHAPE(ROWS), V, 2);
  gp_tensor *dloss = noise(GP_F64, SHAPE(ROWS), 3);
  for (int i = 0; i < 4; i++) {
    application f = APPLY(cross_entropy, options(i & 1, 3, i & 2 ? 0.2 : 0), x, id);
    application dx = gradient_of(f, dloss);
    near_in_f32(dx, 1e-5);
    check_gradient(f, 0, dloss, same_in_pieces(dx).out[0]);
  }
  finish();
}

TEST(cross_entropy_dx_reads_strided_operands) {
  gp_tensor *x = noise(GP_F32, SHAPE(ROWS, V), 1), *id = ids(GP_I64, SHAPE(ROWS), V, 2);
  application f = APPLY(cross_entropy, NO_ATTRS, x, id);
  gp_tensor *want = output(gradient_of(f, constant(GP_F32, SHAPE(ROWS), 0.25)));
  /* dloss: one value for all rows; logits: the transpose of a transposed copy. */
  gp_tensor *one = constant(GP_F32, SHAPE(1), 0.25), *turned = zeros(GP_F32, SHAPE(V, ROWS));
  gp_meta repeated = *gp_tensor_meta(one), across = *gp_tensor_meta(x);
  repeated.shape.dim[0] = ROWS, repeated.stride[0] = 0;
  across.stride[0] = 1, across.stride[1] = ROWS;
  for (int64_t i = 0; i < ROWS * V; i++)
    gp_tensor_set_double(turned, i % V * ROWS + i / V, get(x, i));
  gp_tensor *dloss = NULL, *view = NULL;
  CHECK_STATUS(gp_tensor_view(one, &repeated, &dloss), GP_OK);
  CHECK_STATUS(gp_tensor_view(turned, &across, &view), GP_OK);
  application dx = gradient_of(f, keep(dloss));
  CHECK(gp_tensor_equal(same_in_pieces(dx).out[0], want));
  dx.in[0] = keep(view);
  CHECK(gp_tensor_equal(same_in_pieces(dx).out[0], want));
  finish();
}

TEST(cross_entropy_ignores_rows_whatever_they_hold) {
  gp_tensor *x = noise(GP_F32, SHAPE(2, V), 1), *id = zeros(GP_I64, SHAPE(2));
  gp_tensor_set_int(id, 1, -100);
  gp_tensor_set_double(x, V, NAN);
  application f = APPLY(cross_entropy, options(true, -100, 0.1), x, id);
  CHECK(get(output(f), 1) == 0 && get(output(f), 0) > 0);
  gp_tensor *dx = output(gradient_of(f, constant(GP_F32, SHAPE(2), 1)));
  for (int64_t j = 0; j < V; j++) CHECK(get(dx, V + j) == 0);
  finish();
}

TEST(cross_entropy_says_which_class_is_outside_and_where) {
  gp_tensor *x = zeros(GP_F32, SHAPE(4, 10)), *id = zeros(GP_I64, SHAPE(4));
  gp_tensor_set_int(id, 2, 12);
  application a = APPLY(cross_entropy, NO_ATTRS, x, id);
  a.step.first_row = 8;
  refuses(a, GP_ERANGE, "class 12 at row 11 is outside 0..9 (ids count from 0)");
  gp_tensor_set_int(id, 2, -100);
  refuses(APPLY(cross_entropy, options(true, -1, 0), x, id), GP_ERANGE,
          "class -100 at row 3 is outside 0..9 (ids count from 0)");
  refuses(APPLY(cross_entropy, options(false, 0, 1.5), x, id), GP_ERANGE,
          "smoothing is 1.5, expected 0 to 1");
  refuses(APPLY(cross_entropy, NO_ATTRS, x, zeros(GP_I64, SHAPE(5))), GP_ESHAPE,
          "ids is 5, expected 4 (logits is 4x10)");
  finish();
}

TEST(cross_entropy_count_counts_what_is_not_ignored) {
  gp_tensor *id = zeros(GP_U8, SHAPE(3, 4));
  gp_tensor_set_int(id, 5, 9);
  CHECK(gp_tensor_get_int(output(APPLY(cross_entropy_count, options(true, 0, 0), id)), 0) == 1);
  CHECK(gp_tensor_get_int(output(APPLY(cross_entropy_count, options(true, 9, 0), id)), 0) == 11);
  CHECK(gp_tensor_get_int(output(APPLY(cross_entropy_count, NO_ATTRS, id)), 0) == 12);
  finish();
}

/* ---- mse, loss_seed ------------------------------------------------------------------------ */

TEST(mse_is_the_sum_of_squares_and_has_its_gradient) {
  gp_tensor *a = noise(GP_F64, SHAPE(70, 9), 1), *b = noise(GP_F64, SHAPE(70, 9), 2);
  gp_tensor *d = constant(GP_F64, SCALAR, 0.7);
  double sum = 0;
  for (int64_t i = 0; i < 630; i++) sum += pow(get(a, i) - get(b, i), 2);
  application f = APPLY(mse, NO_ATTRS, a, b);
  CHECK_NEAR(get(output(f), 0), sum, 1e-11);
  near_in_f32(f, 1e-6);
  application da = APPLY(mse_dx, NO_ATTRS, a, b, d), db = APPLY(mse_dx, NO_ATTRS, b, a, d);
  near_in_f32(da, 1e-6);
  check_gradient(f, 0, d, same_in_pieces(da).out[0]);
  check_gradient(f, 1, d, same_in_pieces(db).out[0]);
  refuses(APPLY(mse, NO_ATTRS, a, zeros(GP_F64, SHAPE(70))), GP_ESHAPE,
          "target is 70, expected 70x9");
  finish();
}

TEST(loss_seed_is_a_constant_or_one_over_the_count_times_the_scale) {
  for (int i = 0; i < 2; i++) {
    application a = {.def = &gp_def_loss_seed,
                     .attr = {.loss_seed = {i ? GP_F64 : GP_F32, false, 3}}};
    a.step.inverse_count = 0.125;
    a.step.scale = 4;
    CHECK(get(output(a), 0) == 12);
    a.attr.loss_seed.counted = true;
    CHECK(get(output(a), 0) == 0.5);
  }
  refuses((application){.def = &gp_def_loss_seed, .attr = {.loss_seed = {GP_I64, false, 0}}},
          GP_EDTYPE, "dtype is i64, expected f32 or f64");
  finish();
}

TEST_MAIN(cross_entropy_is_its_definition, cross_entropy_keeps_its_digits_for_large_logits,
          cross_entropy_dx_is_the_gradient, cross_entropy_dx_reads_strided_operands,
          cross_entropy_ignores_rows_whatever_they_hold,
          cross_entropy_says_which_class_is_outside_and_where,
          cross_entropy_count_counts_what_is_not_ignored,
          mse_is_the_sum_of_squares_and_has_its_gradient,
          loss_seed_is_a_constant_or_one_over_the_count_times_the_scale)
