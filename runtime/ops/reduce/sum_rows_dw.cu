/* ops/reduce/sum_rows_dw.cu - see sum_rows_dw.c and columns.cuh.
 *
 * The value that is there already is added to the sum of the rows. That is one rounding more than
 * on the CPU, where it is the start of the sum, but it lets blocks share the rows. */
#include "ops/reduce/columns.cuh"

/* A group is 16 bytes, 8 columns of halves, so the plan needs the dtype of dy. */
static gp_columns plan_of(const gp_call *call) {
  const gp_meta *dy = call->in[0].meta;
  return gp_columns_plan(1, gp_rows_of(dy), gp_width_of(dy), 16 / (int)gp_item_of(dy->dtype));
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_meta *dy = call->op.in[0].meta;
  gp_plain_columns<T> source = {(const T *)call->op.in[0].data, {}, {}};
  gp_strides_push(&source.rows, gp_rows_of(dy), gp_width_of(dy));
  return gp_columns_run(gpu, source, plan_of(&call->op), gp_sink_of(&call->op, 0), call->scratch);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, call));
  return GP_OK;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  const gp_columns p = plan_of(call);
  *scratch = gp_columns_scratch(&p, gp_sum_bytes(call->in[0].meta->dtype));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_sum_rows_dw = {run, prepare};
