/* ops/dense/linear_bias_dw.cu - the gradients of a linear layer's weight and bias on a GPU.
 *
 * The product sums the rows of dy as it reads them. The library stores those sums and cannot add
 * them to what is there. So if gradients accumulate, the sums go to scratch first, and a kernel
 * over [N] adds them: that is next to nothing beside another pass over dy. If no product can do it,
 * a kernel makes that pass. */
#include "device/cuda/kernel/work.h"
#include "ops/dense/dense.cuh"

/* dy [.., N], x [.., K] -> dw [N, K], db [N]; sums: where the sums of dy's rows go. */
static gp_gpu_gemm with_sums(const gp_call *call, void *sums) {
  gp_gpu_gemm g = gp_linear_dw_product(call);
  g.epilogue = GP_GEMM_ROW_SUMS;
  g.aux = sums;
  return g;
}

static gp_gpu_call bias_of(const gp_gpu_call *call) {
  gp_gpu_call bias = *call;
  bias.op.n_in = bias.op.n_out = 1;
  bias.op.out[0] = call->op.out[1];
  return bias;
}

/* An empty weight takes two ops too: the bias is not empty. */
static bool is_two_ops(const gp_gpu_gemm *g) { return g->n == 0; }

/* Prepare both ways: addresses, which prepare does not know, decide too which one is taken. */
static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  gp_gpu_call whole = {};
  whole.op = *call;
  const gp_gpu_call bias = bias_of(&whole);
  const gp_gpu_gemm g = with_sums(call, NULL), plain = gp_linear_dw_product(call);
  const size_t sums = (size_t)g.m * gp_item_of(g.d_type);
  size_t products = sums;
  const gp_status status =
      is_two_ops(&g) ? GP_EUNSUPPORTED : gp_product_prepare(gpu, &g, &products);
  if (status != GP_OK && status != GP_EUNSUPPORTED) return status;
  const gp_other_way way(gpu, status);
  GP_GPU_TRY(gp_product_prepare(gpu, &plain, &products));
  GP_GPU_TRY(gp_gpu_sum_rows_dw.prepare(gpu, &bias.op, scratch));
  if (*scratch < products) *scratch = products;
  return GP_OK;
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *db = &call->op.out[1];
  const bool added = call->op.accumulate;
  const gp_gpu_gemm g = with_sums(&call->op, added ? call->scratch : db->data);
  const gp_gpu_gemm plain = gp_linear_dw_product(&call->op);
  const gp_gpu_call bias = bias_of(call);
  const gp_status status =
      is_two_ops(&g) ? GP_EUNSUPPORTED : gp_product_run(gpu, &g, call->scratch);
  if (status == GP_OK && added && g.m > 0)
    return gp_gpu_work_add(gpu, g.d_type, g.m, db->data, call->scratch);
  if (status != GP_EUNSUPPORTED) return status;
  GP_GPU_TRY(gp_product_run(gpu, &plain, call->scratch));
  return gp_gpu_sum_rows_dw.run(gpu, &bias);
}

const gp_gpu_kernel gp_gpu_linear_bias_dw = {run, prepare};
