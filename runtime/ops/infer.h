/* ops/infer.h - what the infer and cost functions of ops share: checks of shapes with one wording
 * per mistake, shapes of outputs, costs. Dtypes are checked before, by the op's row
 * (ops/contract.c).
 *
 * gp_op_infer puts the op's name in front, so the texts here begin with what is wrong. The operands
 * of light ops have no names ("shapes 2x3 and 4 differ"); those of heavy ops have roles ("input is
 * 32x128, expected ?x256 (weight is 10x256)"). Dimensions are counted from 1 in texts, as people
 * who read them do. */
#ifndef GP_OPS_INFER_H
#define GP_OPS_INFER_H

#include "ops/op.h"

enum {
  GP_ANY_DIM = -1,    /* a dimension of any size, in an expected shape */
  GP_SHAPE_TEXT = 192 /* characters: fits the longest shape of GP_MAX_RANK dims */
};

/* ---- operands without names ---------------------------------------------------------------- */

/* Find the shape that all inputs broadcast to, as in NumPy. Errors: GP_ESHAPE names both shapes. */
gp_status gp_infer_broadcast(const gp_sig *sig, gp_shape *shape);
/* Fold another shape into *shape as broadcasting does; return false if two sizes differ
 * and neither is 1. */
bool gp_shape_broadcast(gp_shape *shape, const gp_shape *other);
/* Check that two inputs have equal shapes. Errors: GP_ESHAPE. */
gp_status gp_infer_same_shape(const gp_sig *sig, int a, int b);
/* Check that dim (from 0) is a dimension of the shape. Errors: GP_ERANGE. */
gp_status gp_infer_dim(const gp_shape *shape, int64_t dim);

/* ---- operands of an op, whose row has their names ------------------------------------------ */

/* The dtype of statistics and of parameters' gradients: f32 for the halves, else the same. */
gp_dtype gp_infer_wide(gp_dtype dtype);
/* Return what the row calls operand i. */
const char *gp_op_role(gp_op op, int i);
/* Check that input i has this shape. because: the input whose shape demands it, printed too; -1:
 * none. Errors: GP_ESHAPE. */
gp_status gp_operand_shape(const gp_sig *sig, gp_op op, int i, const gp_shape *expected,
                           int because);
/* Check that input i, of kind PACKABLE, is not packed but of the dtype of in[0].
 * Errors: GP_EDTYPE. */
gp_status gp_operand_plain(const gp_sig *sig, gp_op op, int i);
/* Check that input i is a packed value of so many bytes. Errors: GP_ESHAPE. */
gp_status gp_operand_packed(const gp_sig *sig, gp_op op, int i, size_t bytes);
/* Check that input i has at least this rank. Errors: GP_ESHAPE. */
gp_status gp_operand_rank(const gp_sig *sig, gp_op op, int i, int rank);

/* ---- shapes -------------------------------------------------------------------------------- */

/* Drop the dims of the mask (0: all) from the shape, or put 1 in their place. */
gp_status gp_infer_reduced(const gp_shape *shape, int64_t dims, bool keep, gp_shape *reduced);
/* Return the shape without its last dimension, and with another last dimension. Rank >= 1. */
gp_shape gp_shape_drop_last(const gp_shape *shape);
gp_shape gp_shape_with_last(const gp_shape *shape, int64_t last);
/* Check that a shape that a caller gave has a possible rank. Errors: GP_ESHAPE. */
gp_status gp_infer_rank(const gp_shape *shape);

/* ---- outputs and costs --------------------------------------------------------------------- */

/* Append an opaque output of so many bytes (GP_KIND_PACKED). */
gp_status gp_infer_packed(gp_sig *sig, size_t bytes);
/* Check the attribute `wide`, columns of rows of which n have a meaning; 0: no padding.
 * Errors: GP_ERANGE. */
gp_status gp_infer_wide_rows(int64_t wide, int64_t n);
/* Append a contiguous output. Errors: GP_ESHAPE: more elements than can be counted. */
gp_status gp_infer_out(gp_sig *sig, gp_dtype dtype, const gp_shape *shape);
/* Append an output of four dimensions that lies channels-last. Errors: GP_ESHAPE. */
gp_status gp_infer_channels_last(gp_sig *sig, gp_dtype dtype, const gp_shape *shape);
/* Append an output like input i. */
gp_status gp_infer_like(gp_sig *sig, int i);
/* Append an output that views in[0]'s memory under another shape: strides as given,
 * the same offset. */
gp_status gp_infer_view(gp_sig *sig, const gp_shape *shape, const int64_t *stride);

/* Count so many floating-point operations in all; every operand is read or written once. */
gp_cost gp_cost_of(const gp_sig *sig, double flop);
/* The same, with `flop` operations per element of out[0]. */
gp_cost gp_cost_elements(const gp_sig *sig, double flop);
gp_cost gp_cost_copy(const gp_sig *sig); /* bytes only */
gp_cost gp_cost_none(const gp_sig *sig); /* for views */

#endif
