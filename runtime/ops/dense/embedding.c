/* ops/dense/embedding.c - rows of a table by id, and the gradient of the table.
 *
 * The gradient is cut by columns: each piece walks all ids in order for its own columns, so a row
 * that is met twice is summed in the order of the ids, with any number of threads. */
#include <string.h>

#include "ops/dense/dense.h"
#include "ops/ids.h"

/* ---- embedding ----------------------------------------------------------------------------- */

/* ids [..], weight [V, C] -> [.., C]. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_operand_shape(sig, GP_OP_embedding, 1, &(gp_shape){2, {GP_ANY_DIM, GP_ANY_DIM}}, -1));
  gp_shape out = sig->in[0]->shape;
  if (out.rank == GP_MAX_RANK)
    return gp_fail(GP_ESHAPE, "ids have %d dimensions, at most %d are possible", out.rank,
                   GP_MAX_RANK - 1);
  out.dim[out.rank++] = sig->in[1]->shape.dim[1];
  return gp_infer_out(sig, sig->in[1]->dtype, &out);
}

/* The gradient op cannot see V in its operands, so it is an attribute. Ids have no gradient. */
static gp_status vjp(gp_vjp *v) {
  if (!v->need[1] || v->dout[0] == GP_NONE) return GP_OK;
  gp_attrs attrs = {.embedding_dw = {.rows = gp_build_meta(v->builder, v->in[1])->shape.dim[0]}};
  return gp_build(v->builder, GP_OP_embedding_dw, &attrs, (gp_ref[]){v->dout[0], v->in[0]}, 2,
                  &v->din[1]);
}

static gp_cost cost(const gp_sig *sig) {
  double copied = (double)gp_meta_bytes(&sig->out[0]); /* the table is not read whole */
  return (gp_cost){0, 2 * copied + (double)gp_meta_bytes(sig->in[0])};
}

/* One row of the output is one id, whatever the rank of the ids. */
static gp_cut cut(const gp_call *call) {
  return (gp_cut){.units = gp_meta_rows(call->out[0].meta), .grain = GP_ROW_BLOCK};
}

static gp_ids_role role_of(const gp_call *call) {
  return (gp_ids_role){0, "id", call->in[1].meta->shape.dim[0], 0};
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_arg *ids = &call->in[0], *w = &call->in[1], *out = &call->out[0];
  const gp_ids_role role = role_of(call);
  int64_t c = w->meta->shape.dim[1];
  size_t bytes = (size_t)c * gp_dtype_size(w->meta->dtype);
  for (int64_t r = span.first; r < span.last; r++) {
    int64_t id = gp_id_at(ids, r);
    if (id < 0 || id >= role.count) return gp_id_fail(call, &role, r);
    if (bytes > 0) memcpy(gp_arg_at(out, r * c), gp_arg_at(w, id * c), bytes);
  }
  return GP_OK;
}

const gp_op_def gp_def_embedding = {GP_OP_ROW(embedding), .row_inputs = 1,
                                    .infer = infer,       .vjp = vjp,
                                    .cost = cost,         .cpu = {.cut = cut, .run = run},
                                    .ids = role_of};

/* ---- gradient of the table ----------------------------------------------------------------- */

/* dy [.., C], ids [..] -> dw [V, C]. */
static gp_status infer_dw(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_embedding_dw, 0, 1));
  gp_shape ids = gp_shape_drop_last(&sig->in[0]->shape);
  GP_TRY(gp_operand_shape(sig, GP_OP_embedding_dw, 1, &ids, 0));
  gp_shape out = {2, {sig->attr->embedding_dw.rows, gp_meta_width(sig->in[0])}};
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &out);
}

static gp_cost cost_dw(const gp_sig *sig) {
  return gp_cost_of(sig, (double)gp_meta_numel(sig->in[0]));
}

static gp_ids_role dw_role(const gp_call *call) {
  return (gp_ids_role){1, "id", call->attr->embedding_dw.rows, 0};
}

#define GP_REAL_SOURCE "ops/dense/embedding_dw.inc"
#include "ops/math/real.h"

static gp_status run_dw(const gp_call *call, gp_span span) {
  return GP_BY_REAL(call->in[0].meta->dtype, add_columns)(call, span);
}

const gp_op_def gp_def_embedding_dw = {GP_OP_ROW(embedding_dw), .infer = infer_dw, .cost = cost_dw,
                                       .cpu = {.cut = gp_cut_columns, .run = run_dw},
                                       .ids = dw_role};
