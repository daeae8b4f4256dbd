/* ops/channels/norm.h - what the ops that normalise channels share on a CPU: checks, and kernels
 * that a form (form.h) tells apart. */
#ifndef GP_OPS_CHANNELS_NORM_H
#define GP_OPS_CHANNELS_NORM_H

#include "ops/channels/form.h"
#include "ops/channels/infer.h"

/* Check that operands i, .. are [C] of the image in[image], or left out. */
gp_status gp_norm_check_columns(const gp_sig *sig, gp_op op, int image, int i);
/* Check a gradient in[0] of the image in[image], with the statistics behind it. */
gp_status gp_norm_check_gradient(const gp_sig *sig, gp_op op, int image);
/* [2, S P, C] for the image in[image]. */
gp_shape gp_norm_parts_shape(const gp_sig *sig, int image);

/* Pieces of work: parts of the image in[image]. */
gp_cut gp_norm_cut(const gp_call *call, int image);
/* Write out[0]: the norm of in[0], with what the form adds to it. */
gp_status gp_norm_run(const gp_call *call, gp_span span, const gp_norm_form *form);
/* Write the sums of in[0] to the last output; with a gate, write what passes it to out[0]. */
gp_status gp_norm_run_sums(const gp_call *call, gp_span span, const gp_norm_form *form);
/* Write out[0]: the gradient of the image. */
gp_status gp_norm_run_dx(const gp_call *call, gp_span span, const gp_norm_form *form);

#endif
