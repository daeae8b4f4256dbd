/* ops/loss/targets.h - class ids of rows, as losses read them: in[1] beside in[0], [.., V]. */
#ifndef GP_OPS_LOSS_TARGETS_H
#define GP_OPS_LOSS_TARGETS_H

#include "base/status.h"
#include "base/tensor.h"
#include "ops/ids.h"
#include "ops/infer.h"

/* The attributes and operands, read once a piece. */
typedef struct gp_targets {
  const gp_call *call;
  const gp_arg *ids;
  int64_t classes;
  gp_maybe ignore;
  bool flat_ids;
} gp_targets;

static inline gp_targets gp_targets_of(const gp_call *call, gp_maybe ignore) {
  return (gp_targets){.call = call,
                      .ids = &call->in[1],
                      .classes = gp_meta_width(call->in[0].meta),
                      .ignore = ignore,
                      .flat_ids = gp_meta_is_contiguous(call->in[1].meta)};
}

static inline gp_ids_role gp_targets_role(const gp_call *call) {
  return (gp_ids_role){1, "class", gp_meta_width(call->in[0].meta), 0};
}

/* Return the class of a row, or -1 if the row is ignored. Errors: GP_ERANGE. */
static inline gp_status gp_target_class(const gp_targets *t, int64_t row, int64_t *class) {
  int64_t id = gp_id_at(t->ids, t->flat_ids ? row : gp_meta_offset(t->ids->meta, row));
  bool ignored = t->ignore.given && id == t->ignore.value;
  if (!ignored && (id < 0 || id >= t->classes)) {
    gp_ids_role role = gp_targets_role(t->call);
    return gp_id_fail(t->call, &role, row);
  }
  *class = ignored ? -1 : id;
  return GP_OK;
}

/* Check that operand 0 has a last dim of classes, and operand 1 the shape without it: *rows. */
static inline gp_status gp_targets_infer(const gp_sig *sig, gp_op op, gp_shape *rows) {
  GP_TRY(gp_operand_rank(sig, op, 0, 1));
  *rows = gp_shape_drop_last(&sig->in[0]->shape);
  return gp_operand_shape(sig, op, 1, rows, 0);
}

#endif
