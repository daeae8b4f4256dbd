/* tests/c/graph/late_test.c - what only leads to buffers is parted from the forward pass. */
#include "graph/late.h"
#include "graph/param.h"
#include "plan/toy.h"

static const int32_t one_stage[] = {0, 0};

/* A layer that adds its value to a buffer, and returns the value or, if asked, the sum. */
static toy toy_counter(bool returns, gp_ref *loss) {
  toy t = toy_new(4);
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_param *buffer = toy_param(&t, SHAPE(4, TOY_WIDTH), true, false);
  gp_ref seen = toy_use(&t, buffer), sum = toy_op2(&t, GP_OP_add, seen, t.value);
  toy_apply(&t, GP_OP_assign, &toy_plain, 2, (gp_ref[]){seen, sum});
  if (returns) t.value = sum;
  toy_tanh(&t);
  *loss = toy_loss(&t, 1);
  return t;
}

static gp_status part(toy *t, gp_ref loss, bool runs) {
  gp_gradient_root root = {.value = loss, .layer = 1, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&t->trace->graph, &root, 1), GP_OK);
  const gp_late_spec spec = {
      .exports = &loss, .export_count = 1, .runs = runs, .why = "two devices run it"};
  return gp_graph_part_late(&t->trace->graph, &spec);
}

static gp_stages *cut(const toy *t, gp_ref loss, bool drops) {
  const gp_cut_spec spec = {.graph = toy_graph(t),
                            .stage_of = one_stage,
                            .stage_count = 1,
                            .exports = &loss,
                            .export_count = 1,
                            .drops_late = drops};
  gp_stages *made = NULL;
  CHECK_STATUS(gp_stages_build(&spec, &made), GP_OK);
  return made;
}

/* Every node has to come after what it reads. */
static void check_order(const toy *t) {
  for (int32_t n = 0; n < toy_graph(t)->node_count; n++)
    for (int i = 0; i < toy_node(t, n)->n_in; i++) CHECK(toy_maker(t, toy_node(t, n)->in[i]) < n);
}

TEST(late_nodes_read_copies_that_the_forward_pass_makes) {
  gp_ref loss;
  toy t = toy_counter(false, &loss);
  CHECK_STATUS(part(&t, loss, true), GP_OK);
  check_order(&t);
  gp_stages *stages = cut(&t, loss, false);
  CHECK_OPS(&t, &stages->stages[0].forward, "linear tanh mse copy");
  CHECK_OPS(&t, &stages->stages[0].late, "copy add assign");
  const gp_node *record = toy_node(&t, stages->stages[0].forward.nodes[3]);
  CHECK(record->records && !record->late);
  CHECK(toy_node(&t, stages->stages[0].late.nodes[1])->in[1] == record->out);
  gp_stages_free(stages);
  toy_free(&t);
}

TEST(a_plan_that_does_not_train_drops_them) {
  gp_ref loss;
  toy t = toy_counter(false, &loss);
  CHECK_STATUS(part(&t, loss, false), GP_OK);
  gp_stages *stages = cut(&t, loss, true);
  CHECK_OPS(&t, &stages->stages[0].forward, "linear tanh mse");
  CHECK(stages->stages[0].late.count == 0);
  gp_stages_free(stages);
  toy_free(&t);
}

TEST(what_is_returned_may_not_be_late) {
  gp_ref loss;
  toy t = toy_counter(true, &loss);
  CHECK_STATUS(part(&t, loss, true), GP_EINVAL);
  CHECK(strstr(gp_error_text(), "layer 0: what it returns depends on a Buffer that forward writes, "
                                "and two devices run it: expected"));
  toy_free(&t);
}

/* The running statistics of a batch norm, which one op writes. */
TEST(an_op_that_writes_several_buffers_is_late) {
  toy t = toy_new(4);
  gp_param_spec batches = {.dtype = GP_I64, .number = 9, .buffer = true};
  toy_layer(&t, 0);
  toy_linear(&t);
  gp_param *mean = toy_param(&t, SHAPE(TOY_WIDTH), true, false);
  gp_param *variance = toy_param(&t, SHAPE(TOY_WIDTH), true, false);
  CHECK_STATUS(gp_param_new(&batches, &t.params[t.param_count++]), GP_OK);
  gp_ref sum = toy_apply(&t, GP_OP_sum, &(gp_attrs){.sum = {1, true}}, 1, &t.value);
  gp_ref in[5] = {toy_use(&t, mean), toy_use(&t, variance),
                  toy_use(&t, t.params[t.param_count - 1]), sum, sum};
  toy_apply(&t, GP_OP_move_stats, &(gp_attrs){.move_stats = {.rows = 4, .momentum = 0.5}}, 5, in);
  CHECK(gp_graph_writes_buffers(toy_graph(&t)));
  gp_ref seen = toy_use(&t, variance);
  CHECK(seen != in[1] && toy_node(&t, toy_maker(&t, seen))->snapshot);
  gp_ref loss = toy_loss(&t, 1);
  CHECK_STATUS(part(&t, loss, true), GP_OK);
  check_order(&t);
  gp_stages *stages = cut(&t, loss, false);
  CHECK_OPS(&t, &stages->stages[0].forward, "linear sum mse copy");
  CHECK_OPS(&t, &stages->stages[0].late, "move_stats");
  const gp_node *move = toy_node(&t, stages->stages[0].late.nodes[0]);
  for (int k = 0; k < 3; k++)
    CHECK(gp_graph_base(toy_graph(&t), move->out + k) == move->in[k] &&
          gp_graph_at(toy_graph(&t), move->in[k])->kind == GP_VALUE_PARAM);
  gp_stages_free(stages);
  toy_free(&t);
}

TEST(a_graph_without_assignments_writes_no_buffer) {
  gp_ref loss;
  toy t = toy_tower(4, 1, &loss), other = toy_counter(false, &loss);
  CHECK(!gp_graph_writes_buffers(toy_graph(&t)) && gp_graph_writes_buffers(toy_graph(&other)));
  toy_free(&t);
  toy_free(&other);
}

TEST_MAIN(late_nodes_read_copies_that_the_forward_pass_makes, a_plan_that_does_not_train_drops_them,
          what_is_returned_may_not_be_late, an_op_that_writes_several_buffers_is_late,
          a_graph_without_assignments_writes_no_buffer)
