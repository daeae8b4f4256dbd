/* ops/convolution/walk/conv_call.h - calls of conv2d and conv_transpose2d as jobs of conv_walk.h. */
#ifndef GP_OPS_CONVOLUTION_WALK_CONV_CALL_H
#define GP_OPS_CONVOLUTION_WALK_CONV_CALL_H

#include "ops/convolution/walk/conv_walk.h"

/* weight: that of the call where it is packed, else NULL until gp_conv_run has packed it. */
gp_conv_job gp_conv_job_of(const gp_call *call, gp_conv c, bool transposed, bool packed);
/* One unit a block. */
gp_cut gp_conv_cut(const gp_conv_job *job);
size_t gp_conv_call_scratch(const gp_call *call, const gp_conv_job *job);
gp_status gp_conv_run(const gp_call *call, gp_conv_job *job, gp_span span);

#endif
