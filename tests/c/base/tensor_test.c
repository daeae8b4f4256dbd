/* tests/c/base/tensor_test.c - tensors: views, bounds, ownership, elements, copies, failing
 * allocations. */
#include "base/tensor.h"

#include "base/memory.h"
#include "test.h"

#define SHAPE(...)                                                                                 \
  ((gp_shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                   \
              .dim = {__VA_ARGS__}})

/* Makes a tensor with elements 0, 1, 2, ... */
static gp_tensor *count_up(gp_dtype dtype, gp_shape shape) {
  gp_tensor *tensor = NULL;
  CHECK_STATUS(gp_tensor_new(dtype, &shape, &tensor), GP_OK);
  for (int64_t i = 0; i < gp_tensor_numel(tensor); i++) gp_tensor_set_int(tensor, i, i);
  return tensor;
}

static gp_tensor *view(gp_tensor *base, gp_meta meta) {
  gp_tensor *tensor = NULL;
  CHECK_STATUS(gp_tensor_view(base, &meta, &tensor), GP_OK);
  return tensor;
}

/* Returns a view of the same elements with dimensions a and b exchanged. */
static gp_tensor *transpose(gp_tensor *base, int a, int b) {
  gp_meta meta = *gp_tensor_meta(base);
  int64_t dim = meta.shape.dim[a], stride = meta.stride[a];
  meta.shape.dim[a] = meta.shape.dim[b], meta.stride[a] = meta.stride[b];
  meta.shape.dim[b] = dim, meta.stride[b] = stride;
  return view(base, meta);
}

/* ---- life ---- */

TEST(new_tensors_are_zero_and_contiguous) {
  size_t live = gp_memory().live;
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++) {
    gp_tensor *t = NULL;
    CHECK_STATUS(gp_tensor_new((gp_dtype)dtype, &SHAPE(3, 5), &t), GP_OK);
    CHECK(gp_tensor_numel(t) == 15 && gp_tensor_is_contiguous(t));
    CHECK(gp_tensor_bytes(t) == 15 * gp_dtype_size((gp_dtype)dtype));
    for (int64_t i = 0; i < 15; i++) CHECK(gp_tensor_get_double(t, i) == 0);
    gp_tensor_free(t);
  }
  CHECK(gp_memory().live == live);
}

TEST(sizes_that_make_no_sense_are_errors) {
  gp_tensor *t = NULL;
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(2, -3), &t), GP_ESHAPE);
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(INT64_MAX, INT64_MAX), &t), GP_ESHAPE);
  CHECK_STATUS(gp_tensor_new(GP_F64, &SHAPE(INT64_MAX / 8), &t), GP_ENOMEM);
  CHECK(t == NULL);
  gp_tensor_free(NULL);
}

TEST(storage_lives_as_long_as_its_views) {
  size_t live = gp_memory().live;
  gp_tensor *base = count_up(GP_F32, SHAPE(4, 3));
  gp_tensor *t = transpose(base, 0, 1);
  CHECK(gp_tensor_retain(t) == t);
  CHECK(gp_tensor_overlaps(base, t));
  gp_tensor_free(base);
  gp_tensor_free(t);
  CHECK(gp_tensor_get_int(t, 1) == 3); /* element [0][1] of the transposed view */
  CHECK(gp_tensor_bytes(t) == 48);
  gp_tensor_free(t);
  CHECK(gp_memory().live == live);
}

static void count_release(void *context) { ++*(int *)context; }

TEST(wrapped_memory_is_released_once) {
  float memory[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  gp_meta meta;
  gp_tensor *t = NULL;
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(2, 3), &meta), GP_OK);
  gp_extent whole = {memory, sizeof memory, NULL, count_release, &released};
  gp_extent small = {memory, 20, NULL, count_release, &released};
  gp_extent crooked = {(char *)memory + 1, 24, NULL, count_release, &released};
  CHECK_STATUS(gp_tensor_wrap(&meta, &whole, &t), GP_OK);
  gp_tensor *u = transpose(t, 0, 1);
  gp_tensor_free(t);
  CHECK(released == 0 && gp_tensor_get_double(u, 1) == 3);
  gp_tensor_free(u);
  CHECK(released == 1);
  CHECK_STATUS(gp_tensor_wrap(&meta, &small, &t), GP_ESHAPE);
  CHECK_STATUS(gp_tensor_wrap(&meta, &crooked, &t), GP_EINVAL);
  whole.release = NULL;
  CHECK_STATUS(gp_tensor_wrap(&meta, &whole, &t), GP_OK);
  gp_tensor_free(t);
  CHECK(released == 1);
}

/* ---- bounds ---- */

TEST(views_must_stay_inside) {
  gp_tensor *base = count_up(GP_F32, SHAPE(10)), *t = NULL;
  static const struct {
    gp_shape shape;
    int64_t stride[2], offset;
    gp_status status;
  } cases[] = {
      {{1, {10}}, {1}, 0, GP_OK},
      {{1, {10}}, {1}, 1, GP_ESHAPE},
      {{1, {5}}, {2}, 1, GP_OK},
      {{1, {5}}, {2}, 2, GP_ESHAPE},
      {{1, {10}}, {-1}, 9, GP_OK},
      {{1, {10}}, {-1}, 8, GP_ESHAPE},
      {{1, {1}}, {1}, -1, GP_ESHAPE},
      {{1, {0}}, {1}, 10, GP_OK},
      {{1, {0}}, {1}, 11, GP_ESHAPE},
      {{2, {1000, 2}}, {0, 1}, 8, GP_OK},
      {{2, {1000, 2}}, {0, 1}, 9, GP_ESHAPE},
      {{2, {2, 2}}, {INT64_MAX, 1}, 0, GP_ESHAPE},
      {{2, {3, 3}}, {INT64_MAX, INT64_MAX}, 0, GP_ESHAPE},
      {{2, {3, 3}}, {INT64_MIN, 1}, 5, GP_ESHAPE},
      {{1, {2}}, {INT64_MAX}, INT64_MAX, GP_ESHAPE},
      {{2, {INT64_MAX, 2}}, {0, 0}, 0, GP_ESHAPE},
      {{0, {0}}, {0}, 9, GP_OK},
      {{0, {0}}, {0}, 10, GP_ESHAPE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gp_meta meta = {.dtype = GP_F32, .shape = cases[i].shape, .offset = cases[i].offset};
    memcpy(meta.stride, cases[i].stride, sizeof cases[i].stride);
    gp_status status = gp_tensor_view(base, &meta, &t);
    CHECK_STATUS(status, cases[i].status);
    if (status == GP_OK) gp_tensor_free(t);
  }
  gp_meta wider = {.dtype = GP_F64, .shape = SHAPE(5), .stride = {1}};
  CHECK_STATUS(gp_tensor_view(base, &wider, &t), GP_OK); /* the same bytes in another shape */
  gp_tensor_free(t);
  wider.shape = SHAPE(6);
  CHECK_STATUS(gp_tensor_view(base, &wider, &t), GP_ESHAPE);
  gp_tensor_free(base);
}

/* ---- elements ---- */

TEST(elements_are_read_and_written_through_views) {
  gp_tensor *base = count_up(GP_I64, SHAPE(2, 3));
  gp_tensor *t = transpose(base, 0, 1); /* 3x2 */
  static const int64_t order[] = {0, 3, 1, 4, 2, 5};
  for (int64_t i = 0; i < 6; i++) CHECK(gp_tensor_get_int(t, i) == order[i]);
  gp_tensor_set_int(t, 3, INT64_MIN + 1);
  CHECK(gp_tensor_get_int(base, 4) == INT64_MIN + 1);
  gp_tensor_set_double(t, 3, -7.9);
  CHECK(gp_tensor_get_int(base, 4) == -7);
  gp_tensor_free(t);
  gp_tensor_free(base);
}

TEST(equality_means_every_bit) {
  gp_tensor *a = count_up(GP_F32, SHAPE(3, 4)), *b = count_up(GP_F32, SHAPE(3, 4));
  gp_tensor *c = count_up(GP_F32, SHAPE(4, 3)), *d = count_up(GP_F64, SHAPE(3, 4));
  CHECK(gp_tensor_equal(a, b) && !gp_tensor_equal(a, c) && !gp_tensor_equal(a, d));
  gp_tensor_set_double(b, 0, -0.0);
  CHECK(!gp_tensor_equal(a, b));
  gp_tensor_set_double(b, 0, NAN);
  gp_tensor_set_double(a, 0, NAN);
  CHECK(gp_tensor_equal(a, b));
  gp_tensor *ta = transpose(a, 0, 1), *tb = transpose(b, 0, 1);
  CHECK(gp_tensor_equal(ta, tb));
  gp_tensor_set_double(b, 11, 5);
  CHECK(!gp_tensor_equal(ta, tb));
  gp_tensor *all[] = {ta, tb, a, b, c, d};
  for (size_t i = 0; i < 6; i++) gp_tensor_free(all[i]);
}

/* ---- copies ---- */

static uint32_t random_state = 1;
static int64_t draw(int64_t bound) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int64_t)(random_state >> 8) % bound;
}

/* Makes a view whose strides have a random order, gaps and signs, over storage of its own. */
static gp_tensor *random_view(gp_dtype dtype, const gp_shape *shape, bool may_broadcast) {
  gp_meta meta = {.dtype = dtype, .shape = *shape};
  int order[GP_MAX_RANK];
  for (int i = 0; i < shape->rank; i++) {
    int place = (int)draw(i + 1);
    order[i] = order[place];
    order[place] = i;
  }
  int64_t size = 1;
  for (int i = 0; i < shape->rank; i++) {
    int64_t dim = shape->dim[order[i]], stride = draw(3) ? size : size * 2;
    if (may_broadcast && draw(5) == 0) stride = 0;
    if (draw(4) == 0) {
      meta.offset += (dim > 0 ? dim - 1 : 0) * stride;
      stride = -stride;
    }
    meta.stride[order[i]] = stride;
    if (stride != 0) size = (dim > 0 ? dim : 1) * (stride < 0 ? -stride : stride);
  }
  gp_tensor *base = count_up(dtype, SHAPE(size)), *result = view(base, meta);
  gp_tensor_free(base);
  return result;
}

static void check_copy(gp_dtype to_dtype, gp_dtype from_dtype, const gp_shape *shape) {
  gp_tensor *to = random_view(to_dtype, shape, false), *from = random_view(from_dtype, shape, true);
  CHECK_STATUS(gp_tensor_copy(to, from), GP_OK);
  gp_tensor *one = NULL;
  CHECK_STATUS(gp_tensor_new(to_dtype, &SHAPE(1), &one), GP_OK);
  int wrong = 0;
  for (int64_t i = 0; i < gp_tensor_numel(to); i++) {
    if (gp_dtype_is_float(from_dtype))
      gp_tensor_set_double(one, 0, gp_tensor_get_double(from, i));
    else
      gp_tensor_set_int(one, 0, gp_tensor_get_int(from, i));
    wrong += gp_tensor_get_double(to, i) != gp_tensor_get_double(one, 0);
  }
  CHECK(wrong == 0);
  gp_tensor_free(one);
  gp_tensor_free(to);
  gp_tensor_free(from);
}

TEST(copies_of_any_view_equal_single_elements) {
  for (int round = 0; round < 600; round++) {
    gp_shape shape = {.rank = (int)draw(5)};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = draw(20) == 0 ? 0 : 1 + draw(6);
    check_copy((gp_dtype)draw(GP_DTYPE_COUNT), (gp_dtype)draw(GP_DTYPE_COUNT), &shape);
  }
}

/* Exchange two dimensions and copy into every dtype. */
static void check_transposition(gp_shape shape, gp_dtype dtype, int a, int b) {
  gp_tensor *base = count_up(dtype, shape), *t = transpose(base, a, b), *copy = NULL;
  for (int to = 0; to < GP_DTYPE_COUNT; to++) {
    CHECK_STATUS(gp_tensor_new((gp_dtype)to, &gp_tensor_meta(t)->shape, &copy), GP_OK);
    CHECK_STATUS(gp_tensor_copy(copy, t), GP_OK);
    int wrong = (gp_dtype)to == dtype && !gp_tensor_equal(copy, t);
    gp_tensor *one = NULL;
    CHECK_STATUS(gp_tensor_new((gp_dtype)to, &SHAPE(1), &one), GP_OK);
    for (int64_t i = 0; i < gp_tensor_numel(t); i += 7) {
      gp_tensor_set_double(one, 0, gp_tensor_get_double(t, i));
      if (!gp_dtype_is_float(dtype)) gp_tensor_set_int(one, 0, gp_tensor_get_int(t, i));
      wrong += gp_tensor_get_int(copy, i) != gp_tensor_get_int(one, 0);
    }
    CHECK(wrong == 0);
    gp_tensor_free(one);
    gp_tensor_free(copy);
  }
  gp_tensor_free(t);
  gp_tensor_free(base);
}

TEST(large_transpositions_are_right) {
  for (int dtype = 0; dtype < GP_DTYPE_COUNT; dtype++) {
    check_transposition(SHAPE(65, 131), (gp_dtype)dtype, 0, 1);
    check_transposition(SHAPE(600, 2), (gp_dtype)dtype, 0, 1);
    check_transposition(SHAPE(1, 1000), (gp_dtype)dtype, 0, 1);
    check_transposition(SHAPE(3, 70, 33), (gp_dtype)dtype, 1, 2);
    check_transposition(SHAPE(40, 5, 33), (gp_dtype)dtype, 0, 2);
    check_transposition(SHAPE(2, 40, 3, 33), (gp_dtype)dtype, 1, 3);
  }
}

TEST(overlapping_copies_go_through_a_third_place) {
  gp_tensor *base = count_up(GP_F32, SHAPE(10));
  gp_tensor *low = view(base, (gp_meta){.dtype = GP_F32, .shape = SHAPE(9), .stride = {1}});
  gp_tensor *high =
      view(base, (gp_meta){.dtype = GP_F32, .shape = SHAPE(9), .stride = {1}, .offset = 1});
  CHECK_STATUS(gp_tensor_copy(high, low), GP_OK);
  for (int64_t i = 1; i < 10; i++) CHECK(gp_tensor_get_int(base, i) == i - 1);
  gp_tensor *back =
      view(base, (gp_meta){.dtype = GP_F32, .shape = SHAPE(10), .stride = {-1}, .offset = 9});
  CHECK_STATUS(gp_tensor_copy(base, back), GP_OK);
  CHECK(gp_tensor_get_int(base, 0) == 8 && gp_tensor_get_int(base, 9) == 0);
  gp_tensor *all[] = {low, high, back, base};
  for (size_t i = 0; i < 4; i++) gp_tensor_free(all[i]);
}

TEST(copies_refuse_what_cannot_be) {
  gp_tensor *a = count_up(GP_F32, SHAPE(3, 4)), *b = count_up(GP_F32, SHAPE(4, 3));
  CHECK_STATUS(gp_tensor_copy(a, b), GP_ESHAPE);
  CHECK_TEXT(gp_error_text(), "source is 4x3, expected 3x4");
  gp_tensor *broadcast =
      view(a, (gp_meta){.dtype = GP_F32, .shape = SHAPE(4, 3), .stride = {0, 1}});
  CHECK_STATUS(gp_tensor_copy(broadcast, b), GP_ESHAPE);
  gp_tensor *all[] = {a, b, broadcast};
  for (size_t i = 0; i < 3; i++) gp_tensor_free(all[i]);
}

/* ---- failing allocations ---- */

/* Uses everything here that allocates, in a row. */
static gp_status use_everything(void) {
  gp_tensor *a = NULL, *b = NULL, *v = NULL;
  gp_status status = gp_tensor_new(GP_F32, &SHAPE(4, 4), &a);
  if (status == GP_OK) status = gp_tensor_new(GP_I32, &SHAPE(4, 4), &b);
  if (status == GP_OK) status = gp_tensor_copy(a, b);
  gp_meta meta = {.dtype = GP_F32, .shape = SHAPE(4, 4), .stride = {1, 4}};
  if (status == GP_OK) status = gp_tensor_view(a, &meta, &v);
  if (status == GP_OK) status = gp_tensor_copy(a, v); /* overlapping: a third tensor */
  gp_tensor_free(a);
  gp_tensor_free(b);
  gp_tensor_free(v);
  return status;
}

TEST(no_failing_allocation_loses_memory) {
  size_t live = gp_memory().live;
  uint64_t n = 1;
  for (;; n++) {
    gp_memory_fail_at(n);
    gp_status status = use_everything();
    gp_memory_fail_at(0);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK_STATUS(status, GP_ENOMEM);
  }
  CHECK(n > 9);
}

TEST_MAIN(new_tensors_are_zero_and_contiguous, sizes_that_make_no_sense_are_errors,
          storage_lives_as_long_as_its_views, wrapped_memory_is_released_once,
          views_must_stay_inside, elements_are_read_and_written_through_views,
          equality_means_every_bit, copies_of_any_view_equal_single_elements,
          large_transpositions_are_right, overlapping_copies_go_through_a_third_place,
          copies_refuse_what_cannot_be, no_failing_allocation_loses_memory)
