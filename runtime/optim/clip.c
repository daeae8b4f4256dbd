/* optim/clip.c - clipping of gradients by their joint norm, for loops that call it between the
 * backward pass and the update. */
#include <math.h>

#include "base/tensor.h"
#include "optim/optim.h"

static gp_status check_tensor(const gp_tensor *tensor) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  if (meta->dtype != GP_F32 && meta->dtype != GP_F64)
    return gp_fail(GP_EDTYPE, "clip_grad_norm: a gradient is %s, expected f32 or f64",
                   gp_dtype_name(meta->dtype));
  if (!gp_meta_is_contiguous(meta))
    return gp_fail(GP_EINVAL, "clip_grad_norm: a gradient has gaps, expected a contiguous tensor");
  return GP_OK;
}

gp_status gp_tensor_clip_norm(gp_tensor *const *tensors, size_t count, double max, double *norm) {
  if (!(max >= 0)) return gp_fail(GP_EINVAL, "clip_grad_norm: max is %g, expected >= 0", max);
  for (size_t i = 0; i < count; i++) GP_TRY(check_tensor(tensors[i]));
  double squares = 0;
  for (size_t i = 0; i < count; i++)
    squares += gp_optim_sum_squares(gp_tensor_meta(tensors[i])->dtype, gp_tensor_numel(tensors[i]),
                                    gp_tensor_data(tensors[i]));
  *norm = sqrt(squares);
  double factor = max / (*norm + 1e-6);
  for (size_t i = 0; i < count && factor < 1; i++)
    gp_optim_scale(gp_tensor_meta(tensors[i])->dtype, gp_tensor_numel(tensors[i]),
                   gp_tensor_data(tensors[i]), factor);
  return GP_OK;
}
