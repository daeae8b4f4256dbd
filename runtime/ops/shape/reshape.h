/* ops/shape/reshape.h - what code that inserts copies must know about reshape. */
#ifndef GP_OPS_SHAPE_RESHAPE_H
#define GP_OPS_SHAPE_RESHAPE_H

#include "ops/op.h"

/* Find the shape that the attributes ask for; one dim may be -1: what remains. Errors:
 * GP_ESHAPE. */
gp_status gp_reshape_target(const gp_shape *asked, const gp_shape *from, gp_shape *to);
/* Tell whether the value can be seen under the shape (of as many elements) without moving any. */
bool gp_reshape_is_view(const gp_meta *in, const gp_shape *to);

#endif
