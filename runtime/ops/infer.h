/* ops/infer.h - the checks that many shape inferences share, with one wording each.
 *
 * gp_op_infer puts the op's name in front, so the texts here begin with what is wrong. Dimensions
 * are counted from 1 in texts, as people who read them do. */
#ifndef GP_OPS_INFER_H
#define GP_OPS_INFER_H

#include "ops/op.h"

/* Inputs first .. n_in - 1 have one dtype. Errors: GP_EDTYPE. */
gp_status gp_infer_same_dtype(const gp_sig *sig, int first);
/* Inputs first .. n_in - 1 have one dtype, and it is f32 or f64. Errors: GP_EDTYPE. */
gp_status gp_infer_computes(const gp_sig *sig, int first);
/* The shape that all inputs broadcast to, as in NumPy. Errors: GP_ESHAPE names both shapes. */
gp_status gp_infer_broadcast(const gp_sig *sig, gp_shape *shape);
/* Two inputs have equal shapes. Errors: GP_ESHAPE. */
gp_status gp_infer_same_shape(const gp_sig *sig, int a, int b);
/* dim (from 0) is a dimension of the shape. Errors: GP_ERANGE. */
gp_status gp_infer_dim(const gp_shape *shape, int64_t dim);
/* The shape without the dims of the mask (0: all), or with 1 in their place. */
gp_status gp_infer_reduced(const gp_shape *shape, const gp_attrs *attrs, gp_shape *reduced);
/* Read `rank, dims` from attributes: i[0] and i[1..]. Errors: GP_ESHAPE. */
gp_status gp_infer_attr_shape(const gp_attrs *attrs, gp_shape *shape);
/* Append a contiguous output. */
gp_status gp_infer_out(gp_sig *sig, gp_dtype dtype, const gp_shape *shape);
/* One output like input i. */
gp_status gp_infer_like(gp_sig *sig, int i);

/* One output that sees in[0]'s memory under another shape: strides as given, the same offset. */
gp_status gp_infer_view(gp_sig *sig, const gp_shape *shape, const int64_t *stride);

/* Cost of touching every input and output once, with flop operations per element of out[0]. */
gp_cost gp_cost_elements(const gp_sig *sig, double flop);
gp_cost gp_cost_copy(const gp_sig *sig);
gp_cost gp_cost_none(const gp_sig *sig); /* of views */

#endif
