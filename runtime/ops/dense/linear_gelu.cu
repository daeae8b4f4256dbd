/* ops/dense/linear_gelu.cu - a linear layer and the GELU behind it on a GPU, and the way back.
 *
 * The product's epilogue does it if it can and if that is faster
 * (device/cuda/gemm/epilogue.c). Else the kernels of the two ops run one after the other: GELU
 * over the product, or its slope in place. */
#include "ops/dense/dense.cuh"

/* Written once, before main: C++ has no designators within designators. */
static gp_attrs by_tanh() {
  gp_attrs attrs = {};
  attrs.gelu.mode = GP_GELU_TANH;
  return attrs;
}

static const gp_attrs tanh_form = by_tanh();

/* ---- forward ------------------------------------------------------------------------------- */

/* x, w, b as for linear -> y, h; without h if nothing reads it. */
static gp_gpu_gemm with_gelu(const gp_call *call) {
  gp_gpu_gemm g = gp_linear_product(call);
  g.epilogue = GP_GEMM_GELU;
  g.keeps = call->n_out == 2;
  g.aux = g.keeps ? call->out[1].data : NULL;
  return g;
}

static gp_gpu_call product_of(const gp_call *call) {
  gp_gpu_call product = {};
  product.op = *call;
  product.op.out[0] = call->out[call->n_out - 1];
  product.op.n_out = 1;
  return product;
}

static gp_gpu_call gelu_of(const gp_call *call) {
  gp_gpu_call gelu = {};
  gelu.op.attr = &tanh_form;
  gelu.op.n_in = gelu.op.n_out = 1;
  gelu.op.in[0] = call->out[call->n_out - 1], gelu.op.out[0] = call->out[0];
  return gelu;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_gpu_gemm g = with_gelu(call);
  const gp_gpu_call product = product_of(call);
  size_t whole = 0;
  const gp_status status = gp_product_prepare(gpu, &g, &whole);
  if (status != GP_OK && status != GP_EUNSUPPORTED) return status;
  const gp_other_way way(gpu, status);
  GP_GPU_TRY(gp_gpu_linear.prepare(gpu, &product.op, scratch));
  if (*scratch < whole) *scratch = whole;
  return GP_OK;
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_gpu_gemm g = with_gelu(&call->op);
  const gp_gpu_call gelu = gelu_of(&call->op);
  gp_gpu_call product = product_of(&call->op);
  const gp_status status = gp_product_run(gpu, &g, call->scratch);
  if (status != GP_EUNSUPPORTED) return status;
  product.scratch = call->scratch;
  GP_GPU_TRY(gp_gpu_linear.run(gpu, &product));
  return gp_gpu_gelu.run(gpu, &gelu);
}

const gp_gpu_kernel gp_gpu_linear_gelu = {run, prepare};

/* ---- gradient of the input ------------------------------------------------------------------ */

/* dy, w, h -> dh. */
static gp_gpu_gemm with_slope(const gp_call *call) {
  gp_gpu_gemm g = gp_linear_dx_product(call);
  g.epilogue = GP_GEMM_GELU_DX;
  g.aux = call->in[2].data;
  return g;
}

static gp_gpu_call slope_of(const gp_call *call) {
  gp_gpu_call slope = {};
  slope.op.attr = &tanh_form;
  slope.op.n_in = 2, slope.op.n_out = 1;
  slope.op.in[0] = slope.op.out[0] = call->out[0], slope.op.in[1] = call->in[2];
  return slope;
}

static gp_status prepare_dx(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_gpu_gemm g = with_slope(call), plain = gp_linear_dx_product(call);
  *scratch = 0;
  const gp_status status = gp_product_prepare(gpu, &g, scratch);
  if (status != GP_OK && status != GP_EUNSUPPORTED) return status;
  const gp_other_way way(gpu, status);
  return gp_product_prepare(gpu, &plain, scratch);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_gpu_gemm g = with_slope(&call->op), plain = gp_linear_dx_product(&call->op);
  const gp_gpu_call slope = slope_of(&call->op);
  const gp_status status = gp_product_run(gpu, &g, call->scratch);
  if (status != GP_EUNSUPPORTED) return status;
  GP_GPU_TRY(gp_product_run(gpu, &plain, call->scratch));
  return gp_gpu_gelu_dx.run(gpu, &slope);
}

const gp_gpu_kernel gp_gpu_linear_gelu_dx = {run_dx, prepare_dx};
