/* engine/optimizer/alone.c - updates and clips parameters that no pipeline owns, on the script's
 * thread. Their gradients came from backward() of values that were computed eagerly.
 */
#include "base/tensor.h"
#include "engine/optimizer/optimizer.h"
#include "graph/param.h"
#include "optim/optim.h"

/* Look up the value and gradient of a parameter; false if it has no gradient, because it went into
 * no loss. */
static bool find_gradient(gp_param *param, gp_tensor **value, gp_tensor **grad) {
  gp_param_grad(param, grad);
  if (!*grad) return false;
  if (gp_param_value(param, value) == GP_OK) return true;
  gp_tensor_free(*grad);
  return false;
}

static gp_optim_slice slice_of(const gp_optimizer *o, const gp_optimizer_member *m,
                               gp_tensor *value, gp_tensor *grad) {
  gp_optim_slice slice = {.dtype = gp_param_meta(m->param)->dtype,
                          .n = gp_tensor_numel(value),
                          .value = gp_tensor_data(value),
                          .grad = gp_tensor_data(grad)};
  gp_moments_point(o, m, &slice);
  return slice;
}

/* Check the gradient of one parameter (finite not NULL), or update the parameter. */
static gp_status visit(const gp_optimizer *o, const gp_optimizer_member *m,
                       const gp_optim_hyper *hyper, bool *finite) {
  gp_tensor *value, *grad;
  gp_status status = GP_OK;
  if (!find_gradient(m->param, &value, &grad)) return GP_OK;
  gp_optim_slice slice = slice_of(o, m, value, grad);
  if (finite) {
    *finite = *finite && gp_optim_is_finite(slice.dtype, slice.n, slice.grad);
  } else {
    status = gp_optim_update(&hyper[m->group], o->steps + 1, &slice, 0, slice.n);
    gp_tensor_touch(value);
  }
  gp_tensor_free(value);
  gp_tensor_free(grad);
  return status;
}

static bool has_gradient(const gp_optimizer *o) {
  for (int32_t i = 0; i < o->member_count; i++) {
    gp_tensor *grad;
    gp_param_grad(o->members[i].param, &grad);
    gp_tensor_free(grad);
    if (grad) return true;
  }
  return false;
}

gp_status gp_optimizer_step_alone(gp_optimizer *o, const gp_optim_hyper *hyper, bool *skipped) {
  bool finite = true;
  if (!has_gradient(o))
    return gp_fail(GP_ESTATE,
                   "optimizer: the parameters belong to no live pipeline, and none has a "
                   "gradient: expected backward() of a loss before");
  GP_TRY(gp_moments_follow(o));
  for (int32_t i = 0; i < o->member_count; i++) GP_TRY(visit(o, &o->members[i], hyper, &finite));
  *skipped = !finite;
  if (!finite) return GP_OK;
  for (int32_t i = 0; i < o->member_count; i++) GP_TRY(visit(o, &o->members[i], hyper, NULL));
  o->steps++;
  return GP_OK;
}

double gp_alone_squares(const gp_param *param) {
  gp_tensor *grad;
  gp_param_grad(param, &grad);
  if (!grad) return 0;
  const double sum = gp_optim_sum_squares(gp_param_meta(param)->dtype, gp_tensor_numel(grad),
                                          gp_tensor_data(grad));
  gp_tensor_free(grad);
  return sum;
}

void gp_alone_scale(const gp_param *param, double factor) {
  gp_tensor *grad;
  gp_param_grad(param, &grad);
  if (!grad) return;
  gp_optim_scale(gp_param_meta(param)->dtype, gp_tensor_numel(grad), gp_tensor_data(grad), factor);
  gp_tensor_free(grad);
}
