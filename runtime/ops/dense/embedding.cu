/* ops/dense/embedding.cu - see embedding.c: rows of a table by id.
 *
 * Elements are only moved, so the kernel knows nothing but their size. A warp copies a row, 16
 * bytes a thread if rows allow that. The gradient of the table is in embedding_dw.cu. */
#include "ops/ids.cuh"
#include "device/cuda/kernel/lanes.cuh"

enum { ROWS = 8 }; /* of a block */

template <typename T> struct row_gather {
  gp_ids ids;
  const T *table;
  T *to;
  int64_t rows, width; /* width: in T */
};

/* Rows of ids that are out of range are zero. */
template <typename T> static __global__ void gather_kernel(row_gather<T> g) {
  const int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.y;
  if (row >= g.rows) return;
  const int64_t id = gp_id_check(g.ids, row, threadIdx.x == 0);
  const T *from = g.table + (id < 0 ? 0 : id) * g.width;
  T *to = g.to + row * g.width;
#pragma unroll 4
  for (int64_t j = threadIdx.x; j < g.width; j += GP_WARP) {
    T value = {};
    if (id >= 0) value = from[j];
    to[j] = value;
  }
}

/* bytes: of a row. */
template <typename T> static gp_status launch(gp_gpu *gpu, const gp_gpu_call *call, int64_t bytes) {
  const gp_arg *w = &call->op.in[1], *out = &call->op.out[0];
  const row_gather<T> g = {gp_ids_of(call, 0, w->meta->shape.dim[0]), (const T *)w->data,
                           (T *)out->data, gp_rows_of(out->meta), bytes / (int64_t)sizeof(T)};
  if (g.rows == 0) return GP_OK;
  GP_GPU_TRY(GP_LAUNCH(gpu, gather_kernel<T>, dim3((unsigned)((g.rows + ROWS - 1) / ROWS)),
                       dim3(GP_WARP, ROWS), 0, g));
  return gp_ids_finish(gpu, g.ids);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *w = &call->op.in[1], *out = &call->op.out[0];
  const int64_t item = (int64_t)gp_item_of(w->meta->dtype), bytes = w->meta->shape.dim[1] * item;
  if (bytes % 16 == 0 && gp_is_packed(w->data) && gp_is_packed(out->data))
    return launch<gp_pack<uint32_t>>(gpu, call, bytes);
  switch (item) {
  case 2: return launch<uint16_t>(gpu, call, bytes);
  case 4: return launch<uint32_t>(gpu, call, bytes);
  default: return launch<uint64_t>(gpu, call, bytes);
  }
}

const gp_gpu_kernel gp_gpu_embedding = {run, NULL};
