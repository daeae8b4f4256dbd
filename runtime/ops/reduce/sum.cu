/* ops/reduce/sum.cu - see sum.c: sums over any set of dims of a contiguous value.
 *
 * Neighbouring dims that are all kept or all reduced are merged. If the last of them is kept,
 * results are columns (columns.cuh); if it is reduced, each result adds lines (lines.cuh). */
#include "ops/reduce/columns.cuh"
#include "ops/reduce/lines.cuh"

struct sum_plan {
  gp_strides kept, reduced; /* dims before the line */
  bool line_reduced;
  int64_t width; /* of the line, the last dims of one kind */
};

static int64_t total_of(const gp_strides *list) {
  int64_t n = 1;
  for (int d = 0; d < list->rank; d++) n *= list->size[d].by;
  return n;
}

/* The shape and the dims decide the whole plan, and with it the order in which elements are added.
 * Dims of size 1 count as either kind: they never end a line. */
static sum_plan plan_of(const gp_call *call) {
  const gp_meta *in = call->in[0].meta;
  const int64_t *dim = in->shape.dim, mask = call->attr->sum.dims ? call->attr->sum.dims : -1;
  sum_plan p = {};
  int d = in->shape.rank - 1;
  while (d >= 0 && dim[d] == 1) d--;
  p.line_reduced = d < 0 || (mask >> d & 1);
  p.width = 1;
  for (; d >= 0 && (dim[d] == 1 || (bool)(mask >> d & 1) == p.line_reduced); d--) p.width *= dim[d];
  for (int k = 0; k <= d; k++)
    gp_strides_push(mask >> k & 1 ? &p.reduced : &p.kept, dim[k], in->stride[k]);
  return p;
}

/* A group of columns is 16 bytes of a row. */
static gp_columns columns_of(const sum_plan *p, gp_dtype dtype) {
  return gp_columns_plan(total_of(&p->kept), total_of(&p->reduced), p->width,
                         16 / (int)gp_item_of(dtype));
}

static gp_lines lines_of(const sum_plan *p) {
  const int64_t terms = total_of(&p->reduced) * p->width;
  return {p->kept, p->reduced, total_of(&p->kept), terms, p->width, gp_pieces_of(terms)};
}

/* Make the plan that prepare() made the scratch for: nothing is remembered between the two. */
template <typename T> static gp_status launch(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = &call->op.in[0];
  const gp_sink out = gp_sink_of(&call->op, 0);
  const sum_plan p = plan_of(&call->op);
  if (p.line_reduced) {
    const gp_plain_terms<T> source = {(const T *)in->data};
    return gp_lines_run(gpu, source, lines_of(&p), out, call->scratch);
  }
  const gp_plain_columns<T> source = {(const T *)in->data, p.kept, p.reduced};
  return gp_columns_run(gpu, source, columns_of(&p, in->meta->dtype), out, call->scratch);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_dtype dtype = call->op.in[0].meta->dtype;
  switch (dtype) {
  case GP_I64: return launch<uint64_t>(gpu, call);
  case GP_I32: return launch<int32_t>(gpu, call);
  case GP_U8:
  case GP_BOOL: return launch<uint8_t>(gpu, call);
  default: GP_BY_FLOAT(dtype, return launch<T>(gpu, call));
  }
  return GP_OK;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  const gp_dtype dtype = call->in[0].meta->dtype;
  const sum_plan p = plan_of(call);
  const gp_lines lines = lines_of(&p);
  const gp_columns columns = columns_of(&p, dtype);
  *scratch = p.line_reduced ? gp_lines_scratch(lines.results, lines.terms) * gp_sum_bytes(dtype)
                            : gp_columns_scratch(&columns, gp_sum_bytes(dtype));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_sum = {run, prepare};
