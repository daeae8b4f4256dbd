/* tests/c/base/gather_test.c - batches: rows by position, windows of bytes, bytes joined. */
#include "test.h"

static gp_tensor *vector(gp_dtype dtype, int64_t n, const int64_t *values) {
  gp_shape shape = {.rank = 1, .dim = {n}};
  gp_tensor *tensor = NULL;
  gp_tensor_new(dtype, &shape, &tensor);
  for (int64_t i = 0; i < n; i++) gp_tensor_set_int(tensor, i, values[i]);
  return tensor;
}

TEST(windows_shift_targets_by_one) {
  gp_tensor *bytes = vector(GP_U8, 6, (int64_t[]){10, 11, 12, 13, 14, 250});
  gp_tensor *starts = vector(GP_I64, 2, (int64_t[]){2, 0}), *x = NULL, *y = NULL;
  CHECK_STATUS(gp_data_windows(bytes, 1, starts, 3, &x, &y), GP_OK);
  static const int64_t inputs[] = {12, 13, 14, 10, 11, 12}, targets[] = {13, 14, 250, 11, 12, 13};
  for (int i = 0; i < 6; i++) {
    CHECK(gp_tensor_get_int(x, i) == inputs[i]);
    CHECK(gp_tensor_get_int(y, i) == targets[i]);
  }
  gp_tensor_free(x);
  gp_tensor_free(y);
  CHECK_STATUS(gp_data_windows(bytes, 1, starts, 4, &x, &y), GP_ERANGE);
  CHECK_STATUS(gp_data_windows(bytes, 1, starts, 6, &x, &y), GP_ERANGE);
  CHECK_STATUS(gp_data_windows(starts, 1, starts, 1, &x, &y), GP_ESHAPE);
  CHECK_STATUS(gp_data_windows(bytes, 3, starts, 1, &x, &y), GP_ERANGE);
  gp_tensor_free(bytes);
  gp_tensor_free(starts);
}

TEST(rows_come_in_the_order_asked_for) {
  gp_tensor *data = vector(GP_I32, 6, (int64_t[]){0, 1, 2, 3, 4, 5}), *table = NULL, *rows = NULL;
  gp_meta meta = *gp_tensor_meta(data);
  meta.shape = (gp_shape){.rank = 2, .dim = {3, 2}};
  meta.stride[0] = 2;
  meta.stride[1] = 1;
  CHECK_STATUS(gp_tensor_view(data, &meta, &table), GP_OK);
  gp_tensor *at = vector(GP_I64, 3, (int64_t[]){2, 2, 0});
  CHECK_STATUS(gp_data_rows(table, at, &rows), GP_OK);
  static const int64_t wanted[] = {4, 5, 4, 5, 0, 1};
  for (int i = 0; i < 6; i++) CHECK(gp_tensor_get_int(rows, i) == wanted[i]);
  gp_tensor_free(rows);
  gp_tensor_set_int(at, 1, 3);
  CHECK_STATUS(gp_data_rows(table, at, &rows), GP_ERANGE);
  CHECK_STATUS(gp_data_rows(table, table, &rows), GP_ESHAPE);
  gp_tensor_free(at);
  gp_tensor_free(table);
  gp_tensor_free(data);
}

TEST(parts_are_joined) {
  gp_tensor *parts[] = {vector(GP_U8, 2, (int64_t[]){1, 2}), vector(GP_U8, 0, NULL),
                        vector(GP_U8, 1, (int64_t[]){3})};
  gp_tensor *joined = NULL;
  CHECK_STATUS(gp_data_join(parts, 3, &joined), GP_OK);
  CHECK(gp_tensor_numel(joined) == 3 && !memcmp(gp_tensor_data(joined), "\1\2\3", 3));
  gp_tensor_free(joined);
  for (int i = 0; i < 3; i++) gp_tensor_free(parts[i]);
}

TEST(what_cannot_be_gathered_is_refused) {
  gp_tensor *scalar = NULL, *rows = NULL, *numbers = vector(GP_F32, 2, (int64_t[]){0, 1});
  gp_tensor *at = vector(GP_I64, 1, (int64_t[]){0}), *x = NULL, *y = NULL;
  CHECK_STATUS(gp_tensor_new(GP_F32, &(gp_shape){0}, &scalar), GP_OK);
  CHECK_STATUS(gp_data_rows(scalar, at, &rows), GP_ESHAPE);
  CHECK_STATUS(gp_data_rows(numbers, numbers, &rows), GP_ESHAPE); /* positions that are not i64 */
  CHECK_STATUS(gp_data_windows(numbers, 1, at, 1, &x, &y), GP_ESHAPE);
  CHECK_STATUS(gp_data_join(&numbers, 1, &rows), GP_EDTYPE);
  CHECK(!rows && !x && !y);
  gp_tensor_free(numbers);
  gp_tensor_free(scalar);
  gp_tensor_free(at);
}

TEST(every_failing_allocation_is_reported) {
  gp_tensor *bytes = vector(GP_U8, 3, (int64_t[]){1, 2, 3}),
            *at = vector(GP_I64, 1, (int64_t[]){0});
  size_t live = gp_memory().live;
  for (int what = 0; what < 3; what++) {
    gp_status status = GP_ENOMEM;
    gp_tensor *x = NULL, *y = NULL;
    for (uint64_t n = 1; status == GP_ENOMEM && n < 20; n++) {
      gp_memory_fail_at(n);
      status = what == 0   ? gp_data_rows(bytes, at, &x)
               : what == 1 ? gp_data_windows(bytes, 1, at, 1, &x, &y)
                           : gp_data_join(&bytes, 1, &x);
      gp_memory_fail_at(0);
      if (status) CHECK(gp_memory().live == live);
    }
    CHECK(status == GP_OK && x && (what == 1) == (y != NULL));
    gp_tensor_free(x);
    gp_tensor_free(y);
  }
  gp_tensor_free(bytes);
  gp_tensor_free(at);
}

TEST_MAIN(windows_shift_targets_by_one, rows_come_in_the_order_asked_for, parts_are_joined,
          what_cannot_be_gathered_is_refused, every_failing_allocation_is_reported)
