/* tests/c/base/shape_test.c - dtypes, shapes and metas. */
#include "base/tensor.h"
#include "test.h"

#define SHAPE(...)                                                                                 \
  ((gp_shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                   \
              .dim = {__VA_ARGS__}})

TEST(dtypes_have_names_and_sizes) {
  static const size_t sizes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  for (int i = 0; i < GP_DTYPE_COUNT; i++) {
    gp_dtype parsed = GP_DTYPE_COUNT;
    CHECK_STATUS(gp_dtype_parse(gp_dtype_name((gp_dtype)i), &parsed), GP_OK);
    CHECK(parsed == (gp_dtype)i);
    CHECK(gp_dtype_size((gp_dtype)i) == sizes[i]);
    CHECK(gp_dtype_is_float((gp_dtype)i) == (i <= GP_F16));
  }
  gp_dtype untouched = GP_U8;
  CHECK_STATUS(gp_dtype_parse("float32", &untouched), GP_EINVAL);
  CHECK(untouched == GP_U8);
  CHECK_TEXT(gp_error_text(), "'float32' is none of f32 f64 bf16 f16 i64 i32 u8 bool");
}

TEST(elements_are_counted_without_overflow) {
  int64_t numel = -1;
  CHECK_STATUS(gp_shape_numel(&(gp_shape){0}, &numel), GP_OK);
  CHECK(numel == 1);
  CHECK_STATUS(gp_shape_numel(&SHAPE(32, 128), &numel), GP_OK);
  CHECK(numel == 4096);
  CHECK_STATUS(gp_shape_numel(&SHAPE(3, 0, 5), &numel), GP_OK);
  CHECK(numel == 0);
  CHECK_STATUS(gp_shape_numel(&SHAPE(INT64_MAX), &numel), GP_OK);
  CHECK(numel == INT64_MAX);
  CHECK_STATUS(gp_shape_numel(&SHAPE(INT64_MAX, 2), &numel), GP_ESHAPE);
  CHECK_STATUS(gp_shape_numel(&SHAPE(0, INT64_MAX, 2), &numel), GP_ESHAPE);
  CHECK_STATUS(gp_shape_numel(&SHAPE(3, -1), &numel), GP_ESHAPE);
  CHECK_TEXT(gp_error_text(), "3x-1");
  CHECK_STATUS(gp_shape_numel(&(gp_shape){.rank = 9}, &numel), GP_ESHAPE);
  CHECK_STATUS(gp_shape_numel(&(gp_shape){.rank = -1}, &numel), GP_ESHAPE);
  CHECK(numel == INT64_MAX);
}

TEST(shapes_compare_and_print) {
  char text[64], tiny[5];
  CHECK(gp_shape_equal(&SHAPE(2, 3), &SHAPE(2, 3)));
  CHECK(!gp_shape_equal(&SHAPE(2, 3), &SHAPE(3, 2)));
  CHECK(!gp_shape_equal(&SHAPE(2), &SHAPE(2, 1)));
  CHECK(strcmp(gp_shape_print(&SHAPE(32, 128), text, sizeof text), "32x128") == 0);
  CHECK(strcmp(gp_shape_print(&(gp_shape){0}, text, sizeof text), "scalar") == 0);
  CHECK(strcmp(gp_shape_print(&SHAPE(32, 128), tiny, sizeof tiny), "32x1") == 0);
}

TEST(metas_are_row_major) {
  gp_meta meta;
  char text[64];
  CHECK_STATUS(gp_meta_make(GP_BF16, &SHAPE(2, 3, 4), &meta), GP_OK);
  CHECK(meta.stride[0] == 12 && meta.stride[1] == 4 && meta.stride[2] == 1 && meta.offset == 0);
  CHECK(gp_meta_numel(&meta) == 24 && gp_meta_rows(&meta) == 6 && gp_meta_width(&meta) == 4);
  CHECK(gp_meta_bytes(&meta) == 48);
  CHECK(strcmp(gp_meta_print(&meta, text, sizeof text), "bf16 2x3x4") == 0);
  CHECK_STATUS(gp_meta_make(GP_F32, &(gp_shape){0}, &meta), GP_OK);
  CHECK(gp_meta_numel(&meta) == 1 && gp_meta_rows(&meta) == 1 && gp_meta_width(&meta) == 1);
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(7), &meta), GP_OK);
  CHECK(gp_meta_rows(&meta) == 1 && gp_meta_width(&meta) == 7);
  CHECK_STATUS(gp_meta_make(GP_F64, &SHAPE(INT64_MAX / 4), &meta), GP_ESHAPE);
  CHECK_STATUS(gp_meta_make((gp_dtype)77, &SHAPE(1), &meta), GP_EDTYPE);
}

TEST(contiguity_ignores_what_does_not_matter) {
  gp_meta meta;
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(2, 1, 4), &meta), GP_OK);
  CHECK(gp_meta_is_contiguous(&meta));
  meta.stride[1] = 99; /* the dimension has size 1 */
  meta.offset = 3;
  CHECK(gp_meta_is_contiguous(&meta));
  meta.stride[0] = 5;
  CHECK(!gp_meta_is_contiguous(&meta));
  meta.shape.dim[2] = 0; /* no element, so no stride matters */
  CHECK(gp_meta_is_contiguous(&meta));
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(2, 2), &meta), GP_OK);
  gp_meta other = meta;
  other.stride[0] = 0;
  CHECK(!gp_meta_is_contiguous(&other));
  CHECK(gp_meta_equal(&meta, &other));
  other.dtype = GP_F64;
  CHECK(!gp_meta_equal(&meta, &other));
}

TEST_MAIN(dtypes_have_names_and_sizes, elements_are_counted_without_overflow,
          shapes_compare_and_print, metas_are_row_major, contiguity_ignores_what_does_not_matter)
