/* ops/op.c - the table of ops, made from ops.def, and what is asked of it by number or by name.
 *
 * The table holds pointers because every definition lives in its op's own file; a row without a
 * definition does not link. */
#include "ops/op.h"

#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "ops/contract.h"
#include "ops/shape/reshape.h"

#define GP_OP(name, ...) &gp_def_##name,
static const gp_op_def *const table[] = {
#include "ops/rows.def"
};
#undef GP_OP
_Static_assert(sizeof table / sizeof table[0] == GP_OP_COUNT, "a row for every op");

const gp_op_def *gp_op_get(gp_op op) {
  GP_ASSERT((unsigned)op < GP_OP_COUNT);
  return table[op];
}

const char *gp_op_name(gp_op op) { return (unsigned)op < GP_OP_COUNT ? table[op]->name : "?"; }

gp_status gp_op_find(const char *name, gp_op *op) {
  for (int i = 0; i < GP_OP_COUNT; i++)
    if (strcmp(table[i]->name, name) == 0) {
      *op = (gp_op)i;
      return GP_OK;
    }
  return gp_fail(GP_EINVAL, "op: there is no op named \"%s\"", name);
}

/* Errors: GP_EINVAL names both numbers. */
static gp_status check_count(const gp_op_def *def, int n_in) {
  if (n_in >= def->min_in && n_in <= def->max_in) return GP_OK;
  if (def->min_in == def->max_in)
    return gp_fail(GP_EINVAL, "got %d inputs, expected %d", n_in, def->min_in);
  return gp_fail(GP_EINVAL, "got %d inputs, expected %d to %d", n_in, def->min_in, def->max_in);
}

/* The op's name goes in front of every text here, so that the texts of infer need not carry it. */
gp_status gp_op_infer(gp_op op, gp_sig *sig) {
  if ((unsigned)op >= GP_OP_COUNT) return gp_fail(GP_EINVAL, "op: there is no op %d", (int)op);
  const gp_op_def *def = table[op];
  gp_status status = check_count(def, sig->n_in);
  sig->n_out = 0;
  if (status == GP_OK) status = gp_contract_check_operands(op, sig);
  if (status == GP_OK) status = gp_contract_check_attrs(op, sig->attr);
  if (status == GP_OK) status = def->infer(sig);
  return status == GP_OK ? GP_OK : gp_fail_prefix(status, def->name);
}

/* A reshape whose target is wrong gets no copy: infer will say what is wrong. */
static bool reshape_needs_copy(const gp_shape *asked, const gp_meta *meta) {
  gp_shape to;
  return gp_reshape_target(asked, &meta->shape, &to) == GP_OK && !gp_reshape_is_view(meta, &to);
}

bool gp_op_needs_copy(gp_op op, const gp_attrs *attrs, int input, const gp_meta *meta) {
  const gp_op_def *def = table[op];
  if (op == GP_OP_reshape) return input == 0 && reshape_needs_copy(&attrs->reshape.to, meta);
  if (def->flags & (GP_OP_VIEW | GP_OP_STRIDED)) return false;
  return !gp_meta_is_contiguous(meta);
}
