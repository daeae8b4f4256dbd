/* ops/reduce/extreme.h - the search for the largest element along a dim, shared by max and
 * argmax. */
#ifndef GP_OPS_REDUCE_EXTREME_H
#define GP_OPS_REDUCE_EXTREME_H

#include "ops/op.h"

/* Infer the shape of the results: without the dim, or with 1 in its place if `keep`. Errors: an
 * empty dim has no largest element. */
gp_status gp_extreme_shape(const gp_sig *sig, gp_shape *shape);
gp_cut gp_extreme_cut(const gp_call *call);
/* Write the positions (from 1), and the values unless NULL, of the results in the span. */
void gp_extreme_run(const gp_call *call, gp_span span, void *values, int64_t *positions);
gp_cost gp_extreme_cost(const gp_sig *sig);

#endif
