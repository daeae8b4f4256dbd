/* ops/shape/pad.cu - zeros before and behind a value along one dim, on a GPU; any dtype.
 *
 * Around the dim, the result is rows of zeros | x | zeros: each of them is a box of its columns. */
#include "ops/axis.h"
#include "ops/shape/boxes.cuh"

/* Fill `part` columns of out from `first` on: with x, or with zeros if x is NULL. */
static gp_status fill_columns(gp_gpu *gpu, const gp_call *op, int64_t first, int64_t part,
                              const gp_arg *x) {
  const gp_arg *out = &op->out[0];
  const gp_dtype dtype = out->meta->dtype;
  const gp_axis axis = gp_axis_of(&out->meta->shape, op->attr->pad.dim);
  const gp_meta to = gp_rows_meta(dtype, axis.outer, part * axis.inner, axis.size * axis.inner);
  const gp_arg box = {(char *)out->data + first * axis.inner * (int64_t)gp_item_of(dtype), &to};
  if (!x) return gp_clear(gpu, &box);
  const gp_meta from = gp_rows_meta(dtype, axis.outer, part * axis.inner, part * axis.inner);
  const gp_arg input = {x->data, &from};
  return gp_move(gpu, &box, &input);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_call *op = &call->op;
  const gp_attr_pad *pad = &op->attr->pad;
  const int64_t dim = pad->dim, start = pad->start, full = pad->full;
  const int64_t size = op->in[0].meta->shape.dim[dim];
  GP_GPU_TRY(fill_columns(gpu, op, 0, start, NULL));
  GP_GPU_TRY(fill_columns(gpu, op, start, size, &op->in[0]));
  return fill_columns(gpu, op, start + size, full - start - size, NULL);
}

const gp_gpu_kernel gp_gpu_pad = {run, NULL};
