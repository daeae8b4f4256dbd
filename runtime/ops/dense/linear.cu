/* ops/dense/linear.cu - y = x w^T + b and its two gradients: one product each, of all rows.
 *
 * The product adds the bias as it is written. Some products cannot: f64, for which the library has
 * no such epilogue, K = 0, which is no product, and others that the library refuses. Their rows are
 * filled with the bias first, as on the CPU. */
#include "ops/dense/dense.cuh"

/* ---- rows of bias -------------------------------------------------------------------------- */

enum { FILL_BLOCK = 256 }; /* threads: full occupancy, since it uses hardly any registers */

/* Fill y [rows, N] with bias [N]; rows lie `distance` apart, in a y of `count` elements. W is a
 * type of the elements' size: they are only moved. */
template <typename W>
static __global__ void fill_rows(W *y, const W *bias, int64_t n, int64_t distance, int64_t count) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    if (i % distance < n) y[i] = bias[i % distance];
}

template <typename W> static gp_status fill_words(gp_gpu *gpu, const gp_gpu_gemm *g) {
  const int64_t count = g->m * g->ldd;
  return GP_LAUNCH(gpu, fill_rows<W>, gp_blocks(count, FILL_BLOCK), FILL_BLOCK, 0, (W *)g->d,
                   (const W *)g->bias, g->n, g->ldd, count);
}

static gp_status fill(gp_gpu *gpu, const gp_gpu_gemm *g) {
  if (g->m == 0 || g->n == 0) return GP_OK;
  switch (gp_item_of(g->d_type)) {
  case 8: return fill_words<uint64_t>(gpu, g);
  case 4: return fill_words<uint32_t>(gpu, g);
  default: return fill_words<uint16_t>(gpu, g);
  }
}

/* ---- linear -------------------------------------------------------------------------------- */

static bool needs_filling(const gp_gpu_gemm *g) {
  return g->biased && (g->k == 0 || g->type == GP_F64);
}

/* The other way: a product that is added to rows that hold the bias already. */
static gp_gpu_gemm without_bias(const gp_gpu_gemm *g) {
  gp_gpu_gemm plain = *g;
  plain.biased = false, plain.accumulate = true;
  return plain;
}

/* Prepare the other way too: a run may be refused. */
static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_gpu_gemm g = gp_linear_product(call), plain = without_bias(&g);
  *scratch = 0;
  const gp_status status =
      needs_filling(&g) ? GP_EUNSUPPORTED : gp_product_prepare(gpu, &g, scratch);
  const bool other = g.biased && (status == GP_OK || status == GP_EUNSUPPORTED);
  const gp_other_way way(gpu, status);
  return other ? gp_product_prepare(gpu, &plain, scratch) : status;
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_gpu_gemm g = gp_linear_product(&call->op), plain = without_bias(&g);
  const gp_status status =
      needs_filling(&g) ? GP_EUNSUPPORTED : gp_product_run(gpu, &g, call->scratch);
  if (status != GP_EUNSUPPORTED) return status;
  GP_GPU_TRY(fill(gpu, &g));
  return gp_product_run(gpu, &plain, call->scratch);
}

const gp_gpu_kernel gp_gpu_linear = {run, prepare};

/* ---- gradient of the input ----------------------------------------------------------------- */

static gp_status prepare_dx(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_gpu_gemm g = gp_linear_dx_product(call);
  *scratch = 0;
  return gp_product_prepare(gpu, &g, scratch);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_gpu_gemm g = gp_linear_dx_product(&call->op);
  return gp_product_run(gpu, &g, call->scratch);
}

const gp_gpu_kernel gp_gpu_linear_dx = {run_dx, prepare_dx};

/* ---- gradient of the weight ---------------------------------------------------------------- */

static gp_status prepare_dw(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_gpu_gemm g = gp_linear_dw_product(call);
  *scratch = 0;
  return gp_product_prepare(gpu, &g, scratch);
}

static gp_status run_dw(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_gpu_gemm g = gp_linear_dw_product(&call->op);
  return gp_product_run(gpu, &g, call->scratch);
}

const gp_gpu_kernel gp_gpu_linear_dw = {run_dw, prepare_dw};
