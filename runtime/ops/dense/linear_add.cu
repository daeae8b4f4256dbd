/* ops/dense/linear_add.cu - the output of a linear layer plus a value that bypasses it, on a GPU.
 *
 * The product is added to the other value as it is written, so it is rounded once, where the two
 * ops round twice. If no product can do that (f64 with a bias, K = 0) the kernels of the two ops
 * run one after the other. */
#include "ops/dense/dense.cuh"

/* x, w, r, b: the addend stands before the bias. */
static gp_gpu_call product_of(const gp_call *call) {
  gp_gpu_call product = {};
  product.op = *call;
  product.op.in[2] = call->in[3];
  product.op.n_in = call->n_in - 1;
  return product;
}

static gp_gpu_call sum_of(const gp_call *call) {
  gp_gpu_call sum = {};
  sum.op.attr = call->attr;
  sum.op.n_in = 2, sum.op.n_out = 1;
  sum.op.in[0] = call->in[2], sum.op.in[1] = sum.op.out[0] = call->out[0];
  return sum;
}

static gp_gpu_gemm with_addend(const gp_call *call) {
  const gp_gpu_call product = product_of(call);
  gp_gpu_gemm g = gp_linear_product(&product.op);
  g.accumulate = true;
  g.c = call->in[2].data;
  return g;
}

static bool is_two_ops(const gp_gpu_gemm *g) {
  return g->k == 0 || (g->biased && g->type == GP_F64);
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const gp_gpu_gemm g = with_addend(call);
  const gp_gpu_call product = product_of(call);
  size_t whole = 0;
  const gp_status status = is_two_ops(&g) ? GP_EUNSUPPORTED : gp_product_prepare(gpu, &g, &whole);
  if (status != GP_OK && status != GP_EUNSUPPORTED) return status;
  const gp_other_way way(gpu, status);
  GP_GPU_TRY(gp_gpu_linear.prepare(gpu, &product.op, scratch));
  if (*scratch < whole) *scratch = whole;
  return GP_OK;
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_gpu_gemm g = with_addend(&call->op);
  const gp_gpu_call sum = sum_of(&call->op);
  gp_gpu_call product = product_of(&call->op);
  const gp_status status =
      is_two_ops(&g) ? GP_EUNSUPPORTED : gp_product_run(gpu, &g, call->scratch);
  if (status != GP_EUNSUPPORTED) return status;
  product.scratch = call->scratch;
  GP_GPU_TRY(gp_gpu_linear.run(gpu, &product));
  return gp_gpu_add.run(gpu, &sum);
}

const gp_gpu_kernel gp_gpu_linear_add = {run, prepare};
