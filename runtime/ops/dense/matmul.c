/* ops/dense/matmul.c - products of stacks of matrices, either operand stored transposed.
 *
 * Leading dimensions broadcast. A right operand without a stack of its own is one product: the
 * stack of the left one is folded into its rows. Work is cut into blocks of 64 rows of one
 * matrix. */
#include "ops/dense/dense.h"
#include "ops/gradient.h"

/* ---- shapes -------------------------------------------------------------------------------- */

/* Return the stored sizes of the last two dimensions, as the product sees them. */
static int64_t rows_of(const gp_meta *meta, bool transposed) {
  return meta->shape.dim[meta->shape.rank - (transposed ? 1 : 2)];
}

static int64_t columns_of(const gp_meta *meta, bool transposed) {
  return rows_of(meta, !transposed);
}

/* Return the leading dims: those left when the matrices are taken off. */
static gp_shape stack_of(const gp_meta *meta) {
  gp_shape stack = meta->shape;
  stack.rank -= 2;
  return stack;
}

/* Check that the right operand has as many rows as the left one has columns. */
static gp_status check_inner(const gp_sig *sig, bool ta, bool tb) {
  gp_shape want = sig->in[1]->shape;
  for (int d = 0; d < want.rank; d++) want.dim[d] = GP_ANY_DIM;
  want.dim[want.rank - (tb ? 1 : 2)] = columns_of(sig->in[0], ta);
  return gp_operand_shape(sig, GP_OP_matmul, 1, &want, 0);
}

static gp_status fail_stacks(const gp_sig *sig) {
  char a[GP_SHAPE_TEXT], b[GP_SHAPE_TEXT];
  gp_shape_print(&sig->in[0]->shape, a, sizeof a);
  gp_shape_print(&sig->in[1]->shape, b, sizeof b);
  return gp_fail(GP_ESHAPE, "%s is %s, %s is %s: their leading dimensions must be equal or 1",
                 gp_op_role(GP_OP_matmul, 1), b, gp_op_role(GP_OP_matmul, 0), a);
}

/* a [.., M, K], b [.., K, N] -> [.., M, N], as the product sees them: the attributes tell which of
 * the two is stored transposed. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_matmul, 0, 2));
  GP_TRY(gp_operand_rank(sig, GP_OP_matmul, 1, 2));
  const gp_meta *a = sig->in[0], *b = sig->in[1];
  bool ta = sig->attr->matmul.transpose_a, tb = sig->attr->matmul.transpose_b;
  GP_TRY(check_inner(sig, ta, tb));
  gp_shape out = stack_of(a), other = stack_of(b);
  if (!gp_shape_broadcast(&out, &other)) return fail_stacks(sig);
  out.dim[out.rank++] = rows_of(a, ta);
  out.dim[out.rank++] = columns_of(b, tb);
  return gp_infer_out(sig, a->dtype, &out);
}

/* ---- gradient ------------------------------------------------------------------------------ */

/* Tell whether there is no stack, or one of a single matrix. */
static bool is_one_matrix(const gp_meta *meta) {
  gp_shape stack = stack_of(meta);
  for (int d = 0; d < stack.rank; d++)
    if (stack.dim[d] != 1) return false;
  return true;
}

static gp_status product(gp_vjp *v, gp_ref a, bool ta, gp_ref b, bool tb, gp_ref *out) {
  gp_attrs attrs = {.matmul = {ta, tb}};
  return gp_build(v->builder, GP_OP_matmul, &attrs, (gp_ref[]){a, b}, 2, out);
}

/* Reshape all rows of a stack into one matrix. */
static gp_status flatten(gp_vjp *v, gp_ref x, gp_ref *out) {
  const gp_meta *meta = gp_vjp_meta(v, x);
  gp_shape flat = {2, {gp_meta_rows(meta), gp_meta_width(meta)}};
  return gp_vjp_reshape(v, x, &flat, out);
}

/* The gradient of a matrix shared by a stack is one long product, not a sum of many. */
static gp_status vjp_shared_matrix(gp_vjp *v, bool tb) {
  gp_ref a, dy, db;
  gp_shape shape = gp_vjp_meta(v, v->in[1])->shape;
  GP_TRY(flatten(v, v->in[0], &a));
  GP_TRY(flatten(v, v->dout[0], &dy));
  GP_TRY(tb ? product(v, dy, true, a, false, &db) : product(v, a, true, dy, false, &db));
  return gp_vjp_reshape(v, db, &shape, &v->din[1]);
}

/* da = dy b^T, db = a^T dy. An operand that is stored transposed gets the transposed product
 * instead, so no transposed copy is made. Gradients of stacks that were broadcast are summed. */
static gp_status vjp(gp_vjp *v) {
  bool ta = v->attr->matmul.transpose_a, tb = v->attr->matmul.transpose_b;
  gp_ref a = v->in[0], b = v->in[1], dy = v->dout[0], g;
  if (dy == GP_NONE) return GP_OK;
  if (v->need[0]) {
    GP_TRY(ta ? product(v, b, tb, dy, true, &g) : product(v, dy, false, b, !tb, &g));
    GP_TRY(gp_vjp_set_broadcast(v, 0, g));
  }
  if (!v->need[1]) return GP_OK;
  if (!ta && is_one_matrix(gp_vjp_meta(v, b))) return vjp_shared_matrix(v, tb);
  GP_TRY(tb ? product(v, dy, true, a, ta, &g) : product(v, a, !ta, dy, false, &g));
  return gp_vjp_set_broadcast(v, 1, g);
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* One application: `batch` products of m x k by k x n. */
typedef struct stack {
  bool ta, tb, folded; /* folded: the stack of a lies in m */
  int64_t batch, m, n, k;
} stack;

static stack describe(const gp_attrs *attr, const gp_meta *a, const gp_meta *b,
                      const gp_meta *out) {
  stack s = {.ta = attr->matmul.transpose_a, .tb = attr->matmul.transpose_b};
  s.m = rows_of(a, s.ta), s.k = columns_of(a, s.ta), s.n = columns_of(b, s.tb);
  s.folded = !s.ta && is_one_matrix(b);
  s.batch = 1;
  for (int d = 0; d < out->shape.rank - 2; d++) s.batch *= out->shape.dim[d];
  if (s.folded) s.m *= s.batch, s.batch = 1;
  return s;
}

static stack describe_call(const gp_call *call) {
  return describe(call->attr, call->in[0].meta, call->in[1].meta, call->out[0].meta);
}

static gp_cost cost(const gp_sig *sig) {
  stack s = describe(sig->attr, sig->in[0], sig->in[1], &sig->out[0]);
  return gp_cost_of(sig, 2 * (double)s.batch * (double)s.m * (double)s.n * (double)s.k);
}

static int64_t blocks_of(const stack *s) { return (s->m + GP_ROW_BLOCK - 1) / GP_ROW_BLOCK; }

/* A piece of bf16 packs what it multiplies by, so there are eight pieces at most, unless they
 * would be too long. */
static int64_t half_grain(int64_t units) {
  const int64_t most = GP_HALF_MATRIX_ROWS / GP_ROW_BLOCK, eighth = (units + 7) / 8;
  return eighth < most ? eighth : most;
}

/* Units are row blocks; small ones are grouped into pieces of about a million operations. */
static gp_cut cut(const gp_call *call) {
  stack s = describe_call(call);
  double rows = (double)(s.m < GP_ROW_BLOCK ? s.m : GP_ROW_BLOCK);
  double flop = 2 * rows * (double)s.n * (double)s.k;
  int64_t grain = flop < 1e6 ? (int64_t)(1e6 / (flop < 1 ? 1 : flop)) : 1;
  const int64_t other = half_grain(s.batch * blocks_of(&s));
  if (gp_half_multiplies(call) && grain < other) grain = other;
  return (gp_cut){s.batch * blocks_of(&s), grain < 1 ? 1 : grain};
}

/* Return the number of the operand's matrix that output matrix `index` uses. */
static int64_t matrix_of(const gp_meta *operand, const gp_meta *out, int64_t index) {
  int64_t number = 0, step = 1;
  int lead = operand->shape.rank - 2;
  for (int d = 1; d <= out->shape.rank - 2; d++) { /* from the last one */
    int64_t size = out->shape.dim[out->shape.rank - 2 - d], position = index % size;
    index /= size;
    if (d > lead) continue;
    int64_t own = operand->shape.dim[lead - d];
    if (own > 1) number += position * step;
    step *= own;
  }
  return number;
}

/* Multiply up to 64 rows of one matrix of the stack. */
static gp_status run_block(const gp_call *call, const stack *s, int64_t unit) {
  const gp_arg *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  int64_t batch = unit / blocks_of(s), row = unit % blocks_of(s) * GP_ROW_BLOCK;
  int64_t m = s->m - row < GP_ROW_BLOCK ? s->m - row : GP_ROW_BLOCK;
  gp_gemm g = {.transpose_a = s->ta,
               .transpose_b = s->tb,
               .m = m,
               .n = s->n,
               .k = s->k,
               .lda = gp_meta_width(a->meta),
               .ldb = gp_meta_width(b->meta),
               .ldc = s->n,
               .alpha = 1};
  int64_t first_a = s->folded ? 0 : matrix_of(a->meta, out->meta, batch) * s->m * s->k;
  int64_t first_b = s->folded ? 0 : matrix_of(b->meta, out->meta, batch) * s->n * s->k;
  return gp_multiply(out->meta->dtype, g, gp_arg_at(a, first_a + row * (s->ta ? 1 : s->k)),
                     gp_arg_at(b, first_b), gp_arg_at(out, (batch * s->m + row) * s->n));
}

/* Describe the matrices that block `unit` belongs to. */
static gp_half_matrices half_matrices(const gp_call *call, const stack *s, int64_t unit) {
  const gp_meta *a = call->in[0].meta, *b = call->in[1].meta, *out = call->out[0].meta;
  const int64_t batch = unit / blocks_of(s);
  const int64_t of_a = s->folded ? 0 : matrix_of(a, out, batch) * s->m * s->k;
  const int64_t of_b = s->folded ? 0 : matrix_of(b, out, batch) * s->n * s->k;
  return (gp_half_matrices){.a = (const uint16_t *)call->in[0].data + of_a,
                            .b = (const uint16_t *)call->in[1].data + of_b,
                            .out = (uint16_t *)call->out[0].data + batch * s->m * s->n,
                            .ta = s->ta,
                            .tb = s->tb,
                            .m = s->m,
                            .n = s->n,
                            .k = s->k};
}

static size_t scratch(const gp_call *call) {
  const stack s = describe_call(call);
  const gp_half_matrices x = {.ta = s.ta, .m = s.m, .n = s.n, .k = s.k};
  return gp_half_multiplies(call) ? gp_half_multiply_scratch(&x) : 0;
}

/* Multiply blocks of one matrix at a time. */
static void run_halves(const gp_call *call, const stack *s, gp_span span) {
  const int64_t most = GP_HALF_MATRIX_ROWS / GP_ROW_BLOCK;
  for (int64_t unit = span.first, next; unit < span.last; unit = next) {
    const gp_half_matrices x = half_matrices(call, s, unit);
    const int64_t block = unit % blocks_of(s), first = block * GP_ROW_BLOCK;
    next = unit + blocks_of(s) - block;
    if (next > span.last) next = span.last;
    if (next > unit + most) next = unit + most;
    const int64_t last = first + (next - unit) * GP_ROW_BLOCK;
    gp_half_multiply(&x, first, last < s->m ? last : s->m, span.scratch);
  }
}

static gp_status run(const gp_call *call, gp_span span) {
  stack s = describe_call(call);
  if (gp_half_multiplies(call)) return run_halves(call, &s, span), GP_OK;
  for (int64_t unit = span.first; unit < span.last; unit++) GP_TRY(run_block(call, &s, unit));
  return GP_OK;
}

const gp_op_def gp_def_matmul = {
    GP_OP_ROW(matmul), .infer = infer, .vjp = vjp, .cost = cost,
    .cpu = {.cut = cut, .run = run, .scratch = scratch, .halves = GP_HALF_PRODUCTS}};
