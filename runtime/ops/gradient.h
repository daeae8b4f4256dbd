/* ops/gradient.h - shape steps that gradient rules take, beside the helpers of op.h. */
#ifndef GP_OPS_GRADIENT_H
#define GP_OPS_GRADIENT_H

#include "ops/op.h"

const gp_meta *gp_vjp_meta(const gp_vjp *v, gp_ref ref);
/* Reshape or expand a value to a shape; out is the value itself if it has that shape already. */
gp_status gp_vjp_reshape(gp_vjp *v, gp_ref a, const gp_shape *shape, gp_ref *out);
gp_status gp_vjp_expand(gp_vjp *v, gp_ref a, const gp_shape *shape, gp_ref *out);
/* Multiply by a constant c of a's dtype. */
gp_status gp_vjp_scale(gp_vjp *v, gp_ref a, double c, gp_ref *out);

/* Fail if a gradient flows into an output that has none (statistics kept for the backward op).
 * Errors: GP_EUNSUPPORTED. */
gp_status gp_vjp_first_output_only(const gp_vjp *v);

#endif
