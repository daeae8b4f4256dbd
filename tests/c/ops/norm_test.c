/* tests/c/ops/norm_test.c - layer_norm, softmax and log_softmax against the formulas in f64. */
#include "kernel.h"

static gp_attrs eps(double e) { return (gp_attrs){.layer_norm = {e}}; }

/* ---- layer_norm ---------------------------------------------------------------------------- */

enum { ROWS = 70, C = 83 }; /* more than one block, and lanes that are not full */

TEST(layer_norm_centres_and_scales_each_row) {
  gp_tensor *x = noise(GP_F64, SHAPE(7, 10, C), 1), *w = noise(GP_F64, SHAPE(C), 2);
  gp_tensor *b = noise(GP_F64, SHAPE(C), 3);
  application a = same_in_pieces(APPLY(layer_norm, eps(1e-5), x, w, b));
  CHECK(gp_shape_equal(&gp_tensor_meta(a.out[1])->shape, &SHAPE(7, 10)));
  for (int64_t r = 0; r < ROWS; r++) {
    double mean = 0, spread = 0;
    for (int64_t j = 0; j < C; j++) mean += get(x, r * C + j) / C;
    for (int64_t j = 0; j < C; j++) spread += pow(get(x, r * C + j) - mean, 2) / C;
    double rstd = 1 / sqrt(spread + 1e-5);
    CHECK_NEAR(get(a.out[1], r), mean, 1e-14);
    CHECK_NEAR(get(a.out[2], r), rstd, 1e-13);
    for (int64_t j = 0; j < C; j++)
      CHECK_NEAR(get(a.out[0], r * C + j),
                 (get(x, r * C + j) - mean) * rstd * get(w, j) + get(b, j), 1e-13);
  }
  near_in_f32(APPLY(layer_norm, eps(1e-5), x, w, b), 2e-6);
  finish();
}

/* Values are far from 0 with a small spread: one pass over x and x^2 would lose all digits. */
TEST(layer_norm_keeps_its_digits_far_from_zero) {
  gp_tensor *x = noise(GP_F32, SHAPE(4, 384), 1);
  for (int64_t i = 0; i < 4 * 384; i++) gp_tensor_set_double(x, i, 4096 + get(x, i));
  gp_tensor *w = constant(GP_F32, SHAPE(384), 1), *b = zeros(GP_F32, SHAPE(384));
  gp_tensor *exact = output(APPLY(layer_norm, eps(1e-5), converted(GP_F64, x), converted(GP_F64, w),
                                  converted(GP_F64, b)));
  CHECK_NEAR(difference(output(APPLY(layer_norm, eps(1e-5), x, w, b)), exact), 0, 1e-3);
  finish();
}

TEST(layer_norm_gradients_are_those_of_the_function) {
  gp_tensor *x = noise(GP_F64, SHAPE(5, 13), 1), *w = noise(GP_F64, SHAPE(13), 2);
  gp_tensor *dy = noise(GP_F64, SHAPE(5, 13), 4);
  application forward = APPLY(layer_norm, eps(1e-3), x, w, noise(GP_F64, SHAPE(13), 3));
  application f = forward;
  CHECK_STATUS(apply(&f), GP_OK);
  gp_tensor *mean = f.out[1], *rstd = f.out[2];
  check_gradient(forward, 0, dy, output(APPLY(layer_norm_dx, eps(1e-3), dy, x, w, mean, rstd)));
  check_gradient(forward, 1, dy, output(APPLY(layer_norm_dw, eps(1e-3), dy, x, mean, rstd)));
  finish();
}

TEST(layer_norm_gradients_have_the_same_bits_in_pieces) {
  gp_tensor *x = noise(GP_F64, SHAPE(ROWS, 3 * C), 1), *w = noise(GP_F64, SHAPE(3 * C), 2);
  gp_tensor *dy = noise(GP_F64, SHAPE(ROWS, 3 * C), 4), *b = zeros(GP_F64, SHAPE(3 * C));
  application f = APPLY(layer_norm, eps(1e-5), x, w, b);
  CHECK_STATUS(apply(&f), GP_OK);
  application dx = APPLY(layer_norm_dx, eps(1e-5), dy, x, w, f.out[1], f.out[2]);
  application dw = APPLY(layer_norm_dw, eps(1e-5), dy, x, f.out[1], f.out[2]);
  near_in_f32(dx, 1e-5);
  near_in_f32(dw, 1e-5);
  same_in_pieces(dx);
  application fresh = same_in_pieces(dw);
  dw.accumulate = true;
  dw.out[0] = constant(GP_F64, SHAPE(3 * C), 2);
  dw = same_in_pieces(dw);
  for (int64_t j = 0; j < 3 * C; j++)
    CHECK_NEAR(get(dw.out[0], j), get(fresh.out[0], j) + 2, 1e-12);
  finish();
}

/* One fused op adds the residual's gradient, the other makes the bias's gradient with the
 * weight's. */
TEST(fused_layer_norm_gradients_have_the_bits_of_the_two_ops) {
  for (gp_dtype d = GP_F32; d <= GP_F64; d++) {
    gp_tensor *x = noise(d, SHAPE(ROWS, 3 * C), 1), *w = noise(d, SHAPE(3 * C), 2);
    gp_tensor *dy = noise(d, SHAPE(ROWS, 3 * C), 4), *around = noise(d, SHAPE(ROWS, 3 * C), 5);
    application f = APPLY(layer_norm, eps(1e-5), x, w, zeros(d, SHAPE(3 * C)));
    CHECK_STATUS(apply(&f), GP_OK);
    gp_tensor *mean = f.out[1], *rstd = f.out[2];
    gp_tensor *dx = output(APPLY(layer_norm_dx, eps(1e-5), dy, x, w, mean, rstd));
    application sum = APPLY(layer_norm_dx, eps(1e-5), dy, x, w, mean, rstd, around);
    CHECK(gp_tensor_equal(same_in_pieces(sum).out[0], output(APPLY(add, NO_ATTRS, around, dx))));
    application both = APPLY(layer_norm_bias_dw, eps(1e-5), dy, x, mean, rstd);
    both = same_in_pieces(both);
    CHECK(gp_tensor_equal(both.out[0], output(APPLY(layer_norm_dw, eps(1e-5), dy, x, mean, rstd))));
    CHECK(gp_tensor_equal(both.out[1], output(APPLY(sum_rows_dw, NO_ATTRS, dy))));
  }
  finish();
}

TEST(layer_norm_names_both_shapes) {
  gp_tensor *x = zeros(GP_F32, SHAPE(2, 8)), *w = zeros(GP_F32, SHAPE(9));
  refuses(APPLY(layer_norm, eps(1e-5), x, w, w), GP_ESHAPE,
          "weight is 9, expected 8 (input is 2x8)");
  refuses(APPLY(layer_norm, eps(1e-5), zeros(GP_F32, SCALAR), w, w), GP_ESHAPE,
          "input is scalar, expected at least 1 dimension");
  refuses(APPLY(layer_norm, eps(1e-5), zeros(GP_I64, SHAPE(2, 9)), w, w), GP_EDTYPE,
          "input is i64, expected f32 or f64");
  finish();
}

/* ---- softmax ------------------------------------------------------------------------------- */

static void check_softmax(const gp_tensor *x, int64_t n) {
  gp_tensor *copy = converted(GP_F64, x);
  application y = same_in_pieces(APPLY(softmax, NO_ATTRS, copy));
  application l = same_in_pieces(APPLY(log_softmax, NO_ATTRS, copy));
  for (int64_t r = 0; r < gp_tensor_numel(x) / n; r++) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += exp(get(x, r * n + j));
    for (int64_t j = 0; j < n; j++) {
      CHECK_NEAR(get(y.out[0], r * n + j), exp(get(x, r * n + j)) / sum, 1e-15);
      CHECK_NEAR(get(l.out[0], r * n + j), get(x, r * n + j) - log(sum), 1e-14);
    }
  }
}

TEST(softmax_is_right_for_any_width) {
  static const int64_t widths[] = {1, 2, 15, 16, 17, 63, 64, 65, 100, 129, 257};
  for (int i = 0; i < 11; i++) {
    gp_tensor *x = noise(GP_F64, SHAPE(67, widths[i]), (uint32_t)i);
    check_softmax(x, widths[i]);
    near_in_f32(APPLY(softmax, NO_ATTRS, x), 1e-6);
    near_in_f32(APPLY(log_softmax, NO_ATTRS, x), 1e-6);
  }
  finish();
}

static void check_infinities(gp_dtype dtype) {
  gp_tensor *x = zeros(dtype, SHAPE(3, 4));
  for (int64_t i = 0; i < 6; i++) gp_tensor_set_double(x, i, -INFINITY);
  gp_tensor_set_double(x, 8, 1e4);
  gp_tensor *y = output(APPLY(softmax, NO_ATTRS, x));
  gp_tensor *l = output(APPLY(log_softmax, NO_ATTRS, x));
  for (int64_t i = 0; i < 4; i++) CHECK(isnan(get(y, i)) && isnan(get(l, i)));
  CHECK(get(y, 4) == 0 && get(y, 5) == 0 && get(y, 6) == 0.5);
  CHECK(get(l, 4) == -INFINITY && fabs(get(l, 7) + log(2)) < 1e-6);
  CHECK(get(y, 8) == 1 && get(y, 9) == 0 && get(l, 9) == -1e4);
  gp_tensor_set_double(x, 10, NAN);
  gp_tensor *spoilt = output(APPLY(softmax, NO_ATTRS, x));
  for (int64_t i = 8; i < 12; i++) CHECK(isnan(get(spoilt, i)));
}

TEST(softmax_of_infinities_is_that_of_pytorch) {
  check_infinities(GP_F32);
  check_infinities(GP_F64);
  finish();
}

TEST(softmax_may_write_over_its_input) {
  gp_tensor *x = noise(GP_F32, SHAPE(5, 77), 1);
  gp_tensor *want = output(APPLY(softmax, NO_ATTRS, x));
  application a = APPLY(softmax, NO_ATTRS, x);
  a.out[0] = x;
  CHECK_STATUS(apply(&a), GP_OK);
  CHECK(gp_tensor_equal(x, want));
  finish();
}

TEST(softmax_gradients_are_those_of_the_function) {
  gp_tensor *x = noise(GP_F64, SHAPE(3, 70), 1), *dy = noise(GP_F64, SHAPE(3, 70), 2);
  application y = APPLY(softmax, NO_ATTRS, x), l = APPLY(log_softmax, NO_ATTRS, x);
  application dx = APPLY(softmax_dx, NO_ATTRS, dy, output(y));
  application dl = APPLY(log_softmax_dx, NO_ATTRS, dy, output(l));
  check_gradient(y, 0, dy, same_in_pieces(dx).out[0]);
  check_gradient(l, 0, dy, same_in_pieces(dl).out[0]);
  near_in_f32(dx, 1e-5);
  near_in_f32(dl, 1e-5);
  finish();
}

TEST_MAIN(layer_norm_centres_and_scales_each_row, layer_norm_keeps_its_digits_far_from_zero,
          layer_norm_gradients_are_those_of_the_function,
          layer_norm_gradients_have_the_same_bits_in_pieces,
          fused_layer_norm_gradients_have_the_bits_of_the_two_ops, layer_norm_names_both_shapes,
          softmax_is_right_for_any_width, softmax_of_infinities_is_that_of_pytorch,
          softmax_may_write_over_its_input, softmax_gradients_are_those_of_the_function)
