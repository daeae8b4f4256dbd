/* tests/c/ops/elementwise_test.c - elementwise ops against plain double arithmetic, in every layout
 * that the walk knows, and their special values. */
#include "op_support.h"

#define ROOT_HALF 0.70710678118654752440

/* ---- references ----------------------------------------------------------------------------- */

static double r_add(double a, double b) { return a + b; }
static double r_sub(double a, double b) { return a - b; }
static double r_mul(double a, double b) { return a * b; }
static double r_div(double a, double b) { return a / b; }
static double r_tanh_dx(double dy, double y) { return dy * (1 - y * y); }
static double r_sigmoid_dx(double dy, double y) { return dy * y * (1 - y); }
static double r_relu_dx(double dy, double y) { return y > 0 ? dy : 0; }
static double r_neg(double a, double b) { return (void)b, -a; }
static double r_exp(double a, double b) { return (void)b, exp(a); }
static double r_log(double a, double b) { return (void)b, log(a); }
static double r_sqrt(double a, double b) { return (void)b, sqrt(a); }
static double r_rsqrt(double a, double b) { return (void)b, 1 / sqrt(a); }
static double r_tanh(double a, double b) { return (void)b, tanh(a); }
static double r_sigmoid(double a, double b) { return (void)b, 1 / (1 + exp(-a)); }
static double r_relu(double a, double b) { return (void)b, a > 0 ? a : 0; }
static double r_silu(double a, double b) { return (void)b, a / (1 + exp(-a)); }
static double r_gelu_erf(double a, double b) { return (void)b, a * 0.5 * erfc(-a * ROOT_HALF); }
static double r_gelu_tanh(double a, double b) {
  return (void)b, 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
}
static double r_silu_dx(double dy, double x) {
  double s = 1 / (1 + exp(-x));
  return dy * (s + x * s * (1 - s));
}
static double r_gelu_erf_dx(double dy, double x) {
  return dy * (0.5 * erfc(-x * ROOT_HALF) + x * exp(-x * x / 2) / sqrt(2 * M_PI));
}
static double r_gelu_tanh_dx(double dy, double x) {
  double h = 1e-4; /* the slope is a difference quotient of the reference */
  return dy * (r_gelu_tanh(x + h, 0) - r_gelu_tanh(x - h, 0)) / (2 * h);
}

/* One op, its reference, the range of its inputs, and how far f32 may be off. */
typedef struct op_case {
  gp_op op;
  int n_in;
  int64_t form;
  double (*right)(double, double);
  double low, high, tolerance; /* tolerance: relative plus absolute, for f32 */
} op_case;

/* Arithmetic is exact to rounding; functions have the bounds of vmath.h, scaled by their slope. */
static const op_case cases[] = {
    {GP_OP_add, 2, 0, r_add, -3, 3, 1e-7},
    {GP_OP_sub, 2, 0, r_sub, -3, 3, 1e-7},
    {GP_OP_mul, 2, 0, r_mul, -3, 3, 1e-7},
    {GP_OP_div, 2, 0, r_div, 0.5, 3, 1e-7},
    {GP_OP_pow, 2, 0, pow, 0.1, 3, 2e-7},
    {GP_OP_neg, 1, 0, r_neg, -3, 3, 0},
    {GP_OP_exp, 1, 0, r_exp, -9, 9, 2e-7},
    {GP_OP_log, 1, 0, r_log, 1e-3, 9, 2e-7},
    {GP_OP_sqrt, 1, 0, r_sqrt, 0, 9, 1e-7},
    {GP_OP_rsqrt, 1, 0, r_rsqrt, 1e-3, 9, 2e-7},
    {GP_OP_tanh, 1, 0, r_tanh, -6, 6, 4e-7},
    {GP_OP_tanh_dx, 2, 0, r_tanh_dx, -1, 1, 4e-7},
    {GP_OP_sigmoid, 1, 0, r_sigmoid, -9, 9, 4e-7},
    {GP_OP_sigmoid_dx, 2, 0, r_sigmoid_dx, 0, 1, 4e-7},
    {GP_OP_relu, 1, 0, r_relu, -3, 3, 0},
    {GP_OP_relu_dx, 2, 0, r_relu_dx, -3, 3, 0},
    {GP_OP_gelu, 1, 0, r_gelu_erf, -6, 6, 6e-7},
    {GP_OP_gelu, 1, 1, r_gelu_tanh, -6, 6, 6e-7},
    {GP_OP_gelu_dx, 2, 0, r_gelu_erf_dx, -5, 5, 2e-6},
    {GP_OP_gelu_dx, 2, 1, r_gelu_tanh_dx, -5, 5, 2e-6},
    {GP_OP_silu, 1, 0, r_silu, -9, 9, 6e-7},
    {GP_OP_silu_dx, 2, 0, r_silu_dx, -9, 9, 2e-6},
};

/* Returns the element of a value that lies at flat position `flat` of the broadcast shape. */
static double element(const gp_tensor *t, const gp_shape *shape, int64_t flat) {
  const gp_shape *own = &gp_tensor_meta(t)->shape;
  int64_t at = 0, step = 1;
  for (int back = 1; back <= shape->rank; back++) {
    int64_t index = flat % shape->dim[shape->rank - back];
    flat /= shape->dim[shape->rank - back];
    if (back > own->rank) continue;
    int64_t size = own->dim[own->rank - back];
    at += (size == 1 ? 0 : index) * step;
    step *= size;
  }
  return gp_tensor_get_double(t, at);
}

/* Reports the first wrong element; f64 must be right up to rounding. */
static void check_values(const op_case *c, const gp_tensor *y, gp_tensor *const *in) {
  const gp_meta *meta = gp_tensor_meta(y);
  double tolerance = meta->dtype == GP_F32 ? c->tolerance : c->op == GP_OP_gelu_dx ? 1e-7 : 1e-14;
  for (int64_t i = 0; i < gp_tensor_numel(y); i++) {
    double a = element(in[0], &meta->shape, i);
    double right = c->right(a, c->n_in == 2 ? element(in[1], &meta->shape, i) : 0);
    double got = gp_tensor_get_double(y, i);
    if (fabs(got - right) > tolerance * (1 + fabs(right))) {
      printf("%s(%g): ", gp_op_name(c->op), a);
      CHECK_NEAR(got, right, tolerance * (1 + fabs(right)));
      return;
    }
  }
}

/* Compares values, then bits in pieces. Ops of one input ignore b. */
static void check_case(const op_case *c, gp_tensor *a, gp_tensor *b) {
  gp_tensor *const in[] = {a, b};
  gp_attrs attrs = {.gelu = {(gp_gelu_mode)c->form}};
  gp_tensor *y = apply(c->op, &attrs, a, c->n_in == 2 ? b : NULL, NULL);
  check_values(c, y, in);
  check_cut(c->op, &attrs, in, c->n_in);
  gp_tensor_free(y);
}

/* ---- layouts -------------------------------------------------------------------------------- */

/* 37 is no multiple of a vector, so the scalar remainder is compared too. */
TEST(equal_shapes_match_the_reference) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (gp_dtype dtype = GP_F32; dtype <= GP_F64; dtype++) {
      const op_case *c = &cases[k];
      gp_tensor *a = uniform(dtype, SHAPE(5, 7, 37), c->low, c->high);
      gp_tensor *b = uniform(dtype, SHAPE(5, 7, 37), c->low, c->high);
      check_case(c, a, b);
      gp_tensor *at = reversed(a), *bt = reversed(b); /* strided: innermost step 259 */
      check_case(c, at, bt);
      gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(at), gp_tensor_free(bt);
    }
}

/* Scalars, row vectors, columns, both sides at once, single elements and nothing at all. */
TEST(broadcast_shapes_match_the_reference) {
  const gp_shape pairs[][2] = {
      {SHAPE(4, 6, 19), SCALAR},
      {SCALAR, SHAPE(4, 6, 19)},
      {SHAPE(4, 6, 19), SHAPE(19)},
      {SHAPE(6, 19), SHAPE(4, 6, 19)},
      {SHAPE(4, 6, 19), SHAPE(4, 6, 1)},
      {SHAPE(4, 1, 19), SHAPE(6, 1)},
      {SHAPE(3, 1, 1, 5), SHAPE(2, 4, 1)},
      {SHAPE(1), SHAPE(1, 1)},
      {SCALAR, SCALAR},
      {SHAPE(1000), SHAPE(1)},
      {SHAPE(0, 3), SHAPE(3)},
      {SHAPE(2, 0), SCALAR},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs && k < 5; p++) {
      gp_tensor *a = uniform(GP_F32, pairs[p][0], cases[k].low, cases[k].high);
      gp_tensor *b = uniform(GP_F32, pairs[p][1], cases[k].low, cases[k].high);
      check_case(&cases[k], a, b);
      gp_tensor_free(a), gp_tensor_free(b);
    }
}

/* ---- special values ------------------------------------------------------------------------- */

/* Applies an op of one input to one number. */
static double scalar_result(gp_op op, int64_t form, gp_dtype dtype, double a) {
  gp_attrs attrs = {.gelu = {(gp_gelu_mode)form}};
  gp_tensor *x = values(dtype, SHAPE(1), &a), *y = apply(op, &attrs, x, NULL, NULL);
  double result = gp_tensor_get_double(y, 0);
  gp_tensor_free(x), gp_tensor_free(y);
  return result;
}

/* The results are limits, not NaN: 0 * infinity must not arise inside. */
TEST(unary_ops_are_right_at_special_values) {
  for (gp_dtype t = GP_F32; t <= GP_F64; t++) {
    CHECK(scalar_result(GP_OP_exp, 0, t, -INFINITY) == 0);
    CHECK(scalar_result(GP_OP_exp, 0, t, INFINITY) == INFINITY);
    CHECK(scalar_result(GP_OP_log, 0, t, 0) == -INFINITY);
    CHECK(isnan(scalar_result(GP_OP_log, 0, t, -1)));
    CHECK(scalar_result(GP_OP_tanh, 0, t, -INFINITY) == -1);
    CHECK(scalar_result(GP_OP_sigmoid, 0, t, -INFINITY) == 0);
    CHECK(scalar_result(GP_OP_relu, 0, t, -INFINITY) == 0);
    for (int64_t form = 0; form <= 1; form++) {
      CHECK(scalar_result(GP_OP_gelu, form, t, -INFINITY) == 0);
      CHECK(scalar_result(GP_OP_gelu, form, t, INFINITY) == INFINITY);
    }
    CHECK(scalar_result(GP_OP_silu, 0, t, -INFINITY) == 0);
    CHECK(scalar_result(GP_OP_silu, 0, t, INFINITY) == INFINITY);
  }
}

/* A broken value must stay visible and not be clipped away. */
TEST(nan_goes_through_every_unary_op) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (gp_dtype t = GP_F32; t <= GP_F64 && cases[k].n_in == 1; t++)
      CHECK(isnan(scalar_result(cases[k].op, cases[k].form, t, NAN)));
}

/* Applies a gradient op with dy = 1 at one number. */
static double slope(gp_op op, int64_t form, gp_dtype dtype, double x) {
  gp_attrs attrs = {.gelu = {(gp_gelu_mode)form}};
  const double one = 1;
  gp_tensor *dy = values(dtype, SCALAR, &one), *at = values(dtype, SCALAR, &x);
  gp_tensor *dx = apply(op, &attrs, dy, at, NULL);
  double result = gp_tensor_get_double(dx, 0);
  gp_tensor_free(dy), gp_tensor_free(at), gp_tensor_free(dx);
  return result;
}

/* The slope of gelu and silu is 1 at plus infinity and 0 at minus infinity. */
TEST(slopes_are_finite_at_infinity) {
  for (gp_dtype t = GP_F32; t <= GP_F64; t++) {
    for (int64_t form = 0; form <= 1; form++) {
      CHECK(slope(GP_OP_gelu_dx, form, t, INFINITY) == 1);
      CHECK(slope(GP_OP_gelu_dx, form, t, -INFINITY) == 0);
      CHECK(isnan(slope(GP_OP_gelu_dx, form, t, NAN)));
    }
    CHECK(slope(GP_OP_silu_dx, 0, t, INFINITY) == 1);
    CHECK(slope(GP_OP_silu_dx, 0, t, -INFINITY) == 0);
    CHECK(isnan(slope(GP_OP_silu_dx, 0, t, NAN)));
  }
}

/* One exponent for all elements takes another loop than one exponent each. */
TEST(a_square_has_the_same_bits_whatever_the_exponent_looks_like) {
  const double two = 2;
  gp_tensor *x = uniform(GP_F32, SHAPE(50), -3, 3), *scalar = values(GP_F32, SCALAR, &two);
  gp_attrs attrs = shape_attrs(SHAPE(50));
  gp_tensor *wide = apply(GP_OP_expand, &attrs, scalar, NULL, NULL);
  gp_tensor *full = apply(GP_OP_copy, &no_attrs, wide, NULL, NULL);
  gp_tensor *a = apply(GP_OP_pow, &no_attrs, x, scalar, NULL);
  gp_tensor *b = apply(GP_OP_pow, &no_attrs, x, full, NULL);
  CHECK(same_bits(a, b));
  gp_tensor_free(x), gp_tensor_free(scalar), gp_tensor_free(wide), gp_tensor_free(full);
  gp_tensor_free(a), gp_tensor_free(b);
}

/* ---- comparisons and where ------------------------------------------------------------------ */

static bool compare(gp_op op, double a, double b) {
  switch (op) {
  case GP_OP_eq: return a == b;
  case GP_OP_ne: return a != b;
  case GP_OP_lt: return a < b;
  case GP_OP_le: return a <= b;
  case GP_OP_gt: return a > b;
  default: return a >= b;
  }
}

/* Draws from 0 to 4 make many equal pairs among integers and bools. */
TEST(comparisons_work_on_every_dtype) {
  for (gp_op op = GP_OP_eq; op <= GP_OP_ge; op++)
    for (gp_dtype dtype = 0; dtype < GP_DTYPE_COUNT; dtype++) {
      gp_tensor *a = uniform(dtype, SHAPE(3, 50), 0, 4), *b = uniform(dtype, SHAPE(50), 0, 4);
      gp_tensor *y = apply(op, &no_attrs, a, b, NULL);
      CHECK(gp_tensor_meta(y)->dtype == GP_BOOL);
      for (int64_t i = 0; i < 150; i++)
        CHECK((gp_tensor_get_int(y, i) != 0) ==
              compare(op, gp_tensor_get_double(a, i), gp_tensor_get_double(b, i % 50)));
      check_cut(op, &no_attrs, (gp_tensor *const[]){a, b}, 2);
      gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(y);
    }
}

TEST(comparisons_with_nan_are_false_but_for_ne) {
  const double nan = NAN;
  gp_tensor *x = values(GP_F32, SCALAR, &nan);
  for (gp_op op = GP_OP_eq; op <= GP_OP_ge; op++) {
    gp_tensor *y = apply(op, &no_attrs, x, x, NULL);
    CHECK(gp_tensor_get_int(y, 0) == (op == GP_OP_ne));
    gp_tensor_free(y);
  }
  gp_tensor_free(x);
}

/* Tests each fast layout and the general one; elements have 1, 2, 4 and 8 bytes. */
TEST(where_selects_in_every_dtype_and_layout) {
  const gp_shape shapes[][3] = {
      {SHAPE(6, 33), SHAPE(6, 33), SHAPE(6, 33)}, {SHAPE(6, 33), SHAPE(6, 33), SCALAR},
      {SHAPE(6, 33), SCALAR, SHAPE(6, 33)},       {SHAPE(33), SHAPE(6, 33), SCALAR},
      {SHAPE(6, 1), SHAPE(33), SHAPE(6, 33)},     {SCALAR, SCALAR, SCALAR},
  };
  for (gp_dtype dtype = 0; dtype < GP_DTYPE_COUNT; dtype++)
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      gp_tensor *draw = uniform(GP_F32, shapes[k][0], -1, 1), *zero = new_tensor(GP_F32, SCALAR);
      gp_tensor *c = apply(GP_OP_gt, &no_attrs, draw, zero, NULL);
      gp_tensor *a = uniform(dtype, shapes[k][1], 0, 9), *b = uniform(dtype, shapes[k][2], 0, 9);
      gp_tensor *y = apply(GP_OP_where, &no_attrs, c, a, b);
      const gp_shape *shape = &gp_tensor_meta(y)->shape;
      for (int64_t i = 0; i < gp_tensor_numel(y); i++)
        CHECK(gp_tensor_get_double(y, i) == element(element(c, shape, i) != 0 ? a : b, shape, i));
      check_cut(GP_OP_where, &no_attrs, (gp_tensor *const[]){c, a, b}, 3);
      gp_tensor_free(draw), gp_tensor_free(zero), gp_tensor_free(c);
      gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(y);
    }
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* Frees the inputs. */
static void check_refused(gp_op op, gp_tensor *a, gp_tensor *b, gp_status status,
                          const char *text) {
  gp_tensor *out[GP_MAX_OUTPUTS];
  CHECK_STATUS(try_op(op, &no_attrs, (gp_tensor *const[]){a, b}, b ? 2 : 1, out), status);
  CHECK_TEXT(gp_error_text(), text);
  gp_tensor_free(a), gp_tensor_free(b);
}

TEST(wrong_inputs_are_refused_with_the_numbers) {
  check_refused(GP_OP_add, new_tensor(GP_F32, SHAPE(32, 10)), new_tensor(GP_F32, SHAPE(32, 11)),
                GP_ESHAPE, "add: shapes 32x10 and 32x11 do not broadcast");
  check_refused(GP_OP_add, new_tensor(GP_F32, SHAPE(2)), new_tensor(GP_I64, SHAPE(2)), GP_EDTYPE,
                "add: f32 and i64 differ; convert one with :to(\"f32\")");
  check_refused(GP_OP_mul, new_tensor(GP_I64, SHAPE(2)), new_tensor(GP_F64, SHAPE(2)), GP_EDTYPE,
                "mul: i64 and f64 differ; convert one with :to(\"f64\")");
  check_refused(GP_OP_exp, new_tensor(GP_I32, SHAPE(2)), NULL, GP_EDTYPE, "exp: input is i32");
  check_refused(GP_OP_add, new_tensor(GP_F32, SHAPE(2)), NULL, GP_EINVAL,
                "add: got 1 inputs, expected 2");
  check_refused(GP_OP_tanh_dx, new_tensor(GP_F32, SHAPE(2)), new_tensor(GP_F32, SHAPE(3)),
                GP_ESHAPE, "tanh_dx: shapes 2 and 3 differ");
}

TEST_MAIN(equal_shapes_match_the_reference, broadcast_shapes_match_the_reference,
          unary_ops_are_right_at_special_values, nan_goes_through_every_unary_op,
          slopes_are_finite_at_infinity,
          a_square_has_the_same_bits_whatever_the_exponent_looks_like,
          comparisons_work_on_every_dtype, comparisons_with_nan_are_false_but_for_ne,
          where_selects_in_every_dtype_and_layout, wrong_inputs_are_refused_with_the_numbers)
