/* ops/shape/concat.cu - values one behind the other along a dim, on a GPU; any one dtype.
 *
 * Around the dim, inputs and result are rows, and each input is a box of columns of the result: one
 * launch an input. */
#include "ops/axis.h"
#include "ops/shape/boxes.cuh"

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *out = &call->op.out[0];
  const int64_t dim = call->op.attr->concat.dim;
  const gp_axis whole = gp_axis_of(&out->meta->shape, dim);
  const int64_t width = whole.size * whole.inner;
  char *column = (char *)out->data;
  for (int i = 0; i < call->op.n_in; i++) {
    const int64_t part = call->op.in[i].meta->shape.dim[dim] * whole.inner;
    const gp_meta to = gp_rows_meta(out->meta->dtype, whole.outer, part, width);
    const gp_meta from = gp_rows_meta(out->meta->dtype, whole.outer, part, part);
    const gp_arg box = {column, &to}, input = {call->op.in[i].data, &from};
    GP_GPU_TRY(gp_move(gpu, &box, &input));
    column += part * (int64_t)gp_item_of(out->meta->dtype);
  }
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_concat = {run, NULL};
