/* tests/c/ops/gradient_test.c - the gradient rules of elementwise, shape and reduction ops in f64
 * against central differences. */
#include "op_gradient.h"

static gp_tensor *draw(gp_shape shape, double low, double high) {
  return uniform(GP_F64, shape, low, high);
}

/* Draws numbers of both signs far from 0, for ops with a kink or a pole there. */
static gp_tensor *draw_off_zero(gp_shape shape) {
  gp_tensor *t = draw(shape, 0.3, 2);
  for (int64_t i = 0; i < gp_tensor_numel(t); i += 2)
    gp_tensor_set_double(t, i, -gp_tensor_get_double(t, i));
  return t;
}

/* Checks an op of one input; the input is freed. */
static void check1(gp_op op, gp_attrs attrs, gp_tensor *x) {
  check_gradient((gradient_case){.op = op, .attrs = attrs, .n_in = 1, .in = {x}});
}

/* Where a function has a kink or a pole, draws stay away from it. */
TEST(unary_ops) {
  static const gp_op positive[] = {GP_OP_log, GP_OP_sqrt, GP_OP_rsqrt};
  static const gp_op any[] = {GP_OP_neg,  GP_OP_exp,  GP_OP_tanh, GP_OP_sigmoid,
                              GP_OP_relu, GP_OP_gelu, GP_OP_silu, GP_OP_copy};
  for (size_t k = 0; k < sizeof positive / sizeof *positive; k++)
    check1(positive[k], no_attrs, draw(SHAPE(2, 5), 0.3, 3));
  for (size_t k = 0; k < sizeof any / sizeof *any; k++)
    check1(any[k], no_attrs, draw_off_zero(SHAPE(2, 5)));
  check1(GP_OP_gelu, (gp_attrs){.gelu = {GP_GELU_TANH}}, draw_off_zero(SHAPE(2, 5)));
}

/* Each broadcast needs its gradient summed back to the shape of the input in another way. */
TEST(binary_ops_in_every_broadcast) {
  static const gp_op ops[] = {GP_OP_add, GP_OP_sub, GP_OP_mul, GP_OP_div, GP_OP_pow};
  const gp_shape pairs[][2] = {
      {SHAPE(2, 3, 4), SHAPE(2, 3, 4)},
      {SHAPE(2, 3, 4), SHAPE(4)},
      {SHAPE(4), SHAPE(2, 3, 4)},
      {SHAPE(2, 3, 4), SCALAR},
      {SHAPE(3, 1), SHAPE(2, 1, 4)},
      {SHAPE(1, 4), SHAPE(2, 3, 1)},
      {SHAPE(2, 3, 4), SHAPE(1, 1, 1)},
      {SHAPE(1), SHAPE(5)},
      {SCALAR, SCALAR},
      {SHAPE(1, 4), SHAPE(4)},
  };
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
      check_gradient((gradient_case){
          .op = ops[k], .n_in = 2, .in = {draw(pairs[p][0], 0.5, 2), draw(pairs[p][1], 0.5, 2)}});
}

/* A rule must not touch the side that needs no gradient. */
TEST(one_side_alone) {
  for (unsigned fixed = 1; fixed <= 2; fixed++)
    for (gp_op op = GP_OP_add; op <= GP_OP_pow; op++)
      check_gradient((gradient_case){.op = op,
                                     .n_in = 2,
                                     .fixed = fixed,
                                     .in = {draw(SHAPE(2, 3), 0.5, 2), draw(SHAPE(3), 0.5, 2)}});
}

/* Dropout draws the same mask for x and for dy. */
TEST(where_and_dropout) {
  gp_tensor *c = new_tensor(GP_BOOL, SHAPE(3, 1));
  gp_tensor_set_int(c, 1, 1);
  check_gradient((gradient_case){
      .op = GP_OP_where, .n_in = 3, .in = {c, draw(SHAPE(3, 4), -1, 1), draw(SHAPE(4), -1, 1)}});
  check1(GP_OP_dropout, (gp_attrs){.random = 3, .dropout = {0.4}}, draw(SHAPE(5, 7), -1, 1));
}

/* Shape ops are views and moves: the gradient is the inverse move. */
TEST(shape_ops) {
  check1(GP_OP_reshape, shape_attrs(SHAPE(6, 4)), draw(SHAPE(2, 3, 4), -1, 1));
  check1(GP_OP_reshape, shape_attrs(SHAPE(-1, 2)), draw(SHAPE(2, 3, 4), -1, 1));
  check1(GP_OP_permute, (gp_attrs){.permute = {{3, {2, 0, 1}}}}, draw(SHAPE(2, 3, 4), -1, 1));
  check1(GP_OP_narrow, (gp_attrs){.narrow = {1, 1, 2}}, draw(SHAPE(2, 4, 3), -1, 1));
  check1(GP_OP_pad, (gp_attrs){.pad = {1, 1, 6}}, draw(SHAPE(2, 4, 3), -1, 1));
  check1(GP_OP_expand, shape_attrs(SHAPE(5, 2, 3, 4)), draw(SHAPE(2, 1, 4), -1, 1));
  check1(GP_OP_expand, shape_attrs(SHAPE(5, 2, 4)), draw(SHAPE(4), -1, 1));
  check1(GP_OP_expand, shape_attrs(SHAPE(5, 2)), draw(SCALAR, -1, 1));
  check1(GP_OP_cast, (gp_attrs){.cast = {GP_F64}}, draw(SHAPE(3, 2), -1, 1));
  check_gradient((gradient_case){.op = GP_OP_concat,
                                 .attrs = {.concat = {1}},
                                 .n_in = 3,
                                 .in = {draw(SHAPE(2, 1, 3), -1, 1), draw(SHAPE(2, 4, 3), -1, 1),
                                        draw(SHAPE(2, 2, 3), -1, 1)}});
}

/* Tests every set of dims, kept or not. */
TEST(reductions) {
  for (int64_t mask = 0; mask < 8; mask++)
    for (int64_t keep = 0; keep <= 1; keep++)
      check1(GP_OP_sum, (gp_attrs){.sum = {mask, keep}}, draw(SHAPE(2, 3, 4), -1, 1));
  for (int64_t dim = 0; dim < 3; dim++)
    for (int64_t keep = 0; keep <= 1; keep++)
      check1(GP_OP_max, (gp_attrs){.max = {dim, keep}}, draw(SHAPE(2, 3, 4), -1, 1));
  check1(GP_OP_sum_rows_dw, no_attrs, draw(SHAPE(2, 3, 4), -1, 1));
}

/* 0 * infinity must not arise: these are the slopes at 0^2, 0^3 and 2^0. */
TEST(powers_of_zero_have_finite_gradients) {
  const double base[] = {0, 0, 2}, exponent[] = {2, 3, 0};
  gp_builder b = {0};
  const gp_ref in[] = {builder_add(&b, values(GP_F64, SHAPE(3), base)),
                       builder_add(&b, values(GP_F64, SHAPE(3), exponent))};
  gp_ref out, din[2] = {GP_NONE, GP_NONE};
  CHECK_STATUS(gp_build(&b, GP_OP_pow, &no_attrs, in, 2, &out), GP_OK);
  const gp_ref dout = builder_add(&b, uniform(GP_F64, SHAPE(3), 1, 1));
  const bool need[] = {true, true};
  gp_vjp v = {&b, &no_attrs, 2, 1, in, &out, &dout, need, din};
  CHECK_STATUS(gp_op_get(GP_OP_pow)->vjp(&v), GP_OK);
  const double da[] = {0, 0, 0}, db[] = {0, 0, log(2)};
  for (int64_t i = 0; i < 3; i++) {
    CHECK_NEAR(gp_tensor_get_double(b.value[din[0]], i), da[i], 1e-15);
    CHECK_NEAR(gp_tensor_get_double(b.value[din[1]], i), db[i], 1e-15);
  }
  builder_free(&b);
}

TEST_MAIN(unary_ops, binary_ops_in_every_broadcast, one_side_alone, where_and_dropout, shape_ops,
          reductions, powers_of_zero_have_finite_gradients)
