/* tests/c/graph/precision_test.c - models that compute in halves over f32 parameters, as graphs. */
#include "plan/toy.h"

#define HALF GP_BF16

static gp_ref cast(toy *t, gp_ref ref, gp_dtype dtype) {
  return toy_apply(t, GP_OP_cast, &(gp_attrs){.cast = {dtype}}, 1, &ref);
}

static toy half_new(void) {
  toy t = toy_new(3);
  gp_trace_set_half(t.trace, HALF);
  toy_layer(&t, 0);
  t.value = cast(&t, t.x, HALF);
  return t;
}

/* The loss is f32, and so are the gradients that leave it. */
static gp_ref finish(toy *t, int layers) {
  toy_layer(t, layers);
  gp_trace_set_half(t->trace, GP_F32);
  t->value = cast(t, t->value, GP_F32);
  gp_ref loss = toy_loss(t, layers);
  gp_gradient_root root = {.value = loss, .layer = layers, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
  return loss;
}

static gp_stages *cut(const toy *t, const int32_t *stage_of, int stages, gp_ref loss) {
  gp_cut_spec spec = {.graph = toy_graph(t),
                      .stage_of = stage_of,
                      .stage_count = stages,
                      .exports = &loss,
                      .export_count = 1};
  gp_stages *made = NULL;
  CHECK_STATUS(gp_stages_build(&spec, &made), GP_OK);
  return made;
}

static int count_ops(const toy *t, gp_op op) {
  int n = 0;
  for (int32_t i = 0; i < toy_graph(t)->node_count; i++) n += toy_node(t, i)->op == op;
  return n;
}

TEST(a_parameter_is_cast_once_a_layer_and_once_a_step) {
  toy t = half_new();
  gp_param *w = toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false);
  for (int l = 0; l < 2; l++) {
    toy_layer(&t, l);
    toy_linear_of(&t, w, NULL);
    toy_linear_of(&t, w, NULL);
    CHECK(toy_graph(&t)->values[t.value].meta.dtype == HALF);
  }
  gp_ref loss = finish(&t, 2);
  gp_stages *s = cut(&t, (int32_t[]){0, 1, 1}, 2, loss);
  CHECK_OPS(&t, &s->stages[0].prepare, "cast");
  CHECK_OPS(&t, &s->stages[1].prepare, "cast");
  CHECK_OPS(&t, &s->stages[0].forward, "cast linear linear");
  CHECK_OPS(&t, &s->stages[1].forward, "linear linear cast mse");
  CHECK(s->edge_count == 2);
  for (int32_t e = 0; e < s->edge_count; e++)
    CHECK(toy_graph(&t)->values[s->edges[e].value].meta.dtype == HALF);
  gp_stages_free(s);
  toy_free(&t);
}

TEST(gradients_of_parameters_add_into_f32_with_no_op_between) {
  toy t = half_new();
  toy_linear(&t);
  gp_ref loss = finish(&t, 1);
  gp_stages *s = cut(&t, (int32_t[]){0, 0}, 1, loss);
  CHECK_OPS(&t, &s->stages[0].prepare, "cast cast");
  CHECK_OPS(&t, &s->stages[0].weight, "linear_dw sum_rows_dw");
  CHECK(count_ops(&t, GP_OP_accumulate) == 0 && count_ops(&t, GP_OP_add) == 0);
  for (int32_t i = 0; i < s->stages[0].weight.count; i++) {
    const gp_node *node = toy_node(&t, s->stages[0].weight.nodes[i]);
    const gp_value *base = &toy_graph(&t)->values[gp_graph_base(toy_graph(&t), node->out)];
    CHECK(node->accumulate && base->kind == GP_VALUE_SLOT && base->meta.dtype == GP_F32);
  }
  gp_stages_free(s);
  toy_free(&t);
}

/* A scalar's gradient is a sum, which is made in halves. */
TEST(a_gradient_in_halves_is_cast_before_it_is_added) {
  toy t = half_new();
  gp_param *factor = toy_param(&t, SHAPE(1, 1), false, false);
  t.value = toy_op2(&t, GP_OP_mul, t.value, toy_use(&t, factor));
  gp_ref loss = finish(&t, 1);
  gp_stages *s = cut(&t, (int32_t[]){0, 0}, 1, loss);
  CHECK_OPS(&t, &s->stages[0].weight, "loss_seed mse_dx cast mul sum cast accumulate");
  gp_stages_free(s);
  toy_free(&t);
}

/* A row that is no parameter gets an f32 gradient from sum_rows_dw and a half one from mul. */
TEST(gradients_of_both_kinds_meet_in_f32_and_go_on_in_halves) {
  toy t = half_new();
  gp_ref row = toy_op1(&t, GP_OP_exp, toy_use(&t, toy_param(&t, SHAPE(TOY_WIDTH), false, false)));
  gp_ref twice = toy_op2(&t, GP_OP_mul, row, row);
  gp_ref sum = toy_op2(&t, GP_OP_add, t.value, row);
  t.value = toy_op2(&t, GP_OP_mul, sum, twice);
  finish(&t, 1);
  int adds = 0;
  for (int32_t i = 0; i < toy_graph(&t)->node_count; i++) {
    const gp_node *node = toy_node(&t, i);
    if (node->op != GP_OP_add || node->phase != GP_BACKWARD) continue;
    adds += toy_graph(&t)->values[node->out].meta.dtype == GP_F32;
  }
  CHECK(adds > 0);
  const gp_value *slot = &toy_graph(&t)->values[toy_graph(&t)->value_count - 1];
  CHECK(slot->meta.dtype == GP_F32);
  toy_free(&t);
}

TEST(buffers_and_frozen_parameters_are_no_masters) {
  toy t = half_new();
  gp_ref buffer = toy_use(&t, toy_param(&t, SHAPE(TOY_WIDTH), true, false));
  gp_ref frozen = toy_use(&t, toy_param(&t, SHAPE(TOY_WIDTH), false, true));
  CHECK(gp_trace_meta(t.trace, buffer)->dtype == GP_F32);
  CHECK(gp_trace_meta(t.trace, frozen)->dtype == HALF);
  CHECK(gp_trace_reads(t.trace, t.params[0]) == GP_F32);
  CHECK(gp_trace_reads(t.trace, t.params[1]) == HALF);
  toy_free(&t);
}

TEST(a_gradient_that_is_given_takes_the_loss_scale_where_all_do) {
  for (int scaled = 0; scaled < 2; scaled++) {
    toy t = half_new();
    if (scaled) gp_trace_set_scaled(t.trace);
    toy_linear(&t);
    t.value = cast(&t, t.value, GP_F32); /* as forward does with its result */
    gp_gradient_root root = {.value = t.value, .layer = 1};
    CHECK_STATUS(gp_graph_gradient(&t.trace->graph, &root, 1), GP_OK);
    CHECK(count_ops(&t, GP_OP_loss_seed) == scaled && count_ops(&t, GP_OP_mul) == scaled);
    toy_free(&t);
  }
}

TEST_MAIN(a_parameter_is_cast_once_a_layer_and_once_a_step,
          gradients_of_parameters_add_into_f32_with_no_op_between,
          a_gradient_in_halves_is_cast_before_it_is_added,
          gradients_of_both_kinds_meet_in_f32_and_go_on_in_halves,
          buffers_and_frozen_parameters_are_no_masters,
          a_gradient_that_is_given_takes_the_loss_scale_where_all_do)
