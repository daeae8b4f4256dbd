/* tests/c/graph/losses_test.c - a cross-entropy takes in the gradient of its logits, and both lie
 * in padded rows. */
#include "graph/losses.h"
#include "graph/pad.h"
#include "graph/param.h"
#include "plan/toy.h"

#define HALF GP_BF16

enum { ROWS = 3, ODD = 515, PADDED = 576 };

/* ---- looking at a graph -------------------------------------------------------------------- */

static int32_t find_op(const toy *t, gp_op op) {
  for (int32_t n = 0; n < toy_graph(t)->node_count; n++)
    if (toy_node(t, n)->op == op) return n;
  return -1;
}

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
    for (int k = 0; k < node->n_out; k++) {
      const gp_value *value = &g->values[node->out + k];
      CHECK(value->node == n && value->output == k && gp_meta_equal(&value->meta, &sig.out[k]));
    }
  }
}

/* ---- making one ---------------------------------------------------------------------------- */

static gp_ref ids_of(toy *t) {
  gp_tensor *ids;
  gp_ref ref = GP_NONE;
  CHECK_STATUS(gp_tensor_new(GP_I64, &SHAPE(ROWS), &ids), GP_OK);
  CHECK_STATUS(gp_trace_constant(t->trace, ids, &ref), GP_OK);
  gp_tensor_free(ids);
  return ref;
}

static gp_ref sum_of(toy *t, gp_ref ref) {
  return toy_apply(t, GP_OP_sum, &(gp_attrs){.sum = {0}}, 1, &ref);
}

/* The losses of a layer with so many outputs, in halves; the loss is layer 1. */
static toy vocabulary(int64_t outputs, gp_ref *losses) {
  toy t = toy_new(ROWS);
  gp_trace_set_half(t.trace, HALF);
  toy_layer(&t, 0);
  t.value = toy_apply(&t, GP_OP_cast, &(gp_attrs){.cast = {HALF}}, 1, &t.x);
  toy_linear_of(&t, toy_param(&t, SHAPE(outputs, TOY_WIDTH), false, false), NULL);
  toy_layer(&t, 1);
  *losses = toy_op2(&t, GP_OP_cross_entropy, t.value, ids_of(&t));
  return t;
}

static void differentiate(toy *t, gp_ref loss) {
  gp_gradient_root root = {.value = loss, .layer = 1, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
}

static void join(toy *t) {
  CHECK_STATUS(gp_graph_join_losses(&t->trace->graph), GP_OK);
  check_graph(t);
}

static void pad(toy *t) {
  const gp_pad_spec spec = {(int32_t[]){0, 0}, 1};
  CHECK_STATUS(gp_graph_pad(&t->trace->graph, &spec), GP_OK);
  check_graph(t);
}

static const char *forward(const toy *t, gp_ref loss, char text[512]) {
  const gp_cut_spec spec = {.graph = toy_graph(t),
                            .stage_of = (int32_t[]){0, 0},
                            .stage_count = 1,
                            .exports = &loss,
                            .export_count = 1};
  gp_stages *made = NULL;
  CHECK_STATUS(gp_stages_build(&spec, &made), GP_OK);
  toy_ops(t, &made->stages[0].forward, text);
  gp_stages_free(made);
  return text;
}

/* ---- both in one --------------------------------------------------------------------------- */

TEST(a_forward_pass_makes_the_gradient_of_logits_whose_losses_are_added_up) {
  gp_ref losses;
  toy t = vocabulary(16, &losses);
  gp_ref loss = sum_of(&t, losses);
  char text[512];
  differentiate(&t, loss);
  join(&t);
  CHECK_TEXT(forward(&t, loss, text), "cast linear loss_seed cross_entropy_both sum");
  CHECK(find_op(&t, GP_OP_cross_entropy) < 0 && find_op(&t, GP_OP_cross_entropy_dx) < 0);
  const gp_node *both = toy_node(&t, find_op(&t, GP_OP_cross_entropy_both));
  CHECK(toy_node(&t, find_op(&t, GP_OP_linear_dw))->in[0] == both->out);
  CHECK(toy_node(&t, find_op(&t, GP_OP_sum))->in[0] == both->out + 1);
  toy_free(&t);
}

TEST(losses_that_are_weighed_keep_a_gradient_of_their_own) {
  gp_ref losses;
  toy t = vocabulary(16, &losses);
  gp_ref loss = sum_of(&t, toy_op2(&t, GP_OP_mul, losses, losses));
  differentiate(&t, loss);
  join(&t);
  CHECK(find_op(&t, GP_OP_cross_entropy_both) < 0 && find_op(&t, GP_OP_cross_entropy_dx) >= 0);
  toy_free(&t);
}

TEST(logits_with_another_gradient_keep_theirs) {
  gp_ref losses;
  toy t = vocabulary(16, &losses);
  gp_ref squares = toy_op1(&t, GP_OP_square, t.value);
  gp_ref wide = toy_apply(&t, GP_OP_cast, &(gp_attrs){.cast = {GP_F32}}, 1, &squares);
  gp_ref loss = toy_op2(&t, GP_OP_add, sum_of(&t, losses), sum_of(&t, wide));
  differentiate(&t, loss);
  join(&t);
  CHECK(find_op(&t, GP_OP_cross_entropy_both) < 0 && find_op(&t, GP_OP_cross_entropy_dx) >= 0);
  toy_free(&t);
}

/* ---- padded rows --------------------------------------------------------------------------- */

/* Checks a value that is read through a view of its first columns. */
static void check_padded(const toy *t, gp_ref read) {
  const gp_value *view = gp_graph_at(toy_graph(t), read);
  const gp_value *base = gp_graph_at(toy_graph(t), view->base);
  CHECK(view->base != read && toy_node(t, view->node)->op == GP_OP_narrow);
  CHECK(view->meta.shape.dim[1] == ODD && view->meta.stride[0] == PADDED);
  CHECK(base->meta.shape.dim[1] == PADDED && gp_meta_is_contiguous(&base->meta));
}

TEST(odd_scores_and_their_gradient_are_read_through_views_of_padded_rows) {
  for (int joined = 0; joined < 2; joined++) {
    gp_ref losses;
    toy t = vocabulary(ODD, &losses);
    differentiate(&t, sum_of(&t, losses));
    if (joined) join(&t);
    pad(&t);
    check_padded(
        &t, toy_node(&t, find_op(&t, joined ? GP_OP_cross_entropy_both : GP_OP_cross_entropy_dx))
                ->in[0]);
    check_padded(&t, toy_node(&t, find_op(&t, GP_OP_linear_dw))->in[0]);
    CHECK(
        toy_graph(&t)->values[toy_node(&t, find_op(&t, GP_OP_linear_dw))->out].meta.shape.dim[0] ==
        ODD);
    toy_free(&t);
  }
}

TEST(even_scores_stay_as_they_are) {
  gp_ref losses;
  toy t = vocabulary(520, &losses);
  differentiate(&t, sum_of(&t, losses));
  pad(&t);
  CHECK(find_op(&t, GP_OP_narrow) < 0);
  toy_free(&t);
}

/* A view of another shape would have to be made anew. */
TEST(scores_that_a_view_shows_stay_as_they_are) {
  gp_ref losses;
  toy t = vocabulary(ODD, &losses);
  const gp_attrs flat = {.reshape = {{1, {ROWS * ODD}}}};
  gp_ref view = toy_apply(&t, GP_OP_reshape, &flat, 1, &t.value);
  toy_op1(&t, GP_OP_exp, view);
  differentiate(&t, sum_of(&t, losses));
  pad(&t);
  CHECK(find_op(&t, GP_OP_narrow) < 0);
  toy_free(&t);
}

/* Whether a value is padded must not depend on where the model is cut. */
TEST(scores_that_a_later_layer_reads_stay_as_they_are) {
  gp_ref losses;
  toy t = vocabulary(ODD, &losses);
  const gp_pad_spec spec = {(int32_t[]){0, 0, 0}, 2};
  differentiate(&t, sum_of(&t, losses));
  CHECK_STATUS(gp_graph_pad(&t.trace->graph, &spec), GP_OK);
  CHECK(find_op(&t, GP_OP_narrow) < 0);
  toy_free(&t);
}

TEST_MAIN(a_forward_pass_makes_the_gradient_of_logits_whose_losses_are_added_up,
          losses_that_are_weighed_keep_a_gradient_of_their_own,
          logits_with_another_gradient_keep_theirs,
          odd_scores_and_their_gradient_are_read_through_views_of_padded_rows,
          even_scores_stay_as_they_are, scores_that_a_view_shows_stay_as_they_are,
          scores_that_a_later_layer_reads_stay_as_they_are)
