/* tests/c/ops/reduce_test.c - sums over every set of dims, the largest elements, and their
 * order. */
#include "op_support.h"

/* ---- sums ----------------------------------------------------------------------------------- */

/* Returns where in the reduced value flat position `flat` of the whole one belongs. */
static int64_t reduced_position(const gp_shape *shape, int64_t mask, int64_t flat) {
  int64_t at = 0, step = 1;
  for (int d = shape->rank - 1; d >= 0; d--) {
    int64_t index = flat % shape->dim[d];
    flat /= shape->dim[d];
    if (mask >> d & 1) continue;
    at += index * step;
    step *= shape->dim[d];
  }
  return at;
}

/* Compares with a plain sum in double, and runs in pieces. */
static void check_sum(gp_tensor *x, int64_t mask) {
  const gp_meta *meta = gp_tensor_meta(x);
  gp_attrs attrs = {.sum = {mask}};
  gp_tensor *y = apply(GP_OP_sum, &attrs, x, NULL, NULL);
  double *wanted = calloc(2 * (size_t)gp_tensor_numel(y), sizeof *wanted);
  double *size = wanted + gp_tensor_numel(y); /* sums of absolute values: errors scale with them */
  for (int64_t i = 0; i < gp_tensor_numel(x); i++) {
    int64_t at = reduced_position(&meta->shape, mask ? mask : -1, i);
    wanted[at] += gp_tensor_get_double(x, i);
    size[at] += fabs(gp_tensor_get_double(x, i));
  }
  double tolerance = meta->dtype == GP_F32 ? 3e-7 : meta->dtype == GP_F64 ? 1e-15 : 0;
  for (int64_t i = 0; i < gp_tensor_numel(y); i++)
    CHECK_NEAR(gp_tensor_get_double(y, i), wanted[i], tolerance * size[i]);
  check_cut(GP_OP_sum, &attrs, &x, 1);
  free(wanted);
  gp_tensor_free(y);
}

/* Rank 5 with a dim of size 1 has lines and columns, with one or several reduced dims around
 * them. */
TEST(sums_over_every_set_of_dims_match_the_reference) {
  static const gp_dtype dtypes[] = {GP_F32, GP_F64, GP_I64, GP_I32, GP_U8, GP_BOOL};
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
    for (int64_t mask = 0; mask < 32; mask++) {
      gp_tensor *x = uniform(dtypes[k], SHAPE(3, 5, 1, 4, 7), 0, 9);
      check_sum(x, mask);
      gp_tensor_free(x);
    }
}

/* These have more than one block of lanes, and more columns than are held at a time. */
TEST(long_sums_match_the_reference) {
  const gp_shape shapes[] = {SHAPE(1000, 3), SHAPE(3, 1000), SHAPE(300, 300), SHAPE(7, 129, 65)};
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
    for (int64_t mask = 0; mask < 1 << shapes[k].rank; mask++) {
      gp_tensor *x = uniform(GP_F32, shapes[k], -1, 1);
      check_sum(x, mask);
      gp_tensor_free(x);
    }
}

/* The order is a promise (other devices keep it too), so it is compared with ==. */
TEST(a_sum_along_the_last_dims_has_the_64_lane_order) {
  gp_tensor *x = uniform(GP_F32, SHAPE(300), -1, 1);
  const float *v = gp_tensor_data(x);
  float lane[64] = {0};
  for (int i = 0; i < 300; i++) lane[i % 64] += v[i];
  for (int w = 32; w > 0; w /= 2)
    for (int j = 0; j < w; j++) lane[j] += lane[j + w];
  gp_tensor *y = apply(GP_OP_sum, &no_attrs, x, NULL, NULL);
  CHECK(*(float *)gp_tensor_data(y) == lane[0]);
  gp_tensor_free(x), gp_tensor_free(y);
}

/* Sums everything, in the given dtype; x is freed. */
static void check_scalar_sum(gp_tensor *x, gp_dtype dtype, double wanted) {
  gp_tensor *y = apply(GP_OP_sum, &no_attrs, x, NULL, NULL);
  CHECK(gp_tensor_meta(y)->dtype == dtype && gp_tensor_meta(y)->shape.rank == 0);
  CHECK(gp_tensor_get_double(y, 0) == wanted);
  gp_tensor_free(x), gp_tensor_free(y);
}

/* A double would lose the 1 of 2^53 + 1. */
TEST(sums_of_scalars_empty_values_halves_and_large_integers) {
  const double big[] = {9007199254740993.0, 1, 1};
  check_scalar_sum(uniform(GP_F32, SHAPE(0, 4), 0, 1), GP_F32, 0);
  check_scalar_sum(values(GP_F32, SCALAR, big + 1), GP_F32, 1);
  check_scalar_sum(values(GP_BF16, SHAPE(2), big + 1), GP_BF16, 2);
  check_scalar_sum(values(GP_F16, SHAPE(2), big + 1), GP_F16, 2);
  gp_tensor *x = new_tensor(GP_I64, SHAPE(2));
  gp_tensor_set_int(x, 0, INT64_C(9007199254740993)), gp_tensor_set_int(x, 1, -2);
  gp_tensor *y = apply(GP_OP_sum, &no_attrs, x, NULL, NULL);
  CHECK(gp_tensor_get_int(y, 0) == INT64_C(9007199254740991));
  gp_tensor_free(x), gp_tensor_free(y);
}

/* An empty sum is 0, and a dim that does not exist is refused. */
TEST(an_empty_sum_over_rows_is_a_row_of_zeros) {
  gp_tensor *x = new_tensor(GP_F32, SHAPE(0, 4));
  gp_attrs rows = {.sum = {1, true}};
  gp_tensor *y = apply(GP_OP_sum, &rows, x, NULL, NULL);
  gp_shape wanted = SHAPE(1, 4);
  CHECK(gp_shape_equal(&gp_tensor_meta(y)->shape, &wanted));
  for (int64_t i = 0; i < 4; i++) CHECK(gp_tensor_get_double(y, i) == 0);
  gp_tensor *out[GP_MAX_OUTPUTS];
  CHECK_STATUS(try_op(GP_OP_sum, &(gp_attrs){.sum = {4}}, &x, 1, out), GP_ERANGE);
  CHECK_TEXT(gp_error_text(), "sum: dimension 3 is outside 1 .. 2");
  gp_tensor_free(x), gp_tensor_free(y);
}

/* ---- the gradient of a bias ----------------------------------------------------------------- */

/* Rows are added one after the other, beginning with the value of the slot; compared with ==. */
TEST(row_sums_ascend_and_go_on_from_what_is_there) {
  gp_tensor *dy = uniform(GP_F32, SHAPE(9, 2, 150), -1, 1),
            *slot = uniform(GP_F32, SHAPE(150), -1, 1);
  float wanted[150];
  memcpy(wanted, gp_tensor_data(slot), sizeof wanted);
  for (int row = 0; row < 18; row++)
    for (int j = 0; j < 150; j++) wanted[j] += ((float *)gp_tensor_data(dy))[row * 150 + j];
  static const gp_step_block step;
  gp_call call = {.attr = &no_attrs, .step = &step, .n_in = 1, .n_out = 1, .accumulate = true};
  call.in[0] = (gp_arg){gp_tensor_data(dy), gp_tensor_meta(dy)};
  call.out[0] = (gp_arg){gp_tensor_data(slot), gp_tensor_meta(slot)};
  CHECK_STATUS(run_pieces(&call, &gp_op_get(GP_OP_sum_rows_dw)->cpu, 100), GP_OK);
  CHECK(memcmp(gp_tensor_data(slot), wanted, sizeof wanted) == 0);
  for (gp_dtype t = GP_F32; t <= GP_F64; t++) {
    const gp_shape shapes[] = {SHAPE(20, 70), SHAPE(21, 200)}; /* long spans: blocks of rows */
    for (int i = 0; i < 2; i++) {
      gp_tensor *x = uniform(t, shapes[i], -1, 1);
      check_cut(GP_OP_sum_rows_dw, &no_attrs, &x, 1);
      gp_tensor_free(x);
    }
  }
  gp_tensor_free(dy), gp_tensor_free(slot);
}

/* ---- largest elements ----------------------------------------------------------------------- */

/* Compares max and argmax with a plain search, and runs in pieces. */
static void check_max(gp_tensor *x, int dim, bool keep) {
  const gp_shape *shape = &gp_tensor_meta(x)->shape;
  gp_attrs attrs = {.max = {dim, keep}};
  gp_tensor *out[GP_MAX_OUTPUTS], *at = apply(GP_OP_argmax, &attrs, x, NULL, NULL);
  CHECK_STATUS(try_op(GP_OP_max, &attrs, &x, 1, out), GP_OK);
  CHECK(same_bits(out[1], at));
  CHECK(gp_tensor_meta(at)->shape.rank == shape->rank - (keep ? 0 : 1));
  int64_t inner = 1;
  for (int d = dim + 1; d < shape->rank; d++) inner *= shape->dim[d];
  for (int64_t r = 0; r < gp_tensor_numel(at); r++) {
    int64_t base = r / inner * shape->dim[dim] * inner + r % inner, best = 0;
    for (int64_t i = 1; i < shape->dim[dim]; i++) {
      double a = gp_tensor_get_double(x, base + best * inner);
      double b = gp_tensor_get_double(x, base + i * inner);
      if (b > a || (isnan(b) && !isnan(a))) best = i;
    }
    double wanted = gp_tensor_get_double(x, base + best * inner),
           got = gp_tensor_get_double(out[0], r);
    CHECK(gp_tensor_get_int(at, r) == best + 1);
    CHECK(got == wanted || (isnan(got) && isnan(wanted)));
  }
  check_cut(GP_OP_max, &attrs, &x, 1);
  gp_tensor_free(out[0]), gp_tensor_free(out[1]), gp_tensor_free(at);
}

TEST(the_largest_element_is_the_first_of_equals_in_every_dtype) {
  for (gp_dtype dtype = 0; dtype < GP_DTYPE_COUNT; dtype++)
    for (int dim = 0; dim < 3; dim++) {
      gp_tensor *x = uniform(dtype, SHAPE(4, 9, 70), -4, 5); /* integers have many equal elements */
      check_max(x, dim, dim == 1);
      gp_tensor_free(x);
    }
}

/* Has several NaNs, only infinities, and NaN first and last, along rows and columns. */
TEST(nan_is_the_largest_and_infinities_count) {
  const double rows[4][4] = {{1, NAN, 3, NAN},
                             {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
                             {1, INFINITY, 3, INFINITY},
                             {NAN, 5, 6, 7}};
  for (gp_dtype t = GP_F32; t <= GP_F16; t++) {
    gp_tensor *x = values(t, SHAPE(4, 4), rows[0]);
    check_max(x, 0, false);
    check_max(x, 1, false);
    gp_tensor_free(x);
  }
}

/* Along the empty dim max is an error; along the other one there are no results. */
TEST(an_empty_dim_has_no_largest_element) {
  gp_tensor *x = new_tensor(GP_F32, SHAPE(2, 0)), *out[GP_MAX_OUTPUTS];
  CHECK_STATUS(try_op(GP_OP_max, &(gp_attrs){.max = {1}}, &x, 1, out), GP_ESHAPE);
  CHECK_TEXT(gp_error_text(), "max: dimension 2 is empty");
  gp_tensor *y = apply(GP_OP_argmax, &(gp_attrs){.argmax = {0}}, x, NULL, NULL);
  CHECK(gp_tensor_numel(y) == 0);
  gp_tensor_free(x), gp_tensor_free(y);
}

/* Reads the same positions along the first and along the last dim. */
TEST(the_gradient_of_max_goes_to_one_position) {
  const double dy[] = {5, 6}, at[] = {2, 3};
  const double columns[] = {0, 0, 5, 0, 0, 6}, rows[] = {0, 5, 0, 0, 0, 6};
  gp_tensor *g = values(GP_F32, SHAPE(2), dy), *p = values(GP_I64, SHAPE(2), at);
  gp_tensor *a = apply(GP_OP_max_dx, &(gp_attrs){.max_dx = {0, false, 3}}, g, p, NULL);
  gp_tensor *b = apply(GP_OP_max_dx, &(gp_attrs){.max_dx = {1, false, 3}}, g, p, NULL);
  for (int64_t i = 0; i < 6; i++) CHECK(gp_tensor_get_double(a, i) == columns[i]);
  for (int64_t i = 0; i < 6; i++) CHECK(gp_tensor_get_double(b, i) == rows[i]);
  check_cut(GP_OP_max_dx, &(gp_attrs){.max_dx = {1, false, 3}}, (gp_tensor *const[]){g, p}, 2);
  gp_tensor_free(g), gp_tensor_free(p), gp_tensor_free(a), gp_tensor_free(b);
}

TEST_MAIN(sums_over_every_set_of_dims_match_the_reference, long_sums_match_the_reference,
          a_sum_along_the_last_dims_has_the_64_lane_order,
          sums_of_scalars_empty_values_halves_and_large_integers,
          an_empty_sum_over_rows_is_a_row_of_zeros, row_sums_ascend_and_go_on_from_what_is_there,
          the_largest_element_is_the_first_of_equals_in_every_dtype,
          nan_is_the_largest_and_infinities_count, an_empty_dim_has_no_largest_element,
          the_gradient_of_max_goes_to_one_position)
