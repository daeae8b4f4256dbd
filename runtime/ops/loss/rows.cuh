/* ops/loss/rows.cuh - what losses of class ids read of a row on a GPU: its class, numbers. */
#ifndef GP_OPS_LOSS_ROWS_CUH
#define GP_OPS_LOSS_ROWS_CUH

#include "ops/ids.cuh"

/* An operand with one or two values a row, in any layout. */
struct gp_row_values {
  const void *data;
  gp_dtype dtype;
  gp_strides at;
};

static inline gp_row_values gp_row_values_of(const gp_arg *arg) {
  return {arg->data, arg->meta->dtype, gp_strides_of(arg->meta, arg->meta->shape.rank)};
}

template <typename A> static __device__ A gp_row_value(const gp_row_values &v, int64_t i) {
  return gp_get<A>(v.data, v.dtype, gp_offset_of(v.at, i));
}

/* Return the class ids, operand 1, with the id that attributes say is ignored. */
static inline gp_ids gp_targets_of(const gp_gpu_call *call, gp_maybe ignore) {
  gp_ids ids = gp_ids_of(call, 1, gp_width_of(call->op.in[0].meta));
  ids.has_ignore = ignore.given;
  ids.ignore = ignore.value;
  return ids;
}

#endif
