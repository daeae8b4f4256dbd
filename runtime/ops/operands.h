/* ops/operands.h - what the heavy ops share around their kernels: checks of operands with one
 * wording, ids, cuts and costs.
 *
 * A check names the operand by its role and prints both shapes, e.g. "input is 32x128, expected
 * ?x256 (weight is 10x256)"; gp_op_infer puts the op's name before it. */
#ifndef GP_OPS_OPERANDS_H
#define GP_OPS_OPERANDS_H

#include "base/status.h"
#include "base/tensor.h"
#include "ops/op.h"

/* A dimension that may have any size, in an expected shape. */
enum { GP_ANY_DIM = -1 };

/* Check that the inputs in the bit mask have one dtype, f32 or f64. roles: a name for each input.
 * Errors: GP_EDTYPE. */
gp_status gp_operands_float(const gp_sig *sig, const char *const *roles, unsigned mask);
/* Check that input i holds ids: i64, i32 or u8. Errors: GP_EDTYPE. */
gp_status gp_operand_ids(const gp_sig *sig, const char *const *roles, int i);
/* Check the shape of input i. because: the input whose shape asks for it, printed too; -1: none.
 * Errors: GP_ESHAPE. */
gp_status gp_operand_shape(const gp_sig *sig, const char *const *roles, int i,
                           const gp_shape *expected, int because);
/* Check that input i has at least this rank. Errors: GP_ESHAPE. */
gp_status gp_operand_rank(const gp_sig *sig, const char *const *roles, int i, int rank);

/* The shape without its last dimension, and with another last dimension. Rank >= 1. */
gp_shape gp_shape_drop_last(const gp_shape *shape);
gp_shape gp_shape_with_last(const gp_shape *shape, int64_t last);

/* Set output k to a contiguous value. Errors: GP_ESHAPE. */
gp_status gp_output(gp_sig *sig, int k, gp_dtype dtype, const gp_shape *shape);

/* Where element `index` (row-major) of a strided or broadcast value lies, from its element 0. */
int64_t gp_meta_offset(const gp_meta *meta, int64_t index);

/* The id that lies `offset` elements from the first, whatever the integer dtype. */
int64_t gp_id_at(const gp_arg *ids, int64_t offset);
/* Fail with "<what> <id> at row R, position P is outside 0..count-1"; R and P count from 1, R in
 * the whole mini-batch. Ids of rank 1 are one a row: the position alone is printed then. */
gp_status gp_id_fail(const gp_call *call, const gp_arg *ids, int64_t index, const char *what,
                     int64_t count);

/* The cut of a row-wise op whose rows are those of meta. */
gp_cut gp_cut_rows(const gp_meta *meta);
/* Columns in pieces of 64: every piece walks all rows, so sums over rows keep one order. */
gp_cut gp_cut_columns(int64_t columns);
/* A cost with these floating-point operations; every operand is read or written once. */
gp_cost gp_cost_of(const gp_sig *sig, double flop);

/* Fail where a gradient flows into an output that has none (statistics kept for the backward op).
 * Errors: GP_EUNSUPPORTED. */
gp_status gp_vjp_first_output_only(const gp_vjp *v);

#endif
