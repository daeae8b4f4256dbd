/* device/cuda/kernel/meta.cuh - shapes, strides and single values for launchers and kernels.
 *
 * The plugin does not link base/, so this file has the functions on metas that launchers need.
 * Values with one element per row (means, ids, losses) are read and written by their dtype at run
 * time: so one kernel serves both halves, whose statistics are f32, and floats, whose statistics
 * have their own type. */
#ifndef GP_DEVICE_CUDA_META_CUH
#define GP_DEVICE_CUDA_META_CUH

#include "device/cuda/kernel/device.cuh"
#include "device/cuda/kernel/divisor.cuh"

/* ---- on the host --------------------------------------------------------------------------- */

static inline int64_t gp_numel_of(const gp_meta *meta) {
  int64_t n = 1;
  for (int d = 0; d < meta->shape.rank; d++) n *= meta->shape.dim[d];
  return n;
}

/* The size of the last dim; 1 for a scalar. */
static inline int64_t gp_width_of(const gp_meta *meta) {
  return meta->shape.rank > 0 ? meta->shape.dim[meta->shape.rank - 1] : 1;
}

/* The product of the dims before the last; also right if the width is 0. */
static inline int64_t gp_rows_of(const gp_meta *meta) {
  int64_t n = 1;
  for (int d = 0; d + 1 < meta->shape.rank; d++) n *= meta->shape.dim[d];
  return n;
}

static inline size_t gp_item_of(gp_dtype dtype) {
#define GP_ITEM(name, text, bytes, is_float) bytes,
  static const size_t bytes_of[] = {GP_DTYPE_LIST(GP_ITEM)};
#undef GP_ITEM
  return bytes_of[dtype];
}

/* ---- strides ------------------------------------------------------------------------------- */

/* Dims with their strides in elements, outermost first. Dims of size 1 are left out, and adjacent
 * dims that are contiguous are merged, so a contiguous value has at most one dim. Passed to kernels
 * by value. */
struct gp_strides {
  int rank;
  gp_wide_divisor size[GP_MAX_RANK];
  int64_t stride[GP_MAX_RANK];
};

static inline void gp_strides_push(gp_strides *list, int64_t size, int64_t stride) {
  const int last = list->rank - 1;
  if (size == 1) return;
  if (last >= 0 && list->stride[last] == size * stride) {
    list->size[last] = gp_wide_divisor_make(list->size[last].by * size);
    list->stride[last] = stride;
    return;
  }
  list->size[list->rank] = gp_wide_divisor_make(size);
  list->stride[list->rank++] = stride;
}

/* The strides of a meta's first `dims` dims. */
static inline gp_strides gp_strides_of(const gp_meta *meta, int dims) {
  gp_strides list = {};
  for (int d = 0; d < dims; d++) gp_strides_push(&list, meta->shape.dim[d], meta->stride[d]);
  return list;
}

/* The elements from one row to the next: the width, or more where rows are padded (graph/pad.c). */
static inline int64_t gp_row_distance(const gp_meta *meta) {
  const int last = meta->shape.rank - 1;
  const gp_strides rows = gp_strides_of(meta, last > 0 ? last : 0);
  return rows.rank == 1 ? rows.stride[0] : gp_width_of(meta);
}

static inline bool gp_is_flat(const gp_meta *meta) {
  const gp_strides list = gp_strides_of(meta, meta->shape.rank);
  return list.rank == 0 || (list.rank == 1 && list.stride[0] == 1) || gp_numel_of(meta) == 0;
}

/* The offset of element `index` (row-major). */
static __device__ inline int64_t gp_offset_of(const gp_strides &list, int64_t index) {
  int64_t offset = 0;
#pragma unroll 1
  for (int d = list.rank - 1; d > 0; d--) {
    const int64_t rest = gp_wide_divide(index, list.size[d]);
    offset += (index - rest * list.size[d].by) * list.stride[d];
    index = rest;
  }
  return list.rank > 0 ? offset + index * list.stride[0] : 0;
}

/* ---- single values ------------------------------------------------------------------------- */

template <typename A>
static __device__ inline A gp_get(const void *data, gp_dtype dtype, int64_t i) {
  switch (dtype) {
  case GP_F32: return (A)((const float *)data)[i];
  case GP_F64: return (A)((const double *)data)[i];
  case GP_BF16: return (A)gp_load(((const gp_bf16 *)data)[i]);
  case GP_F16: return (A)gp_load(((const gp_f16 *)data)[i]);
  case GP_I64: return (A)((const int64_t *)data)[i];
  case GP_I32: return (A)((const int32_t *)data)[i];
  default: return (A)((const uint8_t *)data)[i];
  }
}

template <typename A>
static __device__ inline void gp_put(void *data, gp_dtype dtype, int64_t i, A value) {
  switch (dtype) {
  case GP_F32: ((float *)data)[i] = (float)value; break;
  case GP_F64: ((double *)data)[i] = (double)value; break;
  case GP_BF16: ((gp_bf16 *)data)[i] = gp_store<gp_bf16>((float)value); break;
  case GP_F16: ((gp_f16 *)data)[i] = gp_store<gp_f16>((float)value); break;
  default: ((int64_t *)data)[i] = (int64_t)value; break;
  }
}

/* A destination for results that are few compared with their inputs. */
struct gp_sink {
  void *data;
  gp_dtype dtype;
  bool accumulate;
};

template <typename A> static __device__ inline void gp_sink_put(gp_sink to, int64_t i, A value) {
  if (to.accumulate) value = gp_get<A>(to.data, to.dtype, i) + value;
  gp_put(to.data, to.dtype, i, value);
}

static inline gp_sink gp_sink_of(const gp_call *call, int k) {
  return {call->out[k].data, call->out[k].meta->dtype, call->accumulate};
}

#endif
