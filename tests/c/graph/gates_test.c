/* tests/c/graph/gates_test.c - which norms of channels take in the ReLU and the sum behind them,
 * and which must not. */
#include "graph/gates.h"

#include "plan/toy.h"

enum { ROWS = 2, CHANNELS = 3, HIGH = 4, WIDE = 5, LAYERS = 6 };

/* ---- making a model -------------------------------------------------------------------------- */

static toy new_images(void) {
  toy t = {.rows = ROWS};
  gp_meta meta;
  CHECK_STATUS(gp_trace_new(true, &t.trace), GP_OK);
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(ROWS, CHANNELS, HIGH, WIDE), &meta), GP_OK);
  CHECK_STATUS(gp_trace_input(t.trace, GP_INPUT_BATCH, &meta, &t.x), GP_OK);
  t.value = t.x;
  return t;
}

/* A convolution of 1 x 1, so that a gradient flows through what stands before. */
static void convolve(toy *t) {
  gp_ref in[2] = {t->value,
                  toy_use(t, toy_param(t, SHAPE(CHANNELS, CHANNELS, 1, 1), false, false))};
  t->value = toy_apply(t, GP_OP_conv2d, &(gp_attrs){.conv2d = {.groups = 1}}, 2, in);
}

static void normalise(toy *t) {
  const gp_attrs join = {
      .channel_stats_join = {.sets = 1, .rows = ROWS * HIGH * WIDE, .groups = CHANNELS}};
  gp_ref parts = toy_op1(t, GP_OP_channel_stats, t->value);
  gp_ref mean = toy_apply(t, GP_OP_channel_stats_join, &join, 1, &parts);
  gp_param *w = toy_param(t, SHAPE(CHANNELS), false, false);
  gp_param *b = toy_param(t, SHAPE(CHANNELS), false, false);
  gp_ref in[5] = {t->value, mean, mean + 1, toy_use(t, w), toy_use(t, b)};
  t->value = toy_apply(t, GP_OP_channel_norm, &(gp_attrs){.channel_norm = {.eps = 1e-5}}, 5, in);
}

static void relu(toy *t) { t->value = toy_op1(t, GP_OP_relu, t->value); }
static void add_of(toy *t, gp_ref around) { t->value = toy_op2(t, GP_OP_add, around, t->value); }

static void differentiate(toy *t) {
  toy_layer(t, LAYERS);
  gp_ref loss = toy_op1(t, GP_OP_sum, toy_op1(t, GP_OP_square, t->value));
  gp_gradient_root root = {.value = loss, .layer = LAYERS, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
}

/* ---- looking at a graph ---------------------------------------------------------------------- */

static const int32_t one_stage[LAYERS + 1];

/* Checks that each node is the maker of its outputs, has the outputs that its op infers, and reads
 * only values made before. */
static void check_graph(const toy *t) {
  const gp_graph *g = toy_graph(t);
  for (int32_t n = 0; n < g->node_count; n++) {
    const gp_node *node = toy_node(t, n);
    gp_sig sig = {.attr = &node->attr, .n_in = node->n_in};
    for (int i = 0; i < node->n_in; i++) {
      const gp_value *in = &g->values[node->in[i]];
      CHECK(in->node < n && g->values[in->base].base == in->base);
      CHECK(!gp_op_needs_copy(node->op, &node->attr, i, &in->meta));
      sig.in[i] = &in->meta;
    }
    CHECK_STATUS(gp_op_infer(node->op, &sig), GP_OK);
    CHECK(sig.n_out == node->n_out);
    for (int k = 0; k < node->n_out; k++) {
      const gp_value *value = &g->values[node->out + k];
      CHECK(value->node == n && value->output == k && value->layer == node->layer);
      CHECK(gp_meta_equal(&value->meta, &sig.out[k]));
      if (gp_op_get(node->op)->flags & GP_OP_VIEW)
        CHECK(value->base == gp_graph_base(g, node->in[0]));
    }
  }
}

static void gate(toy *t, const int32_t *stage_of) {
  const gp_arrange_spec spec = {.stage_of = stage_of};
  const gp_gates_spec gates = {.stage_of = stage_of};
  CHECK_STATUS(gp_graph_arrange(&t->trace->graph, &spec), GP_OK);
  CHECK_STATUS(gp_graph_gate(&t->trace->graph, &gates), GP_OK);
  check_graph(t);
}

/* Is it an op of interest here: of norms, ReLUs and sums? */
static bool is_shown(const gp_node *node) {
  const char *name = gp_op_name(node->op);
  return !strncmp(name, "channel_norm", 12) || !strncmp(name, "relu", 4) || node->op == GP_OP_add;
}

static const char *ops_of(const toy *t) {
  static char text[1024];
  size_t used = 0;
  text[0] = 0;
  for (int32_t n = 0; n < toy_graph(t)->node_count && used < 960; n++)
    if (is_shown(toy_node(t, n)))
      used += (size_t)snprintf(text + used, sizeof text - used, used ? " %s" : "%s",
                               gp_op_name(toy_node(t, n)->op));
  return text;
}

#define CHECK_SHOWN(t, wanted)                                                                     \
  do {                                                                                             \
    if (strcmp(ops_of(t), wanted)) printf("ops: '%s', not '%s'\n", ops_of(t), wanted);             \
    CHECK(!strcmp(ops_of(t), wanted));                                                             \
  } while (0)

#define SINGLE "channel_norm relu relu_dx channel_norm_sums channel_norm_dx"
#define FUSED  "channel_norm_relu channel_norm_relu_sums channel_norm_relu_dx"

/* ---- what becomes one ------------------------------------------------------------------------ */

/* between: the ReLU stands in a layer of its own. */
static toy norm_and_relu(bool between) {
  toy t = new_images();
  toy_layer(&t, 0);
  convolve(&t);
  toy_layer(&t, 1);
  normalise(&t);
  if (between) toy_layer(&t, 2);
  relu(&t);
  toy_layer(&t, 3);
  convolve(&t);
  differentiate(&t);
  return t;
}

TEST(a_norm_takes_in_the_relu_behind_it) {
  toy t = norm_and_relu(false);
  gate(&t, one_stage);
  CHECK_SHOWN(&t, FUSED);
  toy_free(&t);
}

/* What another stage reads is row-major: the ReLU changes the order on the way. */
TEST(a_relu_may_stand_in_another_layer_but_not_in_another_stage) {
  static const int32_t before[LAYERS + 1] = {0, 1, 1, 1, 1, 1, 1},
                                       between[LAYERS + 1] = {0, 0, 1, 1, 1, 1, 1},
                                       behind[LAYERS + 1] = {0, 0, 0, 1, 1, 1, 1};
  static const struct {
    const int32_t *stage_of;
    const char *wanted;
  } cases[] = {{one_stage, FUSED}, {before, FUSED}, {between, SINGLE}, {behind, SINGLE}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    toy t = norm_and_relu(true);
    gate(&t, cases[i].stage_of);
    CHECK_SHOWN(&t, cases[i].wanted);
    toy_free(&t);
  }
}

/* As a block of a residual network: the second convolution reads what the first ReLU made, and so
 * does the sum. */
static toy residual(bool both_normalised) {
  toy t = new_images();
  toy_layer(&t, 0);
  convolve(&t);
  normalise(&t);
  relu(&t);
  gp_ref around = t.value;
  toy_layer(&t, 1);
  convolve(&t);
  toy_layer(&t, 2);
  normalise(&t);
  gp_ref value = t.value;
  toy_layer(&t, 3);
  if (both_normalised) {
    t.value = around;
    normalise(&t);
    around = t.value, t.value = value;
  }
  add_of(&t, around);
  toy_layer(&t, 4);
  relu(&t);
  toy_layer(&t, 5);
  convolve(&t);
  differentiate(&t);
  return t;
}

TEST(a_norm_takes_in_the_sum_and_the_relu_behind_it) {
  toy t = residual(false);
  gate(&t, one_stage);
  /* the first ReLU's gradient is a sum: of the convolution's share and of the shortcut's */
  CHECK_SHOWN(&t,
              "channel_norm_relu channel_norm_add_relu channel_norm_gate_sums channel_norm_dx add "
              "channel_norm_relu_sums channel_norm_relu_dx");
  toy_free(&t);
}

TEST(of_two_norms_that_are_added_the_later_one_takes_in_the_sum) {
  toy t = residual(true);
  gate(&t, one_stage);
  CHECK_SHOWN(&t, "channel_norm_relu channel_norm channel_norm_add_relu channel_norm_gate_sums "
                  "channel_norm_dx channel_norm_sums channel_norm_dx add channel_norm_relu_sums "
                  "channel_norm_relu_dx");
  toy_free(&t);
}

/* A gradient with two shares goes into the sums, and is never written. */
TEST(a_gate_adds_two_shares_of_a_gradient) {
  toy t = new_images();
  toy_layer(&t, 0);
  convolve(&t);
  gp_ref around = t.value;
  normalise(&t);
  add_of(&t, around);
  relu(&t);
  gp_ref twice = t.value;
  toy_layer(&t, 1);
  convolve(&t);
  add_of(&t, twice);
  differentiate(&t);
  gate(&t, one_stage);
  CHECK_SHOWN(&t, "channel_norm_add_relu add channel_norm_gate_sums channel_norm_dx add");
  for (int32_t n = 0; n < toy_graph(&t)->node_count; n++)
    if (toy_node(&t, n)->op == GP_OP_channel_norm_gate_sums) CHECK(toy_node(&t, n)->n_in == 6);
  toy_free(&t);
}

/* ---- what does not --------------------------------------------------------------------------- */

TEST(a_norm_that_another_op_reads_stays) {
  toy t = new_images();
  toy_layer(&t, 0);
  convolve(&t);
  normalise(&t);
  gp_ref norm = t.value;
  relu(&t);
  add_of(&t, norm);
  gate(&t, one_stage);
  CHECK_SHOWN(&t, "channel_norm relu add");
  toy_free(&t);
}

TEST(a_sum_that_is_broadcast_stays) {
  toy t = new_images();
  toy_layer(&t, 0);
  normalise(&t);
  add_of(&t, toy_use(&t, toy_param(&t, SHAPE(CHANNELS, 1, 1), false, true)));
  relu(&t);
  gate(&t, one_stage);
  CHECK_SHOWN(&t, "channel_norm add relu");
  toy_free(&t);
}

TEST(a_graph_without_norms_is_left_alone) {
  gp_ref loss;
  toy t = toy_tower(3, 2, &loss);
  const gp_node *nodes = toy_graph(&t)->nodes;
  int32_t values = toy_graph(&t)->value_count;
  gate(&t, one_stage);
  CHECK(toy_graph(&t)->nodes == nodes && toy_graph(&t)->value_count == values);
  toy_free(&t);
}

TEST_MAIN(a_norm_takes_in_the_relu_behind_it,
          a_relu_may_stand_in_another_layer_but_not_in_another_stage,
          a_norm_takes_in_the_sum_and_the_relu_behind_it,
          of_two_norms_that_are_added_the_later_one_takes_in_the_sum,
          a_gate_adds_two_shares_of_a_gradient, a_norm_that_another_op_reads_stays,
          a_sum_that_is_broadcast_stays, a_graph_without_norms_is_left_alone)
