/* tests/c/ops/eager_test.c - the table of ops, eager application, dropout's numbers and the ops
 * that write a slot. */
#include "base/random/philox.h"
#include "op_support.h"
#include "ops/elements.h"

/* ---- the table ------------------------------------------------------------------------------ */

TEST(ops_are_found_by_name) {
  gp_op op;
  CHECK_STATUS(gp_op_find("sum_rows_dw", &op), GP_OK);
  CHECK(op == GP_OP_sum_rows_dw);
  CHECK_STATUS(gp_op_find("summ", &op), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "op: there is no op named \"summ\"");
  for (int i = 0; i < GP_OP_COUNT; i++) {
    CHECK_STATUS(gp_op_find(gp_op_name((gp_op)i), &op), GP_OK);
    CHECK(op == (gp_op)i);
  }
}

/* Eager calls and the engine rely on these facts without checking them. */
TEST(definitions_are_consistent) {
  for (int i = 0; i < GP_OP_COUNT; i++) {
    const gp_op_def *def = gp_op_get((gp_op)i);
    CHECK(def->min_in <= def->max_in && def->infer);
    if (def->cpu.run == NULL) continue;
    CHECK(def->cpu.cut && def->cost);
    CHECK(!(def->flags & GP_OP_VIEW));
  }
}

TEST(wrong_counts_and_numbers_are_refused) {
  gp_tensor *in[GP_MAX_INPUTS + 1], *out[GP_MAX_OUTPUTS];
  for (int i = 0; i <= GP_MAX_INPUTS; i++) in[i] = new_tensor(GP_F32, SHAPE(2));
  CHECK_STATUS(try_op(GP_OP_concat, &no_attrs, in, GP_MAX_INPUTS + 1, out), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "concat: got 9 inputs");
  CHECK_STATUS(try_op(GP_OP_where, &no_attrs, in, 2, out), GP_EINVAL);
  CHECK_STATUS(try_op(GP_OP_COUNT, &no_attrs, in, 2, out), GP_EINVAL);
  for (int i = 0; i <= GP_MAX_INPUTS; i++) gp_tensor_free(in[i]);
}

/* ---- inputs --------------------------------------------------------------------------------- */

/* sum reads only contiguous inputs; add and permute take them as they lie. */
TEST(strided_inputs_are_copied_for_ops_that_need_it) {
  gp_tensor *x = uniform(GP_F64, SHAPE(6, 5), -1, 1), *t = reversed(x);
  gp_tensor *whole = apply(GP_OP_copy, &no_attrs, t, NULL, NULL);
  CHECK(gp_op_needs_copy(GP_OP_sum, &no_attrs, 0, gp_tensor_meta(t)));
  CHECK(!gp_op_needs_copy(GP_OP_sum, &no_attrs, 0, gp_tensor_meta(x)));
  CHECK(!gp_op_needs_copy(GP_OP_add, &no_attrs, 0, gp_tensor_meta(t)));
  CHECK(!gp_op_needs_copy(GP_OP_permute, &no_attrs, 0, gp_tensor_meta(t)));
  gp_attrs rows = {.sum = {1}};
  gp_tensor *a = apply(GP_OP_sum, &rows, t, NULL, NULL),
            *b = apply(GP_OP_sum, &rows, whole, NULL, NULL);
  CHECK(same_bits(a, b));
  gp_tensor_free(x), gp_tensor_free(t), gp_tensor_free(whole), gp_tensor_free(a), gp_tensor_free(b);
}

/* ---- dropout -------------------------------------------------------------------------------- */

static gp_tensor *drop(gp_tensor *x, double p) {
  gp_attrs attrs = {.dropout = {p}};
  return apply(GP_OP_dropout, &attrs, x, NULL, NULL);
}

/* There are a hundred thousand draws: 500 is more than three standard deviations. */
TEST(dropout_keeps_its_share_and_its_bounds) {
  gp_tensor *x = uniform(GP_F32, SHAPE(100, 1000), 1, 1);
  gp_eager_seed(3);
  gp_tensor *y = drop(x, 0.3), *all = drop(x, 0), *none = drop(x, 1);
  int64_t kept = 0;
  for (int64_t i = 0; i < 100000; i++) {
    double v = gp_tensor_get_double(y, i);
    CHECK(v == 0 || v == (double)(float)(1 / 0.7));
    kept += v != 0;
    CHECK(gp_tensor_get_double(none, i) == 0);
  }
  CHECK(kept > 69500 && kept < 70500);
  CHECK(same_bits(all, x));
  gp_tensor *out[GP_MAX_OUTPUTS];
  CHECK_STATUS(try_op(GP_OP_dropout, &(gp_attrs){.dropout = {1.5}}, &x, 1, out), GP_ERANGE);
  CHECK_TEXT(gp_error_text(), "dropout: p is 1.5, expected 0 to 1");
  CHECK_STATUS(try_op(GP_OP_dropout, &(gp_attrs){.dropout = {NAN}}, &x, 1, out), GP_ERANGE);
  gp_tensor_free(x), gp_tensor_free(y), gp_tensor_free(all), gp_tensor_free(none);
}

/* The same seed gives the same numbers; each application gives new ones. */
TEST(eager_random_numbers_follow_seed_and_clock) {
  gp_tensor *x = uniform(GP_F32, SHAPE(300), 1, 1);
  gp_eager_seed(3);
  gp_tensor *a = drop(x, 0.5), *b = drop(x, 0.5);
  gp_eager_seed(3);
  gp_tensor *c = drop(x, 0.5);
  gp_eager_seed(4);
  gp_tensor *d = drop(x, 0.5);
  CHECK(same_bits(a, c) && !same_bits(a, b) && !same_bits(a, d));
  gp_tensor_free(x), gp_tensor_free(a), gp_tensor_free(b), gp_tensor_free(c), gp_tensor_free(d);
}

/* Drops from ones (rows x width), in a micro-batch of `step`. */
static void drop_rows(const gp_step_block *step, int64_t width, float *y) {
  gp_attrs attrs = {.random = 6, .dropout = {0.5}};
  gp_tensor *x = uniform(GP_F32, SHAPE(step->rows, width), 1, 1);
  gp_call call = {.attr = &attrs, .step = step, .n_in = 1, .n_out = 1};
  call.in[0] = (gp_arg){gp_tensor_data(x), gp_tensor_meta(x)};
  call.out[0] = (gp_arg){y, gp_tensor_meta(x)};
  CHECK_STATUS(run_pieces(&call, &gp_op_get(GP_OP_dropout)->cpu, 3), GP_OK);
  gp_tensor_free(x);
}

/* Twelve rows drawn at once equal the same rows in micro-batches of five and seven. */
TEST(the_mask_is_a_function_of_the_global_element) {
  float whole[12 * 37], parts[12 * 37];
  uint32_t words[12 * 37];
  drop_rows(&(gp_step_block){.seed = 9, .step = 2, .rows = 12}, 37, whole);
  drop_rows(&(gp_step_block){.seed = 9, .step = 2, .rows = 5}, 37, parts);
  drop_rows(&(gp_step_block){.seed = 9, .step = 2, .rows = 7, .first_row = 5}, 37, parts + 5 * 37);
  CHECK(memcmp(whole, parts, sizeof whole) == 0);
  gp_philox_words(9, 2, 6, 0, 12 * 37, words);
  for (int i = 0; i < 12 * 37; i++) CHECK((whole[i] != 0) == (words[i] >= 0x80000000u));
}

TEST(a_value_that_does_not_carry_rows_is_drawn_by_first_row_and_local_index) {
  gp_attrs attrs = {.random = 6, .dropout = {0.5}};
  const gp_step_block step = {.seed = 9, .step = 2, .rows = 4, .first_row = 3};
  gp_tensor *x = uniform(GP_F32, SHAPE(37), 1, 1), *y = new_tensor(GP_F32, SHAPE(37));
  uint32_t words[37];
  gp_call call = {.attr = &attrs, .step = &step, .n_in = 1, .n_out = 1};
  call.in[0] = (gp_arg){gp_tensor_data(x), gp_tensor_meta(x)};
  call.out[0] = (gp_arg){gp_tensor_data(y), gp_tensor_meta(y)};
  CHECK_STATUS(run_pieces(&call, &gp_op_get(GP_OP_dropout)->cpu, 0), GP_OK);
  gp_philox_words(9, 2, 6, UINT64_C(3) << GP_LOCAL_BITS, 37, words);
  for (int64_t i = 0; i < 37; i++)
    CHECK((gp_tensor_get_double(y, i) != 0) == (words[i] >= 0x80000000u));
  gp_tensor_free(x), gp_tensor_free(y);
}

/* Pieces begin and end anywhere in a block of random words. */
TEST(dropout_of_every_layout_is_cut_anywhere) {
  gp_attrs attrs = {.random = 1, .dropout = {0.25}};
  gp_tensor *x = uniform(GP_F32, SHAPE(9, 5, 30), -1, 1), *t = reversed(x);
  check_cut(GP_OP_dropout, &attrs, &x, 1);
  check_cut(GP_OP_dropout, &attrs, &t, 1);
  gp_tensor *line = uniform(GP_F64, SHAPE(5000), -1, 1);
  check_cut(GP_OP_dropout, &attrs, &line, 1);
  gp_tensor_free(x), gp_tensor_free(t), gp_tensor_free(line);
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* The output shares the slot's memory; a wrong shape is refused before anything is written. */
TEST(accumulate_and_assign_write_the_slot_itself) {
  gp_tensor *slot = uniform(GP_F32, SHAPE(3, 4), 1, 1), *g = uniform(GP_F32, SHAPE(3, 4), 2, 2);
  gp_tensor *a = apply(GP_OP_accumulate, &no_attrs, slot, g, NULL);
  CHECK(gp_tensor_data(a) == gp_tensor_data(slot) && gp_tensor_get_double(slot, 11) == 3);
  gp_tensor *row = uniform(GP_F32, SHAPE(4), 5, 5);
  gp_tensor *b = apply(GP_OP_assign, &no_attrs, slot, row, NULL);
  CHECK(gp_tensor_data(b) == gp_tensor_data(slot) && gp_tensor_get_double(slot, 11) == 5);
  gp_tensor *out[GP_MAX_OUTPUTS];
  CHECK_STATUS(try_op(GP_OP_assign, &no_attrs, (gp_tensor *const[]){row, slot}, 2, out), GP_ESHAPE);
  CHECK_TEXT(gp_error_text(), "assign: a value of shape 3x4 does not fit into 4");
  CHECK_STATUS(try_op(GP_OP_accumulate, &no_attrs, (gp_tensor *const[]){slot, row}, 2, out),
               GP_ESHAPE);
  gp_tensor_free(slot), gp_tensor_free(g), gp_tensor_free(row), gp_tensor_free(a),
      gp_tensor_free(b);
}

/* Slot and value share memory: without a copy in between, half of it would be overwritten. */
TEST(a_strided_slot_takes_its_own_transpose) {
  gp_tensor *x = new_tensor(GP_I32, SHAPE(40, 40)), *t = reversed(x);
  for (int64_t i = 0; i < 1600; i++) gp_tensor_set_int(x, i, i);
  gp_tensor_free(apply(GP_OP_assign, &no_attrs, t, x, NULL));
  for (int64_t i = 0; i < 1600; i++) CHECK(gp_tensor_get_int(t, i) == i);
  gp_tensor_free(x), gp_tensor_free(t);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* The first allocation fails, then the second, .. until the op succeeds. */
TEST(a_failed_allocation_loses_nothing) {
  gp_tensor *x = uniform(GP_F32, SHAPE(4, 5), -1, 1), *t = reversed(x);
  size_t live = gp_memory().live;
  gp_attrs attrs = {.max = {0}};
  int failures = 0;
  for (uint64_t n = 1;; n++) {
    gp_tensor *out[GP_MAX_OUTPUTS] = {0};
    gp_memory_fail_at(n);
    gp_status status = try_op(GP_OP_max, &attrs, &t, 1, out);
    gp_memory_fail_at(0);
    for (int i = 0; i < GP_MAX_OUTPUTS; i++) gp_tensor_free(out[i]);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
    failures++;
  }
  CHECK(failures >= 3); /* the contiguous copy and two outputs */
  gp_tensor_free(x), gp_tensor_free(t);
}

TEST_MAIN(ops_are_found_by_name, definitions_are_consistent, wrong_counts_and_numbers_are_refused,
          strided_inputs_are_copied_for_ops_that_need_it, dropout_keeps_its_share_and_its_bounds,
          eager_random_numbers_follow_seed_and_clock, the_mask_is_a_function_of_the_global_element,
          a_value_that_does_not_carry_rows_is_drawn_by_first_row_and_local_index,
          dropout_of_every_layout_is_cut_anywhere, accumulate_and_assign_write_the_slot_itself,
          a_strided_slot_takes_its_own_transpose, a_failed_allocation_loses_nothing)
