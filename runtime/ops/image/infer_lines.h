/* ops/image/infer_lines.h - sizes of images that are pooled, padded or sampled, checked with one
 * wording for each mistake. */
#ifndef GP_OPS_IMAGE_INFER_LINES_H
#define GP_OPS_IMAGE_INFER_LINES_H

#include "ops/gradient.h"
#include "ops/image/lines.h"
#include "ops/infer.h"

typedef struct gp_lines_wish {
  gp_lines_attrs attrs;
  const gp_list *size;
  bool ceil;
} gp_lines_wish;

/* Infer the shape that is made of an N x C x H x W image. Errors: GP_EINVAL, GP_ERANGE,
 * GP_ESHAPE. */
gp_status gp_lines_infer(gp_lines_wish wish, const gp_shape *image, gp_shape *result);
/* Check that in[0] is the gradient of what is made of an image of these sizes; *shape receives the
 * shape of the image. */
gp_status gp_lines_infer_dx(const gp_sig *sig, gp_op op, gp_lines_wish wish, const gp_list *image,
                            gp_shape *shape);
/* Check that in[0] is N x C x H x W. */
gp_status gp_lines_check_image(const gp_sig *sig, gp_op op);

/* Cut by lines of the result, N x H of them. */
gp_cut gp_lines_cut(const gp_call *call);

#endif
