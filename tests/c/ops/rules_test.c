/* tests/c/ops/rules_test.c - the gradient rules of the heavy ops in f64 against central
 * differences.
 * Only the first output of these ops has a gradient (the backward op reads the others), so this
 * file has its own version of the check in op_gradient.h for that output. */
#include "op_gradient.h"

/* Asks the rule for the gradients of the inputs, with the first output weighted by `weight`. */
static gp_status ask(gp_builder *b, const gradient_case *c, const gp_tensor *weight, gp_ref *din) {
  gp_ref in[GP_MAX_INPUTS], out[GP_MAX_OUTPUTS] = {0}, dout[GP_MAX_OUTPUTS];
  bool need[GP_MAX_INPUTS];
  for (int i = 0; i < c->n_in; i++) {
    in[i] = builder_add(b, gp_tensor_retain(c->in[i]));
    need[i] = gp_dtype_is_float(gp_tensor_meta(c->in[i])->dtype) && !(c->fixed >> i & 1);
    din[i] = GP_NONE;
  }
  GP_TRY(gp_build(b, c->op, &c->attrs, in, c->n_in, &out[0]));
  int n_out = b->count - out[0];
  for (int k = 0; k < n_out; k++) out[k] = out[0] + k, dout[k] = GP_NONE;
  if (weight) dout[0] = builder_add(b, gp_tensor_retain((gp_tensor *)weight));
  gp_vjp v = {b, &c->attrs, c->n_in, n_out, in, out, dout, need, din};
  return gp_op_get(c->op)->vjp(&v);
}

/* Returns the shape of the first output. */
static gp_shape shape_of(const gradient_case *c) {
  gp_sig sig = {.attr = &c->attrs, .n_in = c->n_in};
  for (int i = 0; i < c->n_in; i++) sig.in[i] = gp_tensor_meta(c->in[i]);
  CHECK_STATUS(gp_op_infer(c->op, &sig), GP_OK);
  return sig.out[0].shape;
}

static void check_rule(gradient_case c) {
  gp_builder b = {0};
  gp_ref din[GP_MAX_INPUTS];
  gp_tensor *weight[GP_MAX_OUTPUTS] = {uniform(GP_F64, shape_of(&c), 0.5, 1.5)};
  CHECK_STATUS(ask(&b, &c, weight[0], din), GP_OK);
  for (int i = 0; i < c.n_in; i++) {
    bool wanted = gp_dtype_is_float(gp_tensor_meta(c.in[i])->dtype) && !(c.fixed >> i & 1);
    CHECK((din[i] != GP_NONE) == wanted);
    if (din[i] != GP_NONE) check_input(&c, i, weight, b.value[din[i]]);
  }
  builder_free(&b);
  CHECK_STATUS(ask(&b, &c, NULL, din), GP_OK); /* no gradient flows, so none is made */
  for (int i = 0; i < c.n_in; i++) CHECK(din[i] == GP_NONE);
  builder_free(&b);
  gp_tensor_free(weight[0]);
  for (int i = 0; i < c.n_in; i++) gp_tensor_free(c.in[i]);
}

static gp_tensor *draw(gp_shape shape) { return uniform(GP_F64, shape, -1, 1); }

static gp_tensor *draw_ids(gp_shape shape, int64_t count) {
  gp_tensor *t = new_tensor(GP_I64, shape);
  for (int64_t i = 0; i < gp_tensor_numel(t); i++) gp_tensor_set_int(t, i, (3 * i + 1) % count);
  return t;
}

TEST(dense_ops) {
  for (unsigned fixed = 0; fixed < 7; fixed++)
    check_rule((gradient_case){.op = GP_OP_linear,
                               .n_in = 3,
                               .fixed = fixed,
                               .in = {draw(SHAPE(2, 3, 4)), draw(SHAPE(5, 4)), draw(SHAPE(5))}});
  check_rule(
      (gradient_case){.op = GP_OP_linear, .n_in = 2, .in = {draw(SHAPE(4)), draw(SHAPE(5, 4))}});
  check_rule((gradient_case){
      .op = GP_OP_embedding, .n_in = 2, .in = {draw_ids(SHAPE(2, 5), 4), draw(SHAPE(4, 3))}});
}

/* Leading dimensions are equal, repeated on either side, and missing. */
TEST(matmul_in_every_transpose_and_broadcast) {
  static const int64_t stacks[][2][2] = {
      {{2, 3}, {2, 3}}, {{2, 1}, {1, 3}}, {{2, 3}, {1, 1}}, {{1, 1}, {2, 3}}, {{1, 3}, {2, 3}}};
  for (int t = 0; t < 4; t++) {
    bool ta = t & 1, tb = t & 2;
    gp_attrs attrs = {.matmul = {ta, tb}};
    for (int s = 0; s < 5; s++) {
      const int64_t *a = stacks[s][0], *b = stacks[s][1];
      check_rule((gradient_case){.op = GP_OP_matmul,
                                 .attrs = attrs,
                                 .n_in = 2,
                                 .in = {draw(SHAPE(a[0], a[1], ta ? 4 : 2, ta ? 2 : 4)),
                                        draw(SHAPE(b[0], b[1], tb ? 3 : 4, tb ? 4 : 3))}});
    }
    for (int lone = 0; lone < 2; lone++) {
      gp_shape a = ta ? SHAPE(4, 2) : SHAPE(2, 4), b = tb ? SHAPE(3, 4) : SHAPE(4, 3);
      gp_shape as = ta ? SHAPE(5, 4, 2) : SHAPE(5, 2, 4), bs = tb ? SHAPE(5, 3, 4) : SHAPE(5, 4, 3);
      check_rule((gradient_case){.op = GP_OP_matmul,
                                 .attrs = attrs,
                                 .n_in = 2,
                                 .in = {draw(lone ? a : as), draw(lone ? bs : b)}});
    }
  }
}

TEST(normalisations) {
  check_rule((gradient_case){.op = GP_OP_layer_norm,
                             .attrs = {.layer_norm = {1e-3}},
                             .n_in = 3,
                             .in = {draw(SHAPE(2, 3, 6)), draw(SHAPE(6)), draw(SHAPE(6))}});
  check_rule((gradient_case){.op = GP_OP_softmax, .n_in = 1, .in = {draw(SHAPE(3, 5))}});
  check_rule((gradient_case){.op = GP_OP_log_softmax, .n_in = 1, .in = {draw(SHAPE(3, 5))}});
}

TEST(attention) {
  for (int causal = 0; causal < 2; causal++) {
    gp_attrs attrs = {.random = 4, .attention_qkv = {.causal = causal, .dropout = 0.3, .heads = 2}};
    check_rule((gradient_case){
        .op = GP_OP_attention,
        .attrs = attrs,
        .n_in = 3,
        .in = {draw(SHAPE(2, 2, 4, 3)), draw(SHAPE(2, 2, 5, 3)), draw(SHAPE(2, 2, 5, 3))}});
    check_rule((gradient_case){
        .op = GP_OP_attention_qkv, .attrs = attrs, .n_in = 1, .in = {draw(SHAPE(2, 4, 12))}});
    check_rule((gradient_case){.op = GP_OP_attention,
                               .attrs = attrs,
                               .n_in = 4,
                               .fixed = 8,
                               .in = {draw(SHAPE(2, 4, 4, 3)), draw(SHAPE(2, 2, 5, 3)),
                                      draw(SHAPE(2, 2, 5, 3)), draw(SHAPE(2, 1, 4, 5))}});
    attrs.attention_qkv.groups = (gp_maybe){true, 1};
    check_rule((gradient_case){
        .op = GP_OP_attention_qkv, .attrs = attrs, .n_in = 1, .in = {draw(SHAPE(2, 4, 12))}});
  }
}

/* The rule refuses, because otherwise the gradient would be missing silently. */
TEST(masks_have_no_gradient) {
  const gp_ref in[4] = {0, 1, 2, 3}, out[2] = {4, 5}, dout[2] = {6, GP_NONE};
  const bool need[4] = {true, true, true, true};
  gp_ref din[4] = {GP_NONE, GP_NONE, GP_NONE, GP_NONE};
  gp_attrs attrs = {0};
  gp_vjp v = {NULL, &attrs, 4, 2, in, out, dout, need, din};
  CHECK_STATUS(gp_op_get(GP_OP_attention)->vjp(&v), GP_EUNSUPPORTED);
  CHECK_TEXT(gp_error_text(), "no gradient flows into a mask");
}

TEST(losses) {
  gp_attrs attrs = {.cross_entropy = {.ignore = {true, 2}, .smoothing = 0.1}};
  check_rule((gradient_case){.op = GP_OP_cross_entropy,
                             .attrs = attrs,
                             .n_in = 2,
                             .in = {draw(SHAPE(2, 3, 5)), draw_ids(SHAPE(2, 3), 5)}});
  check_rule(
      (gradient_case){.op = GP_OP_mse, .n_in = 2, .in = {draw(SHAPE(3, 4)), draw(SHAPE(3, 4))}});
}

/* A gradient that reaches statistics would be lost, so it is refused. */
TEST(statistics_have_no_gradient) {
  const gp_ref in[3] = {0, 1, 2}, out[3] = {3, 4, 5}, dout[3] = {GP_NONE, 6, GP_NONE};
  const bool need[3] = {true, true, true};
  gp_ref din[3] = {GP_NONE, GP_NONE, GP_NONE};
  gp_attrs attrs = {0};
  gp_vjp v = {NULL, &attrs, 3, 3, in, out, dout, need, din};
  CHECK_STATUS(gp_op_get(GP_OP_layer_norm)->vjp(&v), GP_EUNSUPPORTED);
  CHECK_TEXT(gp_error_text(), "output 2 has no gradient");
}

TEST_MAIN(dense_ops, matmul_in_every_transpose_and_broadcast, normalisations, attention,
          masks_have_no_gradient, losses, statistics_have_no_gradient)
