/* tests/c/ops/shape_test.c - views share memory and show the right elements; copies, casts, concat
 * and pad move them to the right place. */
#include "op_support.h"
#include "ops/shape/reshape.h"

/* Makes 0, 1, 2, .. in the given shape. */
static gp_tensor *counted(gp_dtype dtype, gp_shape shape) {
  gp_tensor *t = new_tensor(dtype, shape);
  for (int64_t i = 0; i < gp_tensor_numel(t); i++) gp_tensor_set_double(t, i, (double)(i % 200));
  return t;
}

/* Frees t. */
static void check_elements(gp_tensor *t, gp_shape shape, const double *wanted) {
  CHECK(gp_shape_equal(&gp_tensor_meta(t)->shape, &shape));
  for (int64_t i = 0; i < gp_tensor_numel(t); i++) CHECK(gp_tensor_get_double(t, i) == wanted[i]);
  gp_tensor_free(t);
}

/* Frees x. */
static void check_refused(gp_op op, gp_attrs attrs, gp_tensor *x, gp_status status,
                          const char *text) {
  gp_tensor *out[GP_MAX_OUTPUTS];
  CHECK_STATUS(try_op(op, &attrs, &x, 1, out), status);
  CHECK_TEXT(gp_error_text(), text);
  gp_tensor_free(x);
}

/* ---- views ---------------------------------------------------------------------------------- */

/* A write to x is seen through a narrow, an expand and a permute of it. */
TEST(views_show_the_memory_of_their_input) {
  gp_tensor *x = counted(GP_F32, SHAPE(3, 4));
  gp_attrs narrow = {.narrow = {1, 1, 2}}, wide = shape_attrs(SHAPE(2, 3, 2));
  gp_tensor *part = apply(GP_OP_narrow, &narrow, x, NULL, NULL);
  CHECK(gp_tensor_overlaps(x, part));
  gp_tensor *repeated = apply(GP_OP_expand, &wide, part, NULL, NULL);
  gp_tensor_set_double(x, 5, 50);
  check_elements(repeated, SHAPE(2, 3, 2),
                 (const double[]){1, 2, 50, 6, 9, 10, 1, 2, 50, 6, 9, 10});
  gp_attrs swap = {.permute = {{2, {1, 0}}}};
  check_elements(apply(GP_OP_permute, &swap, part, NULL, NULL), SHAPE(2, 3),
                 (const double[]){1, 50, 9, 2, 6, 10});
  gp_tensor_free(x), gp_tensor_free(part);
}

/* Rows of a matrix are one run, columns are several: those can be split, but not joined. */
TEST(reshape_views_what_it_can_and_copies_the_rest) {
  gp_tensor *x = counted(GP_F32, SHAPE(4, 6));
  gp_attrs rows = {.narrow = {0, 1, 2}}, columns = {.narrow = {1, 0, 2}};
  gp_tensor *top = apply(GP_OP_narrow, &rows, x, NULL, NULL);
  gp_tensor *left = apply(GP_OP_narrow, &columns, x, NULL, NULL);
  gp_attrs split = shape_attrs(SHAPE(2, 2, -1)), flat = shape_attrs(SHAPE(8));
  gp_attrs halves = shape_attrs(SHAPE(2, 2, 1, 2));
  gp_tensor *a = apply(GP_OP_reshape, &split, top, NULL, NULL);
  CHECK(gp_tensor_overlaps(a, x));
  check_elements(a, SHAPE(2, 2, 3), (const double[]){6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
  gp_tensor *b = apply(GP_OP_reshape, &halves, left, NULL, NULL);
  CHECK(gp_tensor_overlaps(b, x));
  check_elements(b, SHAPE(2, 2, 1, 2), (const double[]){0, 1, 6, 7, 12, 13, 18, 19});
  CHECK(gp_op_needs_copy(GP_OP_reshape, &flat, 0, gp_tensor_meta(left)));
  gp_tensor *c = apply(GP_OP_reshape, &flat, left, NULL, NULL);
  CHECK(!gp_tensor_overlaps(c, x));
  check_elements(c, SHAPE(8), (const double[]){0, 1, 6, 7, 12, 13, 18, 19});
  gp_tensor_free(x), gp_tensor_free(top), gp_tensor_free(left);
}

/* Dims of size 1 constrain no stride, and empty values none at all. */
TEST(reshape_knows_scalars_ones_and_empty_values) {
  gp_tensor *one = counted(GP_F64, SHAPE(1, 1)), *none = counted(GP_F64, SHAPE(0, 3));
  gp_attrs scalar = {0}, empty = shape_attrs(SHAPE(5, 0, 2));
  check_elements(apply(GP_OP_reshape, &scalar, one, NULL, NULL), SCALAR, (const double[]){0});
  check_elements(apply(GP_OP_reshape, &empty, none, NULL, NULL), SHAPE(5, 0, 2), NULL);
  gp_tensor_free(one), gp_tensor_free(none);
}

/* Dims of stride 0 merge with others of stride 0. */
TEST(reshape_of_a_repeated_value_is_a_view_inside_the_repeated_dims) {
  gp_tensor *x = counted(GP_F32, SCALAR);
  gp_attrs wide = shape_attrs(SHAPE(4, 6)), other = shape_attrs(SHAPE(3, 8));
  gp_tensor *repeated = apply(GP_OP_expand, &wide, x, NULL, NULL);
  CHECK(!gp_op_needs_copy(GP_OP_reshape, &other, 0, gp_tensor_meta(repeated)));
  gp_tensor_free(x), gp_tensor_free(repeated);
}

/* Dimensions and positions count from 1 in texts. */
TEST(wrong_shapes_are_refused_with_the_numbers) {
  gp_shape shape = SHAPE(3, 4);
  check_refused(GP_OP_reshape, shape_attrs(SHAPE(5, 2)), new_tensor(GP_F32, shape), GP_ESHAPE,
                "reshape: 3x4 has 12 elements, 5x2 has 10");
  check_refused(GP_OP_reshape, shape_attrs(SHAPE(-1, 5)), new_tensor(GP_F32, shape), GP_ESHAPE,
                "reshape: 12 elements cannot be shared out over 5");
  check_refused(GP_OP_reshape, shape_attrs(SHAPE(-1, -1)), new_tensor(GP_F32, shape), GP_ESHAPE,
                "more than one");
  check_refused(GP_OP_reshape, shape_attrs(SHAPE(-2, -6)), new_tensor(GP_F32, shape), GP_ESHAPE,
                "");
  check_refused(GP_OP_permute, (gp_attrs){.permute = {{2, {0, 0}}}}, new_tensor(GP_F32, shape),
                GP_EINVAL, "permute: dimension 1 is named twice");
  check_refused(GP_OP_permute, (gp_attrs){.permute = {{1, {0}}}}, new_tensor(GP_F32, shape),
                GP_ESHAPE, "1 positions for a value of 2 dimensions");
  check_refused(GP_OP_permute, (gp_attrs){.permute = {{2, {0, 2}}}}, new_tensor(GP_F32, shape),
                GP_ERANGE, "dimension 3 is outside 1 .. 2");
  check_refused(GP_OP_narrow, (gp_attrs){.narrow = {1, 2, 3}}, new_tensor(GP_F32, shape), GP_ERANGE,
                "narrow: 3 elements from 3 leave dimension 2 of size 4");
  check_refused(GP_OP_narrow, (gp_attrs){.narrow = {1, 1, INT64_MAX}}, new_tensor(GP_F32, shape),
                GP_ERANGE, "leave dimension 2");
  check_refused(GP_OP_narrow, (gp_attrs){.narrow = {2, 0, 0}}, new_tensor(GP_F32, shape), GP_ERANGE,
                "narrow: dimension 3 is outside 1 .. 2");
  check_refused(GP_OP_expand, shape_attrs(SHAPE(2, 4)), new_tensor(GP_F32, shape), GP_ESHAPE,
                "expand: shape 3x4 does not broadcast to 2x4");
  check_refused(GP_OP_pad, (gp_attrs){.pad = {0, 2, 4}}, new_tensor(GP_F32, shape), GP_ERANGE,
                "pad: 3 elements behind 2 others do not fit into 4");
  check_refused(GP_OP_cast, (gp_attrs){.cast = {99}}, new_tensor(GP_F32, shape), GP_EDTYPE,
                "dtype is number 99");
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Values have rank 4, transposed, with a dim of size 1: pieces begin and end inside of boxes. */
TEST(copies_of_strided_values_are_contiguous_and_cut_anywhere) {
  for (gp_dtype dtype = 0; dtype < GP_DTYPE_COUNT; dtype++) {
    gp_tensor *x = counted(dtype, SHAPE(5, 1, 7, 3)), *t = reversed(x);
    gp_tensor *y = apply(GP_OP_copy, &no_attrs, t, NULL, NULL);
    CHECK(gp_tensor_is_contiguous(y) && !gp_tensor_overlaps(x, y));
    for (int64_t i = 0; i < 105; i++)
      CHECK(gp_tensor_get_double(y, i) == gp_tensor_get_double(t, i));
    check_cut(GP_OP_copy, &no_attrs, &t, 1);
    gp_tensor_free(x), gp_tensor_free(t), gp_tensor_free(y);
  }
}

/* 0 to 65 are exact in every dtype but bool. */
TEST(casts_convert_between_all_dtypes_and_cut_anywhere) {
  for (gp_dtype from = 0; from < GP_DTYPE_COUNT; from++)
    for (gp_dtype to = 0; to < GP_DTYPE_COUNT; to++) {
      gp_tensor *x = counted(from, SHAPE(6, 11)), *t = reversed(x);
      gp_attrs attrs = {.cast = {to}};
      gp_tensor *y = apply(GP_OP_cast, &attrs, t, NULL, NULL);
      CHECK(gp_tensor_meta(y)->dtype == to);
      for (int64_t i = 0; i < 66; i++) {
        double wanted = gp_tensor_get_double(t, i);
        CHECK(gp_tensor_get_double(y, i) == (to == GP_BOOL ? wanted != 0 : wanted));
      }
      check_cut(GP_OP_cast, &attrs, &t, 1);
      gp_tensor_free(x), gp_tensor_free(t), gp_tensor_free(y);
    }
  gp_tensor *line = counted(GP_F32, SHAPE(2000));
  check_cut(GP_OP_cast, &(gp_attrs){.cast = {GP_F64}}, &line, 1);
  gp_tensor_free(line);
}

/* Joins in the middle dim, with an empty value in between. */
TEST(concat_puts_values_one_behind_the_other) {
  gp_tensor *a = counted(GP_I32, SHAPE(2, 1, 2)), *b = counted(GP_I32, SHAPE(2, 2, 2));
  gp_tensor *none = counted(GP_I32, SHAPE(2, 0, 2));
  gp_attrs middle = {.concat = {1}};
  check_elements(apply(GP_OP_concat, &middle, a, none, b), SHAPE(2, 3, 2),
                 (const double[]){0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 6, 7});
  check_cut(GP_OP_concat, &middle, (gp_tensor *const[]){a, none, b}, 3);
  gp_tensor *out[GP_MAX_OUTPUTS];
  gp_attrs outer = {.concat = {0}}, far = {.concat = {3}};
  CHECK_STATUS(try_op(GP_OP_concat, &outer, (gp_tensor *const[]){a, b}, 2, out), GP_ESHAPE);
  CHECK_TEXT(gp_error_text(), "concat: shapes 2x1x2 and 2x2x2 differ outside dimension 1");
  CHECK_STATUS(try_op(GP_OP_concat, &far, (gp_tensor *const[]){a, b}, 2, out), GP_ERANGE);
  CHECK_STATUS(try_op(GP_OP_concat, &outer, NULL, 0, out), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "concat: got 0 inputs, expected 1 to 8");
  gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(none);
}

/* Pads before and behind, only behind, and around an empty value. */
TEST(pad_puts_zeros_around) {
  gp_tensor *x = counted(GP_F64, SHAPE(2, 2));
  check_elements(apply(GP_OP_pad, &(gp_attrs){.pad = {1, 1, 4}}, x, NULL, NULL), SHAPE(2, 4),
                 (const double[]){0, 0, 1, 0, 0, 2, 3, 0});
  check_elements(apply(GP_OP_pad, &(gp_attrs){.pad = {0, 0, 3}}, x, NULL, NULL), SHAPE(3, 2),
                 (const double[]){0, 1, 2, 3, 0, 0});
  gp_tensor *none = counted(GP_F64, SHAPE(2, 0));
  check_elements(apply(GP_OP_pad, &(gp_attrs){.pad = {1, 0, 2}}, none, NULL, NULL), SHAPE(2, 2),
                 (const double[]){0, 0, 0, 0});
  check_cut(GP_OP_pad, &(gp_attrs){.pad = {1, 1, 4}}, &x, 1);
  gp_tensor_free(x), gp_tensor_free(none);
}

TEST_MAIN(views_show_the_memory_of_their_input, reshape_views_what_it_can_and_copies_the_rest,
          reshape_knows_scalars_ones_and_empty_values,
          reshape_of_a_repeated_value_is_a_view_inside_the_repeated_dims,
          wrong_shapes_are_refused_with_the_numbers,
          copies_of_strided_values_are_contiguous_and_cut_anywhere,
          casts_convert_between_all_dtypes_and_cut_anywhere,
          concat_puts_values_one_behind_the_other, pad_puts_zeros_around)
