/* ops/loss/nll.cu - negative log likelihood of class ids on a GPU; see nll.c.
 *
 * The loss of half logarithms is f32. */
#include "ops/loss/rows.cuh"

enum { THREADS = 256 }; /* like elementwise ops: little work, a lot of memory */

/* ---- forward ------------------------------------------------------------------------------- */

struct nll_losses {
  gp_row_values x;
  gp_ids ids;
  void *loss;
  gp_dtype dtype; /* of the loss */
  int64_t rows, n;
};

/* A: the type it computes in. A thread takes a row. */
template <typename A> static __global__ void nll_kernel(nll_losses a) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  const int64_t id = gp_id_check(a.ids, row, true);
  A loss = 0;
  if (id >= 0) loss = -gp_row_value<A>(a.x, row * a.n + id);
  gp_put(a.loss, a.dtype, row, loss);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  const nll_losses a = {gp_row_values_of(&in[0]),
                        gp_targets_of(call, call->op.attr->nll.ignore),
                        out[0].data,
                        out[0].meta->dtype,
                        gp_rows_of(in[0].meta),
                        gp_width_of(in[0].meta)};
  if (a.rows == 0) return GP_OK;
  const dim3 grid((unsigned)((a.rows + THREADS - 1) / THREADS));
  if (a.dtype == GP_F64)
    GP_GPU_TRY(GP_LAUNCH(gpu, nll_kernel<double>, grid, THREADS, 0, a));
  else
    GP_GPU_TRY(GP_LAUNCH(gpu, nll_kernel<float>, grid, THREADS, 0, a));
  return gp_ids_finish(gpu, a.ids);
}

const gp_gpu_kernel gp_gpu_nll = {run, NULL};

/* ---- gradient ------------------------------------------------------------------------------ */

template <typename T> struct nll_gradients {
  gp_ids ids;
  gp_row_values dloss;
  T *dx;
  int64_t count, n; /* elements, in a row */
};

/* Write zeros, and minus the gradient of the row's loss at its class. */
template <typename T> static __global__ void nll_dx_kernel(nll_gradients<T> g) {
  typedef gp_compute<T> A;
  const int64_t threads = (int64_t)gridDim.x * blockDim.x;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < g.count; i += threads) {
    const int64_t row = i / g.n, at = i - row * g.n;
    A value = 0;
    if (gp_id_check(g.ids, row, at == 0) == at) value = -gp_row_value<A>(g.dloss, row);
    g.dx[i] = gp_store<T>(value);
  }
}

template <typename T> static gp_status backward(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  nll_gradients<T> g = {};
  g.ids = gp_targets_of(call, call->op.attr->nll_dx.ignore), g.dloss = gp_row_values_of(&in[2]);
  g.dx = (T *)out[0].data;
  g.n = gp_width_of(in[0].meta), g.count = gp_rows_of(in[0].meta) * g.n;
  if (g.count == 0) return GP_OK;
  GP_GPU_TRY(GP_LAUNCH(gpu, nll_dx_kernel<T>, gp_blocks(g.count, THREADS), THREADS, 0, g));
  return gp_ids_finish(gpu, g.ids);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return backward<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_nll_dx = {run_dx, NULL};
