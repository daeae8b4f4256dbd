/* ops/shape/boxes.h - the strided copy of a span of rows, shared by copy, cast and assign. */
#ifndef GP_OPS_SHAPE_BOXES_H
#define GP_OPS_SHAPE_BOXES_H

#include "ops/op.h"

/* Write the units of out[0] from `from`, which broadcasts to its shape; converts dtypes. */
void gp_copy_units(const gp_call *call, gp_span span, const gp_arg *from);
/* Cut out[0] into blocks of rows. If the two sides are dense along different dims, a block is at
 * least as many steps of either dim as a tile: else each block would read (or write) a few bytes of
 * every cache line. */
gp_cut gp_copy_cut(const gp_call *call);
/* The kernel of copy and cast: out[0] from in[0]. */
gp_status gp_copy_run(const gp_call *call, gp_span span);

#endif
