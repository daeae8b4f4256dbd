/* ops/convolution/walk/conv_call.h - calls of both convolutions as jobs of conv_walk.h. */
#ifndef GP_OPS_CONVOLUTION_WALK_CONV_CALL_H
#define GP_OPS_CONVOLUTION_WALK_CONV_CALL_H

#include "ops/convolution/walk/conv_walk.h"

/* One unit is one block. transposed: the call is one of conv_transpose2d. */
gp_cut gp_conv_cut(const gp_call *call, bool transposed);
size_t gp_conv_call_scratch(const gp_call *call, bool transposed);
gp_status gp_conv_run(const gp_call *call, bool transposed, gp_span span);

#endif
