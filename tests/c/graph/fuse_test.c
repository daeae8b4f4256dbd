/* tests/c/graph/fuse_test.c - which neighbours become one op, and which must not. */
#include "graph/param.h"
#include "plan/toy.h"

static const gp_attrs by_tanh = {.gelu = {GP_GELU_TANH}};

/* ---- looking at a graph -------------------------------------------------------------------- */

/* Returns the names of the ops of a pass in the order of the list, separated by blanks. */
static const char *ops_of(const toy *t, gp_phase phase) {
  static char text[1024];
  size_t used = 0;
  text[0] = 0;
  for (int32_t n = 0; n < toy_graph(t)->node_count && used < 960; n++) {
    const gp_node *node = toy_node(t, n);
    if (node->phase != phase || gp_op_get(node->op)->flags & GP_OP_VIEW) continue;
    used += (size_t)snprintf(text + used, sizeof text - used, used ? " %s" : "%s",
                             gp_op_name(node->op));
  }
  return text;
}

#define CHECK_PASS(t, phase, wanted)                                                               \
  do {                                                                                             \
    if (strcmp(ops_of(t, phase), wanted))                                                          \
      printf("ops: '%s', not '%s'\n", ops_of(t, phase), wanted);                                   \
    CHECK(!strcmp(ops_of(t, phase), wanted));                                                      \
  } while (0)

/* Checks that each node is the maker of its outputs, has the outputs that its op infers, and reads
 * only values made before. */
static void check_graph(const toy *t) {
  const gp_graph *g = toy_graph(t);
  for (int32_t n = 0; n < g->node_count; n++) {
    const gp_node *node = toy_node(t, n);
    gp_sig sig = {.attr = &node->attr, .n_in = node->n_in};
    for (int i = 0; i < node->n_in; i++) {
      CHECK(g->values[node->in[i]].node < n);
      sig.in[i] = &g->values[node->in[i]].meta;
    }
    CHECK_STATUS(gp_op_infer(node->op, &sig), GP_OK);
    CHECK(sig.n_out == node->n_out);
    for (int k = 0; k < node->n_out; k++) {
      const gp_value *value = &g->values[node->out + k];
      CHECK(value->node == n && value->output == k && value->layer == node->layer);
      CHECK(gp_meta_equal(&value->meta, &sig.out[k]));
    }
  }
}

/* ---- making one ---------------------------------------------------------------------------- */

static gp_ref gelu(toy *t) { return t->value = toy_apply(t, GP_OP_gelu, &by_tanh, 1, &t->value); }

static void layer_norm(toy *t) {
  gp_param *w = toy_param(t, SHAPE(TOY_WIDTH), false, false);
  gp_param *b = toy_param(t, SHAPE(TOY_WIDTH), false, false);
  gp_ref in[3] = {t->value, toy_use(t, w), toy_use(t, b)};
  t->value = toy_apply(t, GP_OP_layer_norm, &(gp_attrs){.layer_norm = {1e-5}}, 3, in);
}

static void add_of(toy *t, gp_ref around) { t->value = toy_op2(t, GP_OP_add, around, t->value); }

/* The whole model is layer 0; layer 1 has the loss. */
static void differentiate(toy *t) {
  gp_gradient_root root = {.value = toy_loss(t, 1), .layer = 1, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
}

static void fuse(toy *t) {
  CHECK_STATUS(gp_graph_fuse(&t->trace->graph, false), GP_OK);
  check_graph(t);
}

/* ---- what becomes one ---------------------------------------------------------------------- */

TEST(a_block_of_a_transformer_becomes_fewer_ops) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t); /* so that a gradient flows into the block */
  gp_ref around = t.value;
  layer_norm(&t);
  toy_linear(&t);
  gelu(&t);
  toy_linear(&t);
  add_of(&t, around);
  differentiate(&t);
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear layer_norm linear_gelu linear_add mse");
  CHECK_PASS(&t, GP_BACKWARD,
             "loss_seed mse_dx linear_bias_dw linear_gelu_dx linear_dx linear_bias_dw "
             "layer_norm_bias_dw layer_norm_dx linear_bias_dw");
  toy_free(&t);
}

/* The fused addend moves the gradient of the input behind that of the parameters, and it reads
 * their sums. */
TEST(gradients_of_a_norm_read_its_rows_once_where_sums_go_by_parts) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_ref around = t.value;
  layer_norm(&t);
  add_of(&t, around);
  layer_norm(&t);
  differentiate(&t);
  fuse(&t);
  CHECK_PASS(&t, GP_BACKWARD,
             "loss_seed mse_dx layer_norm_dx layer_norm_bias_dw layer_norm_bias_dw layer_norm_dx "
             "linear_bias_dw");
  CHECK_STATUS(gp_graph_split_norms(&t.trace->graph), GP_OK);
  CHECK_PASS(&t, GP_BACKWARD,
             "loss_seed mse_dx layer_norm_parts_dx layer_norm_parts_dw layer_norm_parts_dx "
             "layer_norm_parts_dw linear_bias_dw");
  const gp_graph *graph = toy_graph(&t);
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    for (int i = 0; i < node->n_in; i++) CHECK(graph->values[node->in[i]].node < n);
    for (int k = 0; k < node->n_out; k++) CHECK(graph->values[node->out + k].node == n);
  }
  toy_free(&t);
}

/* The gradient reads the value before GELU, the next layer reads the value after it. */
TEST(readers_find_both_values_of_a_linear_with_gelu) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gelu(&t);
  toy_linear(&t);
  differentiate(&t);
  fuse(&t);
  const gp_node *both = toy_node(&t, 0), *next = toy_node(&t, 1);
  CHECK(both->op == GP_OP_linear_gelu && both->n_in == 3 && next->op == GP_OP_linear);
  CHECK(next->in[0] == both->out);
  for (int32_t n = 2; n < toy_graph(&t)->node_count; n++)
    if (toy_node(&t, n)->op == GP_OP_linear_gelu_dx) CHECK(toy_node(&t, n)->in[2] == both->out + 1);
  toy_free(&t);
}

TEST(sums_go_to_the_accumulators_that_they_went_to) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  differentiate(&t);
  fuse(&t);
  const gp_graph *g = toy_graph(&t);
  const gp_node *dw = toy_node(&t, g->node_count - 1);
  CHECK(dw->op == GP_OP_linear_bias_dw && dw->accumulate);
  for (int k = 0; k < 2; k++) {
    const gp_value *slot = &g->values[gp_graph_base(g, dw->out + k)];
    CHECK(slot->kind == GP_VALUE_SLOT && g->params[slot->index] == t.params[k]);
  }
  toy_free(&t);
}

TEST(an_addend_stands_before_the_bias) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  gp_ref around = t.value;
  toy_linear(&t);
  gp_ref x = toy_node(&t, 0)->in[0], w = toy_node(&t, 0)->in[1], b = toy_node(&t, 0)->in[2];
  add_of(&t, around);
  fuse(&t);
  const gp_node *node = toy_node(&t, 0);
  CHECK(node->op == GP_OP_linear_add && node->n_in == 4 && node->out == t.value);
  CHECK(node->in[0] == x && node->in[1] == w && node->in[2] == around && node->in[3] == b);
  toy_free(&t);
}

TEST(a_linear_without_a_bias_takes_an_addend_too) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  gp_ref around = t.value;
  toy_linear_of(&t, toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false), NULL);
  t.value = toy_op2(&t, GP_OP_add, t.value, around); /* the other way round */
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear_add");
  CHECK(toy_node(&t, 0)->n_in == 3 && toy_node(&t, 0)->in[2] == around);
  toy_free(&t);
}

/* What is packed for a linear serves the op into which it was fused. */
TEST(fused_linears_read_packed_weights) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gelu(&t);
  gp_ref around = t.value;
  toy_linear(&t);
  add_of(&t, around);
  fuse(&t);
  CHECK_STATUS(gp_graph_pack(&t.trace->graph), GP_OK);
  check_graph(&t);
  CHECK_PASS(&t, GP_FORWARD, "pack_linear pack_linear linear_gelu linear_add");
  for (int32_t n = 2; n < 4; n++) {
    CHECK(toy_node(&t, n)->attr.linear.packed > 0);
    CHECK(toy_node(&t, toy_maker(&t, toy_node(&t, n)->in[1]))->op == GP_OP_pack_linear);
  }
  toy_free(&t);
}

/* For all ops but its readers a packed value is only bytes. */
TEST(packed_values_are_refused_where_nobody_knows_them) {
  toy t = toy_new(3);
  gp_ref packed, other;
  toy_layer(&t, 0);
  gp_ref w = toy_use(&t, toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false));
  gp_attrs none = {.random = 0}, turn = {.permute = {{1, {0}}}};
  CHECK_STATUS(gp_build(&t.trace->at, GP_OP_pack_linear, &none, &w, 1, &packed), GP_OK);
  CHECK(gp_meta_bytes(&toy_graph(&t)->values[packed].meta) == sizeof(float[TOY_WIDTH][TOY_WIDTH]));
  CHECK_STATUS(gp_build(&t.trace->at, GP_OP_permute, &turn, &packed, 1, &other), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "pack_linear");
  CHECK_STATUS(gp_build(&t.trace->at, GP_OP_copy, &none, &packed, 1, &other), GP_EINVAL);
  gp_attrs of = {.linear = {TOY_WIDTH}};
  CHECK_STATUS(gp_build(&t.trace->at, GP_OP_linear, &of, (gp_ref[]){t.x, packed}, 2, &other),
               GP_OK);
  toy_free(&t);
}

/* ---- what does not ------------------------------------------------------------------------- */

typedef enum miss {
  ERF,         /* GELU by erf */
  SECOND,      /* the linear's value has a second reader */
  OTHER_LAYER, /* GELU belongs to the next layer */
  LEAVES,      /* the next layer reads what comes after GELU */
  THROUGH_VIEW /* GELU reads a view */
} miss;

static void trace_near_miss(toy *t, miss kind) {
  toy_layer(t, 0);
  toy_linear(t);
  gp_ref h = t->value;
  if (kind == THROUGH_VIEW)
    t->value = toy_apply(t, GP_OP_reshape, &(gp_attrs){.reshape = {{1, {3 * TOY_WIDTH}}}}, 1, &h);
  if (kind == OTHER_LAYER) toy_layer(t, 1);
  t->value = toy_apply(t, GP_OP_gelu, kind == ERF ? &toy_plain : &by_tanh, 1, &t->value);
  if (kind == SECOND) t->value = toy_op2(t, GP_OP_mul, t->value, h);
  if (kind == LEAVES) toy_layer(t, 1);
  t->value = toy_op1(t, GP_OP_neg, t->value);
}

TEST(near_misses_of_gelu_stay_as_they_are) {
  for (miss kind = ERF; kind <= THROUGH_VIEW; kind++) {
    toy t = toy_new(3);
    trace_near_miss(&t, kind);
    fuse(&t);
    CHECK_PASS(&t, GP_FORWARD, kind == SECOND ? "linear gelu mul neg" : "linear gelu neg");
    toy_free(&t);
  }
}

TEST(a_sum_takes_no_value_that_others_read_or_that_is_of_another_kind) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  gp_ref x = t.value;
  toy_linear(&t);
  gp_ref twice = t.value;
  add_of(&t, x); /* read again below */
  t.value = toy_op2(&t, GP_OP_mul, t.value, twice);
  toy_linear(&t);
  gp_param *row = toy_param(&t, SHAPE(TOY_WIDTH), false, false);
  add_of(&t, toy_use(&t, row)); /* broadcast */
  toy_linear(&t);
  toy_layer(&t, 1);
  add_of(&t, x); /* in another layer */
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear add mul linear add linear add");
  toy_free(&t);
}

TEST(a_sum_of_one_linear_with_itself_stays) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  add_of(&t, t.value);
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear add");
  toy_free(&t);
}

TEST(of_two_linears_that_are_added_one_stays) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  gp_ref x = t.value;
  toy_linear(&t);
  gp_ref first = t.value;
  t.value = x;
  toy_linear(&t);
  add_of(&t, first);
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear linear_add");
  CHECK(toy_node(&t, 1)->in[2] == first);
  toy_free(&t);
}

/* What depends on parameters alone is made once per step, and stays so. */
TEST(a_product_of_parameters_is_not_drawn_into_every_micro_batch) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  gp_ref x = t.value;
  t.value = toy_use(&t, toy_param(&t, SHAPE(3, TOY_WIDTH), false, false));
  toy_linear(&t);
  add_of(&t, x);
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear add");
  toy_free(&t);
}

/* A strided addend would need a copy. */
TEST(a_sum_with_a_strided_value_stays) {
  toy t = toy_new(TOY_WIDTH);
  toy_layer(&t, 0);
  gp_ref turned = toy_apply(&t, GP_OP_permute, &(gp_attrs){.permute = {{2, {1, 0}}}}, 1, &t.value);
  toy_linear(&t);
  add_of(&t, turned);
  fuse(&t);
  CHECK_PASS(&t, GP_FORWARD, "linear add");
  toy_free(&t);
}

TEST(gradients_of_frozen_biases_leave_the_weight_alone) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear_of(&t, toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false),
                toy_param(&t, SHAPE(TOY_WIDTH), false, true));
  differentiate(&t);
  fuse(&t);
  CHECK_PASS(&t, GP_BACKWARD, "loss_seed mse_dx linear_dw");
  toy_free(&t);
}

/* The residual's gradient is summed in the layer that made the value, not in that of the norm. */
TEST(gradients_of_other_layers_are_added_apart) {
  toy t = toy_new(3);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_ref around = t.value;
  toy_layer(&t, 1);
  layer_norm(&t);
  toy_layer(&t, 2);
  add_of(&t, around);
  gp_gradient_root root = {.value = toy_loss(&t, 3), .layer = 3, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t.trace->graph, &root, 1), GP_OK);
  fuse(&t);
  CHECK_PASS(&t, GP_BACKWARD,
             "loss_seed mse_dx layer_norm_dx layer_norm_bias_dw add linear_bias_dw");
  toy_free(&t);
}

TEST(nothing_to_fuse_changes_nothing) {
  gp_ref loss;
  toy t = toy_tower(3, 2, &loss);
  int32_t nodes = toy_graph(&t)->node_count, values = toy_graph(&t)->value_count;
  fuse(&t);
  CHECK(toy_graph(&t)->node_count == nodes && toy_graph(&t)->value_count == values);
  toy_free(&t);
}

TEST_MAIN(gradients_of_a_norm_read_its_rows_once_where_sums_go_by_parts,
          a_block_of_a_transformer_becomes_fewer_ops,
          readers_find_both_values_of_a_linear_with_gelu,
          sums_go_to_the_accumulators_that_they_went_to, an_addend_stands_before_the_bias,
          a_linear_without_a_bias_takes_an_addend_too, fused_linears_read_packed_weights,
          packed_values_are_refused_where_nobody_knows_them, near_misses_of_gelu_stay_as_they_are,
          a_sum_takes_no_value_that_others_read_or_that_is_of_another_kind,
          a_sum_of_one_linear_with_itself_stays, of_two_linears_that_are_added_one_stays,
          a_product_of_parameters_is_not_drawn_into_every_micro_batch,
          a_sum_with_a_strided_value_stays, gradients_of_frozen_biases_leave_the_weight_alone,
          gradients_of_other_layers_are_added_apart, nothing_to_fuse_changes_nothing)
