/* ops/apply.c - what must be known before an op is applied: the types of its outputs, and the order
 * that its inputs must have.
 *
 * Eager tensors and traces call the same functions, so that a script sees the same text and the
 * same strides in both. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/contract.h"
#include "ops/op.h"
#include "ops/shape/reshape.h"

/* Errors: GP_EINVAL names both numbers. */
static gp_status check_count(const gp_op_def *def, int n_in) {
  if (n_in >= def->min_in && n_in <= def->max_in) return GP_OK;
  if (def->min_in == def->max_in)
    return gp_fail(GP_EINVAL, "got %d inputs, expected %d", n_in, def->min_in);
  return gp_fail(GP_EINVAL, "got %d inputs, expected %d to %d", n_in, def->min_in, def->max_in);
}

/* Infer the types of an op's outputs. The op's name goes in front of every text here, so the texts
 * of infer need not carry it. */
gp_status gp_op_infer(gp_op op, gp_sig *sig) {
  if ((unsigned)op >= GP_OP_COUNT) return gp_fail(GP_EINVAL, "op: there is no op %d", (int)op);
  const gp_op_def *def = gp_op_get(op);
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

gp_copy gp_op_needs_copy(gp_op op, const gp_attrs *attrs, int input, const gp_meta *meta) {
  unsigned flags = gp_op_get(op)->flags;
  if (op == GP_OP_reshape)
    return input == 0 && reshape_needs_copy(&attrs->reshape.to, meta) ? GP_COPY_ROW_MAJOR
                                                                      : GP_COPY_NONE;
  if (flags & GP_OP_CHANNELS_LAST && meta->shape.rank == 4 && !gp_op_takes_packed(op, input))
    return gp_meta_is_channels_last(meta) ? GP_COPY_NONE : GP_COPY_CHANNELS_LAST;
  if (flags & (GP_OP_VIEW | GP_OP_STRIDED)) return GP_COPY_NONE;
  return gp_meta_is_contiguous(meta) ? GP_COPY_NONE : GP_COPY_ROW_MAJOR;
}
