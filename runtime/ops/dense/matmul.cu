/* ops/dense/matmul.cu - products of stacks of matrices, either operand stored transposed.
 *
 * Leading dimensions broadcast: as strides, which are 0 where an operand has one matrix for many.
 * Dimensions that continue each other in all three values are merged; of those left, the longest is
 * the stack of one call and the others are a loop. A right operand without a stack makes one
 * product: the stack of the left one is folded into its rows. */
#include "ops/dense/dense.cuh"

/* A leading dimension: matrices between neighbours, of a, b and the output. */
typedef struct lead {
  int64_t size, a, b, out;
} lead;

typedef struct stack {
  gp_gpu_gemm gemm; /* of one matrix */
  int rank;
  lead dim[GP_MAX_RANK];
  int64_t a, b, out; /* elements of a matrix */
} stack;

/* ---- shapes -------------------------------------------------------------------------------- */

static int64_t before_last(const gp_meta *meta) { return meta->shape.dim[meta->shape.rank - 2]; }

static bool is_one_matrix(const gp_meta *meta) {
  for (int d = 0; d < meta->shape.rank - 2; d++)
    if (meta->shape.dim[d] != 1) return false;
  return true;
}

/* Count the matrices between neighbours along leading dimension d of the output, counted
 * from the last one. */
static int64_t lead_stride(const gp_meta *meta, int d) {
  const int at = meta->shape.rank - 3 - d;
  int64_t stride = 1;
  if (at < 0 || meta->shape.dim[at] == 1) return 0;
  for (int i = at + 1; i < meta->shape.rank - 2; i++) stride *= meta->shape.dim[i];
  return stride;
}

/* Tell whether `outer` continues where `inner` ends. */
static bool continues(const lead *outer, const lead *inner) {
  return outer->a == inner->a * inner->size && outer->b == inner->b * inner->size &&
         outer->out == inner->out * inner->size;
}

/* Collect the leading dimensions from the last one on, leaving out sizes of 1, merging
 * neighbours. */
static void set_leads(stack *s, const gp_call *call) {
  const gp_meta *out = call->out[0].meta;
  for (int d = 0; d < out->shape.rank - 2; d++) {
    const int64_t size = out->shape.dim[out->shape.rank - 3 - d];
    const lead l = {size, lead_stride(call->in[0].meta, d), lead_stride(call->in[1].meta, d),
                    lead_stride(out, d)};
    if (size == 1) continue;
    if (s->rank > 0 && continues(&l, &s->dim[s->rank - 1]))
      s->dim[s->rank - 1].size *= size;
    else
      s->dim[s->rank++] = l;
  }
}

/* Make the longest dimension the stack of one product. */
static void take_longest(stack *s) {
  int longest = 0;
  for (int d = 1; d < s->rank; d++)
    if (s->dim[d].size > s->dim[longest].size) longest = d;
  if (s->rank == 0) return;
  const lead l = s->dim[longest];
  s->gemm.batch = l.size;
  s->gemm.stride_a = l.a * s->a, s->gemm.stride_b = l.b * s->b, s->gemm.stride_d = l.out * s->out;
  s->dim[longest] = s->dim[--s->rank];
}

static gp_gpu_gemm describe_matrix(const gp_call *call) {
  const gp_meta *a = call->in[0].meta, *b = call->in[1].meta, *out = call->out[0].meta;
  gp_gpu_gemm g = {};
  g.type = a->dtype, g.d_type = out->dtype;
  g.transpose_a = call->attr->matmul.transpose_a, g.transpose_b = call->attr->matmul.transpose_b;
  g.m = before_last(out), g.n = gp_width_of(out);
  g.k = g.transpose_a ? before_last(a) : gp_width_of(a);
  g.lda = gp_width_of(a), g.ldb = gp_width_of(b), g.ldd = g.n;
  g.batch = 1;
  return g;
}

static stack describe(const gp_call *call) {
  stack s = {};
  s.gemm = describe_matrix(call);
  s.a = s.gemm.m * s.gemm.k, s.b = s.gemm.k * s.gemm.n, s.out = s.gemm.m * s.gemm.n;
  if (!s.gemm.transpose_a && is_one_matrix(call->in[1].meta)) {
    s.gemm.m = gp_rows_of(call->out[0].meta);
    return s;
  }
  set_leads(&s, call);
  take_longest(&s);
  return s;
}

/* ---- kernel -------------------------------------------------------------------------------- */

static bool is_empty(const stack *s) {
  for (int d = 0; d < s->rank; d++)
    if (s->dim[d].size == 0) return true;
  return s->gemm.m == 0 || s->gemm.n == 0 || s->gemm.batch == 0;
}

/* Return the product at a place of the loop over the remaining dimensions. */
static gp_gpu_gemm product_at(const stack *s, const gp_call *call, int64_t place) {
  gp_gpu_gemm g = s->gemm;
  int64_t a = 0, b = 0, out = 0;
  for (int d = 0; d < s->rank; d++) {
    const int64_t at = place % s->dim[d].size;
    place /= s->dim[d].size;
    a += at * s->dim[d].a, b += at * s->dim[d].b, out += at * s->dim[d].out;
  }
  g.a = address_of(&call->in[0], a * s->a);
  g.b = address_of(&call->in[1], b * s->b);
  g.d = address_of(&call->out[0], out * s->out);
  return g;
}

static gp_status each_product(gp_gpu *gpu, const gp_call *call, gp_gemm_step step) {
  const stack s = describe(call);
  int64_t places = 1;
  if (is_empty(&s)) return GP_OK;
  for (int d = 0; d < s.rank; d++) places *= s.dim[d].size;
  for (int64_t place = 0; place < places; place++) {
    const gp_gpu_gemm g = product_at(&s, call, place);
    GP_GPU_TRY(step(gpu, &g));
  }
  return GP_OK;
}

static gp_status prepare(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  *scratch = 0;
  return each_product(gpu, call, gp_gemm_prepare);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  return each_product(gpu, &call->op, gp_gemm_run);
}

const gp_gpu_kernel gp_gpu_matmul = {run, prepare};
