/* tests/c/graph/graph_test.c - traces, gradients and cuts as data: where gradients are summed, and
 * what a stage runs. */
#include "graph/param.h"
#include "plan/toy.h"

static int count_ops(const toy *t, gp_op op) {
  int n = 0;
  for (int32_t i = 0; i < toy_graph(t)->node_count; i++) n += toy_node(t, i)->op == op;
  return n;
}

/* The k-th node of this op, from the front. */
static int32_t find_op(const toy *t, gp_op op, int k) {
  for (int32_t i = 0; i < toy_graph(t)->node_count; i++)
    if (toy_node(t, i)->op == op && k-- == 0) return i;
  return -1;
}

static void differentiate(toy *t, gp_ref loss, int layers) {
  gp_gradient_root root = {.value = loss, .layer = layers, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
}

static gp_stages *cut(const toy *t, const int32_t *stage_of, int stages, gp_ref export) {
  gp_cut_spec spec = {.graph = toy_graph(t),
                      .stage_of = stage_of,
                      .stage_count = stages,
                      .exports = &export,
                      .export_count = export != GP_NONE};
  gp_stages *made = NULL;
  CHECK_STATUS(gp_stages_build(&spec, &made), GP_OK);
  return made;
}

/* ---- gradients ----------------------------------------------------------------------------- */

/* v of layer 0 is read once in layer 1, twice in layer 2, once in layer 3. */
TEST(gradients_are_folded_per_layer_then_downwards) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_ref v = t.value;
  toy_layer(&t, 1);
  gp_ref a = toy_op1(&t, GP_OP_exp, v);
  toy_layer(&t, 2);
  gp_ref b = toy_op2(&t, GP_OP_mul, v, a);
  gp_ref c = toy_op2(&t, GP_OP_mul, v, b);
  toy_layer(&t, 3);
  t.value = toy_op2(&t, GP_OP_mul, v, c);
  differentiate(&t, toy_loss(&t, 4), 4);
  /* The gradient of v is what linear_dw of layer 0 reads: add(add(layer 3, layer 2), layer 1). */
  const gp_node *dw = toy_node(&t, find_op(&t, GP_OP_linear_dw, 0));
  const gp_node *outer = toy_node(&t, toy_maker(&t, dw->in[0]));
  CHECK(outer->op == GP_OP_add && outer->layer == 0);
  CHECK(toy_node(&t, toy_maker(&t, outer->in[1]))->layer == 1);
  const gp_node *inner = toy_node(&t, toy_maker(&t, outer->in[0]));
  CHECK(inner->op == GP_OP_add && inner->layer == 0);
  CHECK(toy_node(&t, toy_maker(&t, inner->in[0]))->layer == 3);
  const gp_node *two = toy_node(&t, toy_maker(&t, inner->in[1]));
  CHECK(two->op == GP_OP_add && two->layer == 2); /* summed within layer 2, later readers first */
  toy_free(&t);
}

TEST(a_parameter_has_an_accumulator_per_layer_and_no_add) {
  toy t = toy_new(3);
  gp_param *w = toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false);
  toy_layer(&t, 0);
  toy_linear_of(&t, w, NULL);
  toy_linear_of(&t, w, NULL); /* twice in one layer: one accumulator */
  toy_layer(&t, 1);
  toy_linear_of(&t, w, NULL);
  differentiate(&t, toy_loss(&t, 2), 2);
  CHECK(count_ops(&t, GP_OP_linear_dw) == 3 && count_ops(&t, GP_OP_add) == 0);
  gp_ref slot[3];
  for (int k = 0; k < 3; k++) {
    const gp_node *dw = toy_node(&t, find_op(&t, GP_OP_linear_dw, k));
    CHECK(dw->accumulate);
    slot[k] = gp_graph_base(toy_graph(&t), dw->out);
    CHECK(toy_graph(&t)->values[slot[k]].kind == GP_VALUE_SLOT);
  }
  CHECK(toy_graph(&t)->values[slot[0]].layer == 1);
  CHECK(slot[1] == slot[2] && slot[0] != slot[1]);
  toy_free(&t);
}

/* x + w: the gradient of w is dy itself, which accumulate adds. x w: another op makes it. */
TEST(gradients_that_no_accumulating_op_made_are_added_to_the_slot) {
  toy t = toy_new(3);
  gp_param *w = toy_param(&t, SHAPE(3, TOY_WIDTH), false, false);
  toy_layer(&t, 0);
  t.value = toy_op2(&t, GP_OP_add, t.value, toy_use(&t, w));
  t.value = toy_op2(&t, GP_OP_mul, t.value, toy_use(&t, w));
  differentiate(&t, toy_loss(&t, 1), 1);
  CHECK(count_ops(&t, GP_OP_accumulate) == 2);
  CHECK(toy_node(&t, find_op(&t, GP_OP_accumulate, 0))->in[0] ==
        toy_node(&t, find_op(&t, GP_OP_accumulate, 1))->in[0]);
  toy_free(&t);
}

TEST(only_what_training_needs_is_differentiated) {
  toy t = toy_new(3);
  gp_param *frozen = toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, true);
  toy_layer(&t, 0);
  toy_linear_of(&t, frozen, NULL);
  toy_tanh(&t);
  toy_layer(&t, 1);
  toy_linear(&t);
  toy_layer(&t, 2);
  toy_linear_of(&t, frozen, NULL);
  differentiate(&t, toy_loss(&t, 3), 3);
  CHECK(count_ops(&t, GP_OP_linear_dw) == 1); /* of layer 1 */
  CHECK(count_ops(&t, GP_OP_linear_dx) == 1); /* through layer 2 */
  CHECK(count_ops(&t, GP_OP_tanh_dx) == 0);
  toy_free(&t);
}

TEST(nothing_to_train_gives_no_gradient) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear_of(&t, toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, true), NULL);
  gp_ref loss = toy_loss(&t, 1);
  int32_t nodes = toy_graph(&t)->node_count;
  differentiate(&t, loss, 1);
  CHECK(toy_graph(&t)->node_count == nodes);
  toy_free(&t);
}

TEST(the_seed_belongs_to_the_layer_of_the_loss) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_ref sum = toy_op1(&t, GP_OP_sum, t.value); /* the loss's sum is made in layer 0 */
  differentiate(&t, sum, 2);
  CHECK(toy_node(&t, find_op(&t, GP_OP_loss_seed, 0))->layer == 2);
  toy_free(&t);
}

/* ---- tracing ------------------------------------------------------------------------------- */

TEST(strided_values_are_copied_once_for_other_layers) {
  toy t = toy_new(4);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_attrs turn = {.permute = {{2, {1, 0}}}};
  gp_ref view = toy_apply(&t, GP_OP_permute, &turn, 1, &t.value);
  gp_ref near = toy_op1(&t, GP_OP_exp, view); /* its own layer reads the view as it lies */
  CHECK(count_ops(&t, GP_OP_copy) == 0);
  toy_layer(&t, 1);
  gp_ref far = toy_op1(&t, GP_OP_exp, view);
  toy_layer(&t, 2);
  toy_op2(&t, GP_OP_add, toy_op1(&t, GP_OP_neg, view), toy_op2(&t, GP_OP_add, near, far));
  CHECK(count_ops(&t, GP_OP_copy) == 1);
  CHECK(toy_node(&t, find_op(&t, GP_OP_copy, 0))->layer == 0);
  toy_free(&t);
}

TEST(buffers_are_read_from_copies_and_written_once) {
  toy t = toy_new(3);
  gp_param *buffer = toy_param(&t, SHAPE(TOY_WIDTH), true, false);
  toy_layer(&t, 0);
  gp_ref before = toy_use(&t, buffer);
  CHECK(toy_use(&t, buffer) == before);
  CHECK(toy_node(&t, toy_maker(&t, before))->snapshot);
  gp_ref twice = toy_op2(&t, GP_OP_add, before, before), out;
  int outputs;
  CHECK_STATUS(gp_trace_apply(t.trace, GP_OP_assign, &toy_plain, (gp_ref[]){before, twice}, 2, &out,
                              &outputs),
               GP_OK);
  CHECK(outputs == 1);
  gp_ref after = toy_use(&t, buffer);
  const gp_node *copy = toy_node(&t, toy_maker(&t, after));
  CHECK(after != before && copy->snapshot && copy->layer == 0);
  toy_layer(&t, 1);
  CHECK(toy_use(&t, buffer) == after); /* no later layer touches the buffer itself */
  CHECK_STATUS(gp_trace_apply(t.trace, GP_OP_assign, &toy_plain, (gp_ref[]){twice, after}, 2, &out,
                              &outputs),
               GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "only a Buffer may be written");
  toy_free(&t);
}

/* ---- cuts ---------------------------------------------------------------------------------- */

TEST(a_stage_is_four_programs) {
  gp_ref loss;
  toy t = toy_tower(3, 2, &loss);
  differentiate(&t, loss, 2);
  gp_stages *s = cut(&t, (int32_t[]){0, 1, 1}, 2, loss);
  CHECK_OPS(&t, &s->stages[0].forward, "linear tanh");
  CHECK_OPS(&t, &s->stages[0].recompute, "");    /* tanh stays on the edge until its last use */
  CHECK_OPS(&t, &s->stages[0].input, "tanh_dx"); /* the model's input needs no gradient */
  CHECK_OPS(&t, &s->stages[0].weight, "linear_dw sum_rows_dw");
  CHECK_OPS(&t, &s->stages[1].forward, "linear tanh mse");
  CHECK_OPS(&t, &s->stages[1].recompute, "linear tanh");
  CHECK_OPS(&t, &s->stages[1].input, "loss_seed mse_dx tanh_dx linear_dx");
  CHECK_OPS(&t, &s->stages[1].weight, "linear_dw sum_rows_dw");
  gp_stages_free(s);
  s = cut(&t, (int32_t[]){0, 0, 0}, 1, loss);
  CHECK(s->edge_count == 0);
  CHECK_OPS(&t, &s->stages[0].input, "loss_seed mse_dx tanh_dx linear_dx tanh_dx");
  CHECK_OPS(&t, &s->stages[0].weight, "linear_dw sum_rows_dw linear_dw sum_rows_dw");
  CHECK_OPS(&t, &s->stages[0].recompute, "linear tanh linear tanh");
  gp_stages_free(s);
  toy_free(&t);
}

TEST(values_that_cross_are_edges) {
  gp_ref loss;
  toy t = toy_tower(3, 3, &loss);
  differentiate(&t, loss, 3);
  gp_stages *s = cut(&t, (int32_t[]){0, 1, 2, 2}, 3, loss);
  CHECK(s->edge_count == 4);
  for (int32_t e = 0; e < s->edge_count; e++) {
    const gp_edge *edge = &s->edges[e];
    int way = edge->phase == GP_FORWARD ? 1 : -1;
    CHECK(edge->to_count == 1 && edge->to[0] == edge->from + way);
    CHECK(s->edge_of[edge->value] == e && s->space[edge->value] == edge->from);
    CHECK(toy_node(&t, toy_maker(&t, edge->value))->op == (way > 0 ? GP_OP_tanh : GP_OP_linear_dx));
  }
  gp_stages_free(s);
  toy_free(&t);
}

/* A skip goes straight to each reader, and so does its gradient: each is keyed by the layer that
 * reads the value. */
TEST(a_skip_is_an_edge_of_its_own) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_ref skip = t.value;
  toy_layer(&t, 1);
  toy_linear(&t);
  toy_layer(&t, 2);
  t.value = toy_op2(&t, GP_OP_add, t.value, skip);
  gp_ref loss = toy_loss(&t, 3);
  differentiate(&t, loss, 3);
  gp_stages *s = cut(&t, (int32_t[]){0, 1, 2, 2}, 3, loss);
  const gp_edge *edge = &s->edges[s->edge_of[skip]];
  CHECK(edge->to_count == 2 && edge->to[0] == 1 && edge->to[1] == 2);
  int straight = 0;
  for (int32_t e = 0; e < s->edge_count; e++)
    for (int32_t r = 0; r < s->edges[e].to_count; r++)
      straight +=
          s->edges[e].phase == GP_BACKWARD && s->edges[e].from == 2 && s->edges[e].to[r] == 0;
  CHECK(straight == 1);
  gp_stages_free(s);
  toy_free(&t);
}

TEST(what_nobody_needs_is_not_run) {
  gp_ref loss;
  toy t = toy_tower(3, 1, &loss);
  gp_param *buffer = toy_param(&t, SHAPE(TOY_WIDTH), true, false);
  toy_layer(&t, 0);
  toy_op1(&t, GP_OP_exp, toy_op1(&t, GP_OP_neg, t.value)); /* dead */
  gp_ref now = toy_use(&t, buffer);
  toy_apply(&t, GP_OP_assign, &toy_plain, 2, (gp_ref[]){now, toy_op2(&t, GP_OP_add, now, now)});
  gp_stages *s = cut(&t, (int32_t[]){0, 0}, 1, loss);
  CHECK_OPS(&t, &s->stages[0].forward, "linear tanh mse copy add assign"); /* assign needs add */
  gp_stages_free(s);
  s = cut(&t, (int32_t[]){0, 0}, 1, GP_NONE);
  CHECK_OPS(&t, &s->stages[0].forward, "copy add assign");
  gp_stages_free(s);
  toy_free(&t);
}

/* A stage ends with layer_norm: y is on the edge, and mean and rstd are kept beside it. */
TEST(what_other_stages_read_is_not_made_again) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_param *w = toy_param(&t, SHAPE(TOY_WIDTH), false, false);
  gp_param *b = toy_param(&t, SHAPE(TOY_WIDTH), false, false);
  gp_ref in[3] = {t.value, toy_use(&t, w), toy_use(&t, b)};
  t.value = toy_apply(&t, GP_OP_layer_norm, &(gp_attrs){.layer_norm = {1e-5}}, 3, in);
  toy_layer(&t, 1);
  toy_tanh(&t);
  gp_ref loss = toy_loss(&t, 2);
  differentiate(&t, loss, 2);
  gp_stages *s = cut(&t, (int32_t[]){0, 1, 1}, 2, loss);
  CHECK_OPS(&t, &s->stages[0].forward, "linear layer_norm");
  CHECK_OPS(&t, &s->stages[0].recompute, "linear"); /* its x is read, its y is kept */
  gp_stages_free(s);
  toy_free(&t);
}

/* What is known before any micro-batch is made once. What leaves the stage is made with the
 * rest. */
TEST(what_depends_on_parameters_only_is_prepared) {
  toy t = toy_new(3);
  gp_param *w = toy_param(&t, SHAPE(TOY_WIDTH), false, false);
  toy_layer(&t, 0);
  gp_ref here = toy_op1(&t, GP_OP_exp, toy_use(&t, w));
  gp_ref both = toy_op1(&t, GP_OP_tanh, toy_use(&t, w));
  t.value = toy_op2(&t, GP_OP_mul, toy_op2(&t, GP_OP_mul, t.value, here), both);
  toy_layer(&t, 1);
  t.value = toy_op2(&t, GP_OP_add, t.value, both);
  gp_ref loss = toy_loss(&t, 2);
  differentiate(&t, loss, 2);
  gp_stages *s = cut(&t, (int32_t[]){0, 1, 1}, 2, loss);
  CHECK_OPS(&t, &s->stages[0].prepare, "exp");
  CHECK_OPS(&t, &s->stages[0].forward, "tanh mul mul");
  CHECK_OPS(&t, &s->stages[0].recompute, "mul"); /* x exp(w); exp(w) is still there */
  gp_stages_free(s);
  s = cut(&t, (int32_t[]){0, 0, 0}, 1, loss);
  CHECK_OPS(&t, &s->stages[0].prepare, "exp tanh");
  gp_stages_free(s);
  toy_free(&t);
}

/* Recomputing a buffer's copy would read what was written since. */
TEST(copies_of_buffers_are_kept_not_recomputed) {
  toy t = toy_new(3);
  gp_param *buffer = toy_param(&t, SHAPE(TOY_WIDTH), true, false);
  toy_layer(&t, 0);
  toy_linear(&t);
  t.value = toy_op2(&t, GP_OP_mul, t.value, toy_use(&t, buffer));
  gp_ref loss = toy_loss(&t, 1);
  differentiate(&t, loss, 1);
  gp_stages *s = cut(&t, (int32_t[]){0, 0}, 1, loss);
  CHECK_OPS(&t, &s->stages[0].recompute, "linear mul");
  gp_stages_free(s);
  toy_free(&t);
}

/* ---- memory -------------------------------------------------------------------------------- */

static gp_status build_and_cut(void) {
  gp_trace *trace;
  gp_meta meta;
  gp_ref x, out;
  int outputs;
  gp_stages *stages = NULL;
  GP_TRY(gp_trace_new(true, &trace));
  gp_status status = gp_meta_make(GP_F32, &SHAPE(2, 3), &meta);
  if (!status) status = gp_trace_input(trace, GP_INPUT_BATCH, &meta, &x);
  for (int layer = 0; !status && layer < 3; layer++) {
    gp_trace_set_layer(trace, layer);
    status = gp_trace_apply(trace, GP_OP_exp, &toy_plain, &x, 1, &out, &outputs);
    x = out;
  }
  gp_cut_spec spec = {.graph = &trace->graph,
                      .stage_of = (int32_t[]){0, 1, 2},
                      .stage_count = 3,
                      .exports = &x,
                      .export_count = 1};
  if (!status) status = gp_stages_build(&spec, &stages);
  gp_stages_free(stages);
  gp_trace_free(trace);
  return status;
}

TEST(no_failed_allocation_leaks) {
  size_t live = gp_memory().live;
  int failures = 0;
  for (uint64_t n = 1;; n++, failures++) {
    gp_memory_fail_at(n);
    gp_status status = build_and_cut();
    gp_memory_fail_at(0);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
  }
  CHECK(failures > 10);
}

TEST_MAIN(gradients_are_folded_per_layer_then_downwards,
          a_parameter_has_an_accumulator_per_layer_and_no_add,
          gradients_that_no_accumulating_op_made_are_added_to_the_slot,
          only_what_training_needs_is_differentiated, nothing_to_train_gives_no_gradient,
          the_seed_belongs_to_the_layer_of_the_loss,
          strided_values_are_copied_once_for_other_layers,
          buffers_are_read_from_copies_and_written_once, a_stage_is_four_programs,
          values_that_cross_are_edges, a_skip_is_an_edge_of_its_own, what_nobody_needs_is_not_run,
          what_other_stages_read_is_not_made_again, what_depends_on_parameters_only_is_prepared,
          copies_of_buffers_are_kept_not_recomputed, no_failed_allocation_leaks)
