/* tests/c/ops/contract_test.c - the ops do what their rows of ops.def say, and refuse what those
 * refuse. */
#include "op_samples.h"

#include <math.h>
#include <string.h>

#include "ops/infer.h"

/* ---- outputs --------------------------------------------------------------------------------- */

/* Returns the dtype of the first operand that shares the op's dtype, else of the first operand. */
static gp_dtype dtype_of_op(const gp_contract *row, const gp_sig *sig) {
  for (int i = 0; i < sig->n_in && row->operands[i].role; i++)
    if (row->operands[i].kind <= GP_KIND_ALIKE) return sig->in[i]->dtype;
  return sig->n_in > 0 ? sig->in[0]->dtype : GP_F32;
}

static gp_dtype asked_dtype(gp_op op, const gp_attrs *attrs) {
  for (const gp_attr *a = gp_op_attrs(op); a->name; a++)
    if (a->kind == GP_ATTR_DTYPE) return *(const gp_dtype *)((const char *)attrs + a->offset);
  CHECK(!"an op that is asked for a dtype has such an attribute");
  return GP_F32;
}

/* The dtype of output k. */
static gp_dtype expected(gp_op op, int k, const gp_sig *sig) {
  const gp_output *output = &gp_op_contract(op)->outputs[k];
  const gp_dtype is = sig->out[k].dtype;
  gp_dtype own = dtype_of_op(gp_op_contract(op), sig);
  switch (output->kind) {
  case GP_KIND_SAME: return own;
  case GP_KIND_WIDE: return gp_infer_wide(own);
  case GP_KIND_BOOL: return GP_BOOL;
  case GP_KIND_COUNT: return GP_I64;
  case GP_KIND_IDS: return is == GP_U8 || is == GP_I32 ? is : GP_I64;
  case GP_KIND_SUM: return gp_dtype_is_float(own) ? own : GP_I64;
  case GP_KIND_ASKED: return asked_dtype(op, sig->attr);
  case GP_KIND_PACKED: return GP_U8;
  default: CHECK(!"an output has one of these kinds"); return own;
  }
}

/* Returns the dtype of an operand where the op computes in `dtype`. */
static gp_dtype dtype_of(const gp_operand *operand, gp_dtype dtype) {
  switch (operand->kind) {
  case GP_KIND_WIDE: return gp_infer_wide(dtype);
  case GP_KIND_IDS:
  case GP_KIND_COUNT: return GP_I64;
  case GP_KIND_BOOL:
  case GP_KIND_MASK: return GP_BOOL;
  default: return dtype;
  }
}

static void check_outputs(const sample *s, gp_dtype dtype) {
  const gp_contract *row = gp_op_contract(s->op);
  gp_meta metas[GP_MAX_INPUTS];
  gp_sig sig = {.attr = &s->attrs};
  const gp_operand *operand = row->operands;
  for (; sig.n_in < GP_MAX_INPUTS && s->in[sig.n_in].kind; sig.n_in++) {
    const gp_dtype in = dtype_of(operand, dtype);
    CHECK_STATUS(gp_meta_make(in, &s->in[sig.n_in].shape, &metas[sig.n_in]), GP_OK);
    sig.in[sig.n_in] = &metas[sig.n_in];
    if (operand->presence != GP_REPEATED) operand++;
  }
  CHECK_STATUS(gp_op_infer(s->op, &sig), GP_OK);
  int count = 0;
  for (; row->outputs[count].role; count++)
    CHECK(count < sig.n_out && sig.out[count].dtype == expected(s->op, count, &sig));
  CHECK(count == sig.n_out);
}

TEST(ops_make_the_outputs_that_their_rows_name) {
  for (int i = 0; i < sample_count(); i++) {
    check_outputs(sample_at(i), GP_F32);
    check_outputs(sample_at(i), GP_BF16); /* statistics are wider than halves */
  }
}

/* ---- attributes ------------------------------------------------------------------------------ */

TEST(defaults_are_those_of_the_row_and_within_its_range) {
  for (int op = 0; op < GP_OP_COUNT; op++) {
    gp_attrs attrs;
    gp_attrs_default((gp_op)op, &attrs);
    for (const gp_attr *a = gp_op_attrs((gp_op)op); a->name; a++) {
      CHECK(a->offset < sizeof attrs);
      if (a->kind == GP_ATTR_REAL) {
        const double value = *(double *)gp_attr_field(&attrs, a);
        CHECK(value == a->otherwise && value >= a->least && value <= a->most);
      }
    }
  }
}

TEST(choices_are_found_by_name) {
  const gp_attr *mode = gp_op_attrs(GP_OP_gelu);
  CHECK(gp_attr_choice(mode, "erf") == GP_GELU_ERF);
  CHECK(gp_attr_choice(mode, "tanh") == GP_GELU_TANH);
  CHECK(gp_attr_choice(mode, "tan") == -1 && gp_attr_choice(mode, "") == -1);
  CHECK(gp_attr_choices(mode) == 2);
}

TEST(attributes_out_of_range_are_refused_by_name) {
  gp_meta meta;
  gp_attrs attrs = {.dropout = {NAN}};
  gp_sig sig = {.attr = &attrs, .n_in = 1, .in = {&meta}};
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(3), &meta), GP_OK);
  CHECK_STATUS(gp_op_infer(GP_OP_dropout, &sig), GP_ERANGE);
  CHECK_TEXT(gp_error_text(), "dropout: p is nan, expected 0 to 1");
  attrs = (gp_attrs){.gelu = {(gp_gelu_mode)2}};
  CHECK_STATUS(gp_op_infer(GP_OP_gelu, &sig), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "gelu: mode is number 2, expected one of: erf tanh");
  attrs = (gp_attrs){.cast = {(gp_dtype)99}};
  CHECK_STATUS(gp_op_infer(GP_OP_cast, &sig), GP_EDTYPE);
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Users know some operands by name, and others not. */
TEST(operands_of_a_wrong_dtype_are_refused) {
  gp_meta f32, f64, ids;
  const gp_attrs none = {0};
  CHECK_STATUS(gp_meta_make(GP_F32, &SHAPE(3, 3), &f32), GP_OK);
  CHECK_STATUS(gp_meta_make(GP_F64, &SHAPE(3, 3), &f64), GP_OK);
  CHECK_STATUS(gp_meta_make(GP_I64, &SHAPE(3, 3), &ids), GP_OK);
  gp_sig sig = {.attr = &none, .n_in = 2, .in = {&f32, &f64}};
  CHECK_STATUS(gp_op_infer(GP_OP_add, &sig), GP_EDTYPE);
  CHECK_TEXT(gp_error_text(), "add: f32 and f64 differ");
  CHECK_STATUS(gp_op_infer(GP_OP_linear, &sig), GP_EDTYPE);
  CHECK_TEXT(gp_error_text(), "linear: weight is f64, expected f32 (input is f32)");
  sig.in[1] = &ids;
  CHECK_STATUS(gp_op_infer(GP_OP_linear, &sig), GP_EDTYPE);
  CHECK_STATUS(
      gp_op_infer(GP_OP_cross_entropy_count, &(gp_sig){.attr = &none, .n_in = 1, .in = {&f32}}),
      GP_EDTYPE);
  sig.n_in = 3;
  CHECK_STATUS(gp_op_infer(GP_OP_add, &sig), GP_EINVAL);
}

TEST_MAIN(ops_make_the_outputs_that_their_rows_name,
          defaults_are_those_of_the_row_and_within_its_range, choices_are_found_by_name,
          attributes_out_of_range_are_refused_by_name, operands_of_a_wrong_dtype_are_refused)
