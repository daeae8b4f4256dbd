/* ops/channels/infer.h - checks of images and of their statistics with one wording, and the cut of
 * kernels by parts. */
#ifndef GP_OPS_CHANNELS_INFER_H
#define GP_OPS_CHANNELS_INFER_H

#include "ops/channels/channels.h"
#include "ops/infer.h"

/* Check that in[i] is N x C x H x W. Errors: GP_ESHAPE. */
static inline gp_status gp_channels_check_image(const gp_sig *sig, gp_op op, int i) {
  static const gp_shape any = {4, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  return gp_operand_shape(sig, op, i, &any, -1);
}

/* Check the image in[image] with the statistics in[mean], [S, G]. Errors: GP_ESHAPE. */
gp_status gp_channels_check(const gp_sig *sig, gp_op op, int image, int mean);
gp_channels gp_channels_of_call(const gp_call *call, int image, int mean);
/* [lists, S P, C] */
gp_shape gp_channels_parts_shape(const gp_channels *c, int64_t lists);

/* One unit is one part; all sets are cut. */
static inline gp_cut gp_channels_cut(const gp_channels *c) {
  return (gp_cut){.units = c->sets * c->parts, .grain = 1};
}

#endif
