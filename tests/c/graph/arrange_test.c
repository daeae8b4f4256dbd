/* tests/c/graph/arrange_test.c - chains of elementwise ops keep the order of what they read, where
 * that saves copies; a reader that needs another order gets a copy.
 *
 * The linker replaces gp_op_get by this program's (scripts/cmake/tests.cmake): softmax becomes an
 * op that takes and makes images channels-last, as a convolution does. */
#include "graph/order.h"
#include "graph/stages.h"
#include "ops/infer.h"
#include "plan/toy.h"

/* ---- an op that works channels-last --------------------------------------------------------- */

static gp_status infer_images(gp_sig *sig) {
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &sig->in[0]->shape);
}

static gp_cut cut_images(const gp_call *call) {
  (void)call;
  return (gp_cut){1, 1};
}

static gp_status run_images(const gp_call *call, gp_span span) {
  (void)span;
  CHECK(gp_meta_is_channels_last(call->in[0].meta) && gp_meta_is_channels_last(call->out[0].meta));
  gp_view_copy(call->out[0].meta, call->out[0].data, call->in[0].meta, call->in[0].data);
  return GP_OK;
}

const gp_op_def *__real_gp_op_get(gp_op op);
const gp_op_def *__wrap_gp_op_get(gp_op op);

const gp_op_def *__wrap_gp_op_get(gp_op op) {
  static const gp_op_def images = {.name = "images",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .flags = GP_OP_CHANNELS_LAST,
                                   .infer = infer_images,
                                   .cost = gp_cost_copy,
                                   .cpu = {.cut = cut_images, .run = run_images}};
  return op == GP_OP_softmax ? &images : __real_gp_op_get(op);
}

static void image_op(toy *t) { t->value = toy_op1(t, GP_OP_softmax, t->value); }

/* ---- toys ----------------------------------------------------------------------------------- */

enum { LAYERS = 3 };

static void turn(toy *t) {
  t->value = toy_apply(t, GP_OP_permute, &(gp_attrs){.permute = {{2, {1, 0}}}}, 1, &t->value);
}

static void map(toy *t, gp_op op) { t->value = toy_op1(t, op, t->value); }

/* Add a vector that is broadcast along the first dimension. */
static void shift(toy *t, int64_t width) {
  gp_param *b = toy_param(t, SHAPE(width), false, true);
  t->value = toy_op2(t, GP_OP_add, t->value, toy_use(t, b));
}

static toy toy_images(int64_t n, int64_t c, int64_t h, int64_t w) {
  toy t = {.rows = n};
  gp_meta meta;
  CHECK_STATUS(gp_trace_new(true, &t.trace), GP_OK);
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(n, c, h, w), &meta), GP_OK);
  CHECK_STATUS(gp_trace_input(t.trace, GP_INPUT_BATCH, &meta, &t.x), GP_OK);
  t.value = t.x;
  return t;
}

static gp_status arrange(toy *t, const int32_t *stage_of, gp_ref export) {
  gp_arrange_spec spec = {.stage_of = stage_of, .fixed = &export, .fixed_count = 1};
  return gp_graph_arrange(&t->trace->graph, &spec);
}

static const int32_t one_stage[LAYERS + 1], two_stages[LAYERS + 1] = {0, 1, 1, 1};

static gp_stages *cut(const toy *t, const int32_t *stage_of, gp_ref export) {
  gp_cut_spec spec = {.graph = toy_graph(t),
                      .stage_of = stage_of,
                      .stage_count = stage_of[LAYERS] + 1,
                      .exports = &export,
                      .export_count = 1};
  gp_stages *made = NULL;
  CHECK_STATUS(gp_stages_build(&spec, &made), GP_OK);
  return made;
}

static int count_in(const toy *t, const gp_node_list *list, gp_op op) {
  int n = 0;
  for (int32_t i = 0; i < list->count; i++) n += toy_node(t, list->nodes[i])->op == op;
  return n;
}

/* Counts the copies that run, in all programs but R. */
static int copies(const toy *t, const int32_t *stage_of, gp_ref export) {
  gp_stages *s = cut(t, stage_of, export);
  int n = 0;
  for (int32_t i = 0; i < s->count; i++) {
    const gp_stage_nodes *nodes = &s->stages[i];
    n += count_in(t, &nodes->prepare, GP_OP_copy) + count_in(t, &nodes->forward, GP_OP_copy) +
         count_in(t, &nodes->input, GP_OP_copy) + count_in(t, &nodes->weight, GP_OP_copy);
  }
  gp_stages_free(s);
  return n;
}

/* Checks that every node stands behind what it reads, and that every value names its maker. */
static void check_graph(const toy *t) {
  const gp_graph *graph = toy_graph(t);
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = toy_node(t, n);
    for (int k = 0; k < node->n_out; k++) CHECK(graph->values[node->out + k].node == n);
    for (int i = 0; i < node->n_in; i++) CHECK(graph->values[node->in[i]].node < n);
    bool view = gp_op_get(node->op)->flags & GP_OP_VIEW;
    if (view) CHECK(graph->values[node->out].base == graph->values[node->in[0]].base);
  }
}

/* Do all nodes of the op read and write memory from its first element to its last? */
static bool runs_through(const toy *t, gp_op op) {
  const gp_graph *graph = toy_graph(t);
  bool through = true;
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = toy_node(t, n);
    if (node->op != op) continue;
    through = through && gp_meta_is_contiguous(&graph->values[node->in[0]].meta) &&
              gp_meta_is_contiguous(&graph->values[node->out].meta);
  }
  return through;
}

static gp_ref differentiated(toy *t, int layers) {
  gp_ref loss = toy_loss(t, layers);
  gp_gradient_root root = {.value = loss, .layer = layers, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
  return loss;
}

/* ---- orders --------------------------------------------------------------------------------- */

TEST(orders_are_read_off_the_strides) {
  gp_meta meta = {GP_F32, SHAPE(2, 3, 1, 4), {12, 1, 77, 3}, 5};
  gp_order order;
  CHECK(gp_order_of(&meta, &order) && order.at[0] == 2 && order.at[1] == 0 && order.at[2] == 3);
  CHECK(!gp_order_is_row_major(&order, &meta.shape) && gp_meta_is_channels_last(&meta));
  meta.stride[0] = 24;
  CHECK(!gp_order_of(&meta, &order)); /* a gap */
  meta.stride[0] = 0;
  CHECK(!gp_order_of(&meta, &order)); /* repeated */
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(2, 1, 3), &meta), GP_OK);
  CHECK(gp_order_of(&meta, &order) && gp_order_is_row_major(&order, &meta.shape));
}

TEST(orders_go_through_permuted_views_both_ways) {
  const gp_shape shape = SHAPE(2, 3, 4), turned = SHAPE(4, 2, 3);
  const gp_order turn_by = {3, {2, 0, 1}}; /* dimension 0 of the view is dimension 2 */
  gp_order plain = gp_order_row_major(&shape);
  gp_order view = gp_order_behind(&turn_by, &plain, &turned);
  CHECK(view.at[0] == 1 && view.at[1] == 2 && view.at[2] == 0);
  gp_order back = gp_order_before(&turn_by, &view, &shape);
  CHECK(gp_order_equal(&back, &plain));
}

/* ---- chains --------------------------------------------------------------------------------- */

/* Makes linear, permuted view, chain, and view back: the next linear needs rows. */
static toy there_and_back(gp_ref *loss) {
  toy t = toy_new(6);
  toy_layer(&t, 0);
  toy_linear(&t);
  turn(&t);
  map(&t, GP_OP_relu);
  map(&t, GP_OP_gelu);
  shift(&t, 6);
  turn(&t);
  toy_linear(&t);
  *loss = differentiated(&t, 1);
  return t;
}

TEST(a_chain_between_two_permuted_views_copies_nothing) {
  gp_ref loss;
  toy t = there_and_back(&loss);
  CHECK(copies(&t, one_stage, loss) == 3); /* second linear; dw, db of the first */
  CHECK_STATUS(arrange(&t, one_stage, loss), GP_OK);
  check_graph(&t);
  CHECK(copies(&t, one_stage, loss) == 0);
  CHECK(runs_through(&t, GP_OP_relu) && runs_through(&t, GP_OP_gelu));
  CHECK(runs_through(&t, GP_OP_relu_dx) && runs_through(&t, GP_OP_gelu_dx));
  toy_free(&t);
}

/* Dropout draws by the index of an element, so it reads the chain as it lies and writes rows. */
TEST(dropout_takes_a_chain_as_it_lies) {
  toy t = toy_new(4);
  toy_layer(&t, 0);
  toy_linear(&t);
  turn(&t);
  map(&t, GP_OP_relu);
  gp_ref relu = t.value;
  t.value = toy_apply(&t, GP_OP_dropout, &(gp_attrs){.dropout = {0.5}}, 1, &t.value);
  gp_ref dropped = t.value;
  t.value = relu;
  turn(&t);
  toy_linear(&t);
  t.value = toy_op2(&t, GP_OP_add, t.value, dropped);
  gp_ref loss = toy_loss(&t, 1);
  CHECK(copies(&t, one_stage, loss) == 1);
  CHECK_STATUS(arrange(&t, one_stage, loss), GP_OK);
  check_graph(&t);
  CHECK(copies(&t, one_stage, loss) == 0 && runs_through(&t, GP_OP_relu));
  CHECK(gp_meta_is_contiguous(&toy_graph(&t)->values[dropped].meta));
  toy_free(&t);
}

/* Another order would gain nothing: a linear needs its input turned in any case. */
TEST(a_chain_that_ends_in_rows_stays_row_major) {
  gp_ref loss;
  toy t = toy_new(4);
  toy_layer(&t, 0);
  toy_linear(&t);
  turn(&t);
  map(&t, GP_OP_relu);
  map(&t, GP_OP_gelu);
  toy_linear(&t);
  loss = toy_loss(&t, 1);
  int32_t nodes = toy_graph(&t)->node_count;
  CHECK_STATUS(arrange(&t, one_stage, loss), GP_OK);
  CHECK(toy_graph(&t)->node_count == nodes && copies(&t, one_stage, loss) == 0);
  toy_free(&t);
}

/* Two copies are saved, and one is made for the linear that reads the chain itself. */
TEST(readers_of_rows_get_a_copy_of_their_own) {
  toy t = toy_new(4);
  toy_layer(&t, 0);
  toy_linear(&t);
  turn(&t);
  map(&t, GP_OP_relu);
  gp_ref relu = t.value, sum;
  toy_linear(&t);
  sum = t.value;
  for (int i = 0; i < 2; i++) {
    t.value = i ? toy_op1(&t, GP_OP_gelu, relu) : relu;
    turn(&t);
    toy_linear(&t);
    sum = toy_op2(&t, GP_OP_add, sum, t.value);
  }
  t.value = sum;
  gp_ref loss = toy_loss(&t, 1);
  CHECK(copies(&t, one_stage, loss) == 2);
  CHECK_STATUS(arrange(&t, one_stage, loss), GP_OK);
  check_graph(&t);
  CHECK(copies(&t, one_stage, loss) == 1);
  CHECK(runs_through(&t, GP_OP_relu) && runs_through(&t, GP_OP_gelu));
  CHECK(runs_through(&t, GP_OP_linear)); /* all linears still read rows */
  toy_free(&t);
}

/* A trace copies a value for other layers; the copy is needed only for other stages. */
TEST(copies_for_other_layers_remain_between_stages) {
  for (int stages = 1; stages <= 2; stages++) {
    const int32_t *stage_of = stages == 1 ? one_stage : two_stages;
    gp_ref loss;
    toy t = toy_new(4);
    toy_layer(&t, 0);
    toy_linear(&t);
    turn(&t);
    toy_layer(&t, 1);
    map(&t, GP_OP_relu);
    toy_layer(&t, 2);
    turn(&t);
    toy_linear(&t);
    loss = toy_loss(&t, LAYERS);
    CHECK(copies(&t, stage_of, loss) == 2);
    CHECK_STATUS(arrange(&t, stage_of, loss), GP_OK);
    check_graph(&t);
    CHECK(copies(&t, stage_of, loss) == (stages == 1 ? 0 : 1));
    toy_free(&t);
  }
}

TEST(what_leaves_the_graph_stays_row_major) {
  toy t = toy_new(4);
  toy_layer(&t, 0);
  turn(&t);
  map(&t, GP_OP_relu);
  gp_ref relu = t.value;
  t.value = toy_op1(&t, GP_OP_copy, t.value);
  CHECK_STATUS(arrange(&t, one_stage, t.value), GP_OK);
  check_graph(&t);
  CHECK(gp_meta_is_contiguous(&toy_graph(&t)->values[t.value].meta));
  CHECK(copies(&t, one_stage, t.value) == 1 && toy_graph(&t)->values[relu].node >= 0);
  toy_free(&t);
}

/* A buffer is read through a copy because it is written later. */
TEST(copies_of_buffers_are_never_views) {
  toy t = toy_new(4);
  toy_layer(&t, 0);
  gp_param *buffer = toy_param(&t, SHAPE(4, TOY_WIDTH), true, false);
  gp_ref seen = toy_use(&t, buffer);
  t.value = toy_op2(&t, GP_OP_add, t.value, seen);
  turn(&t);
  map(&t, GP_OP_relu);
  turn(&t);
  toy_apply(&t, GP_OP_assign, &toy_plain, 2, (gp_ref[]){seen, t.value});
  toy_linear(&t);
  gp_ref loss = toy_loss(&t, 1);
  CHECK_STATUS(arrange(&t, one_stage, loss), GP_OK);
  check_graph(&t);
  const gp_node *maker = toy_node(&t, toy_maker(&t, seen));
  CHECK(maker->op == GP_OP_copy && maker->snapshot);
  toy_free(&t);
}

/* ---- channels-last -------------------------------------------------------------------------- */

TEST(ops_between_images_keep_them_channels_last) {
  toy t = toy_images(2, 3, 4, 5);
  toy_layer(&t, 0);
  image_op(&t);
  CHECK(gp_meta_is_channels_last(&toy_graph(&t)->values[t.value].meta));
  for (int i = 0; i < 2; i++) {
    map(&t, GP_OP_relu);
    gp_param *scale = toy_param(&t, SHAPE(3, 1, 1), false, true);
    t.value = toy_op2(&t, GP_OP_mul, t.value, toy_use(&t, scale));
    image_op(&t);
  }
  t.value = toy_op1(&t, GP_OP_copy, t.value);
  CHECK(copies(&t, one_stage, t.value) == 4); /* for each op that wants them, and the result */
  CHECK_STATUS(arrange(&t, one_stage, t.value), GP_OK);
  check_graph(&t);
  CHECK(copies(&t, one_stage, t.value) == 2); /* one of the batch, one of the result */
  CHECK(runs_through(&t, GP_OP_relu) && runs_through(&t, GP_OP_mul));
  toy_free(&t);
}

/* A view of flat rows is a copy where an op made the images channels-last. */
TEST(images_are_copied_where_rows_are_wanted) {
  toy t = toy_images(2, 3, 4, 5);
  toy_layer(&t, 0);
  image_op(&t);
  gp_attrs flat = {.reshape = {SHAPE(2, 60)}};
  t.value = toy_apply(&t, GP_OP_reshape, &flat, 1, &t.value);
  t.value = toy_op1(&t, GP_OP_copy, t.value);
  CHECK_STATUS(arrange(&t, one_stage, t.value), GP_OK);
  CHECK(copies(&t, one_stage, t.value) == 3);
  toy_free(&t);
}

TEST(eager_tensors_lie_as_infer_says) {
  gp_tensor *x, *out[GP_MAX_OUTPUTS];
  int n;
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(2, 3, 4, 5), &x), GP_OK);
  CHECK_STATUS(gp_tensor_fill(x, &(gp_init){GP_INIT_NORMAL, 0, 1}, 1, 1), GP_OK);
  CHECK_STATUS(gp_eager_apply(GP_OP_softmax, &toy_plain, &x, 1, out, &n), GP_OK);
  CHECK(gp_meta_is_channels_last(gp_tensor_meta(out[0])) && gp_tensor_equal(x, out[0]));
  gp_tensor *again[GP_MAX_OUTPUTS];
  CHECK_STATUS(gp_eager_apply(GP_OP_softmax, &toy_plain, out, 1, again, &n), GP_OK);
  CHECK(gp_tensor_equal(x, again[0]));
  gp_tensor_free(x);
  gp_tensor_free(out[0]);
  gp_tensor_free(again[0]);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(no_failed_allocation_leaks) {
  size_t live = gp_memory().live;
  int failures = 0;
  for (uint64_t n = 1;; n++, failures++) {
    gp_ref loss;
    toy t = there_and_back(&loss);
    gp_memory_fail_at(n);
    gp_status status = arrange(&t, one_stage, loss);
    gp_memory_fail_at(0);
    toy_free(&t);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
  }
  CHECK(failures > 10);
}

TEST_MAIN(orders_are_read_off_the_strides, orders_go_through_permuted_views_both_ways,
          a_chain_between_two_permuted_views_copies_nothing, dropout_takes_a_chain_as_it_lies,
          a_chain_that_ends_in_rows_stays_row_major, readers_of_rows_get_a_copy_of_their_own,
          copies_for_other_layers_remain_between_stages, what_leaves_the_graph_stays_row_major,
          copies_of_buffers_are_never_views, ops_between_images_keep_them_channels_last,
          images_are_copied_where_rows_are_wanted, eager_tensors_lie_as_infer_says,
          no_failed_allocation_leaks)
