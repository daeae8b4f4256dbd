/* tests/c/graph/param_test.c - parameters: what they may be, when their values are drawn, and which
 * pipeline owns them. */
#include "graph/param.h"

#include "base/memory.h"
#include "test.h"

static gp_param_spec spec_of(gp_dtype dtype) {
  return (gp_param_spec){.dtype = dtype,
                         .shape = {.rank = 2, .dim = {3, 4}},
                         .init = {GP_INIT_NORMAL, 0, 1},
                         .seed = 5,
                         .number = 2};
}

TEST(only_floats_of_a_possible_shape_are_parameters) {
  static const gp_dtype wrong[] = {GP_I64, GP_I32, GP_U8, GP_BOOL};
  gp_param *param = NULL;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    gp_param_spec spec = spec_of(wrong[i]);
    CHECK_STATUS(gp_param_new(&spec, &param), GP_EDTYPE);
    CHECK_TEXT(gp_error_text(), gp_dtype_name(wrong[i]));
  }
  gp_param_spec spec = spec_of(GP_F32);
  spec.shape.dim[1] = -4;
  CHECK_STATUS(gp_param_new(&spec, &param), GP_ESHAPE);
  CHECK(param == NULL);
}

/* A model larger than the memory can be declared: values are drawn when they are asked for. */
TEST(declaring_draws_nothing_and_values_stay) {
  gp_param_spec spec = spec_of(GP_F64);
  gp_param *param, *huge;
  gp_tensor *first, *again, *grad;
  CHECK_STATUS(gp_param_new(&spec, &param), GP_OK);
  spec.shape.dim[0] = (int64_t)1 << 40;
  CHECK_STATUS(gp_param_new(&spec, &huge), GP_OK);
  size_t live = gp_memory().live;
  CHECK_STATUS(gp_param_value(huge, &first), GP_ENOMEM);
  CHECK(gp_memory().live == live);
  CHECK_STATUS(gp_param_value(param, &first), GP_OK);
  CHECK_STATUS(gp_param_value(param, &again), GP_OK);
  CHECK(first == again && gp_tensor_get_double(first, 0) != 0);
  gp_param_grad(param, &grad);
  CHECK(grad == NULL);
  gp_tensor_free(again);
  gp_param_free(huge);
  gp_param_free(param); /* whoever holds the value keeps it alive */
  CHECK(gp_tensor_numel(first) == 12);
  gp_tensor_free(first);
}

/* A failure leaves the parameter undrawn; the next attempt draws the same value as always. */
TEST(a_failed_draw_can_be_repeated) {
  gp_param_spec spec = spec_of(GP_F32);
  gp_param *param, *other;
  gp_tensor *value = NULL, *wanted;
  CHECK_STATUS(gp_param_new(&spec, &param), GP_OK);
  CHECK_STATUS(gp_param_new(&spec, &other), GP_OK);
  CHECK_STATUS(gp_param_value(other, &wanted), GP_OK);
  size_t live = gp_memory().live;
  gp_status status = GP_ENOMEM;
  for (uint64_t n = 1; status == GP_ENOMEM && n < 10; n++) {
    gp_memory_fail_at(n);
    status = gp_param_value(param, &value);
    gp_memory_fail_at(0);
    if (status) CHECK(gp_memory().live == live);
  }
  CHECK_STATUS(status, GP_OK);
  CHECK(value && gp_tensor_equal(value, wanted));
  gp_tensor_free(value);
  gp_tensor_free(wanted);
  gp_param_free(param);
  gp_param_free(other);
}

/* A pipeline lays out gradients of the trained parameters, and a model belongs to one pipeline at a
 * time. */
TEST(a_parameter_has_one_owner_who_keeps_it_as_it_is) {
  gp_param_spec spec = spec_of(GP_F32);
  gp_param *param;
  int pipeline, other;
  CHECK_STATUS(gp_param_new(&spec, &param), GP_OK);
  CHECK_STATUS(gp_param_set_frozen(param, true), GP_OK);
  CHECK_STATUS(gp_param_own(param, &pipeline, 3), GP_OK);
  CHECK_STATUS(gp_param_own(param, &other, 1), GP_ESTATE);
  CHECK(gp_param_owner(param) == &pipeline && gp_param_stage(param) == 3);
  CHECK_STATUS(gp_param_own(param, &pipeline, 3), GP_OK);
  CHECK_STATUS(gp_param_set_frozen(param, false), GP_ESTATE);
  CHECK(gp_param_is_frozen(param));
  CHECK_STATUS(gp_param_set_frozen(param, true), GP_OK); /* already frozen */
  CHECK_STATUS(gp_param_own(param, NULL, 0), GP_OK);
  CHECK_STATUS(gp_param_set_frozen(param, false), GP_OK);
  CHECK_STATUS(gp_param_own(param, &other, 1), GP_OK);
  CHECK_STATUS(gp_param_own(param, NULL, 0), GP_OK);
  gp_param_free(param);
}

TEST_MAIN(only_floats_of_a_possible_shape_are_parameters, declaring_draws_nothing_and_values_stay,
          a_failed_draw_can_be_repeated, a_parameter_has_one_owner_who_keeps_it_as_it_is)
