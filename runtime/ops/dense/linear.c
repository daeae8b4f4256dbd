/* ops/dense/linear.c - y = x w^T + b and its two gradients.
 *
 * Each piece of all three is one matrix product. y and dx are row-wise, 64 rows at a time, so that
 * the ops around them can follow while the block is in the cache. dw is cut by rows of the weight,
 * and accumulates inside the product (beta = 1), the one way that gives the same bits everywhere.
 *
 * A product with a transposed weight transposes it again for every 64 rows, which takes a tenth of
 * the time of a training step. So y is always computed from w stored as [K, N]: a plan packs every
 * weight that way, once for every change of it (pack_linear, graph/pack.c); a weight that is not
 * packed is transposed here, part by part. Products of bf16 are those of ops/half/product.h, and
 * those of large weights, on some processors, those of ops/dense/large.h. */
#include "ops/dense/dense.h"
#include "ops/dense/large.h"

#include "base/memory.h"

#include <string.h>

/* ---- linear -------------------------------------------------------------------------------- */

/* A packed weight has lost its shape: the attribute gives N, and x gives K. */
static gp_status check_packed(const gp_sig *sig) {
  const gp_meta *x = sig->in[0];
  size_t bytes;
  GP_TRY(gp_operand_rank(sig, GP_OP_linear, 0, 1));
  if (sig->attr->linear.packed < 0)
    return gp_fail(GP_ERANGE, "packed is %lld, expected the outputs of the weight, or 0",
                   (long long)sig->attr->linear.packed);
  const gp_shape weight = {2, {sig->attr->linear.packed, gp_meta_width(x)}};
  if (x->dtype == GP_BF16)
    return gp_operand_packed(sig, GP_OP_linear, 1, gp_half_packed_bytes(&weight, false));
  GP_TRY(gp_packed_bytes(x->dtype, weight.dim[1], weight.dim[0], &bytes));
  return gp_operand_packed(sig, GP_OP_linear, 1, bytes);
}

static gp_status check_plain(const gp_sig *sig) {
  GP_TRY(gp_operand_plain(sig, GP_OP_linear, 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_linear, 1, &(gp_shape){2, {GP_ANY_DIM, GP_ANY_DIM}}, -1));
  GP_TRY(gp_operand_rank(sig, GP_OP_linear, 0, 1));
  const gp_shape *x = &sig->in[0]->shape, *w = &sig->in[1]->shape;
  gp_shape want = {.rank = x->rank};
  for (int d = 0; d < x->rank; d++) want.dim[d] = GP_ANY_DIM;
  want.dim[x->rank - 1] = w->dim[1];
  return gp_operand_shape(sig, GP_OP_linear, 0, &want, 1);
}

/* x [.., K], w [N, K] or packed, b [N] optional -> y [.., N]. */
static gp_status infer_linear(gp_sig *sig) {
  const int64_t packed = sig->attr->linear.packed;
  GP_TRY(packed ? check_packed(sig) : check_plain(sig));
  const gp_shape *x = &sig->in[0]->shape;
  const int64_t n = packed ? packed : sig->in[1]->shape.dim[0];
  const int64_t wide = sig->attr->linear.wide;
  if (sig->n_in == 3) GP_TRY(gp_operand_shape(sig, GP_OP_linear, 2, &(gp_shape){1, {n}}, 1));
  GP_TRY(gp_infer_wide_rows(wide, n));
  gp_shape out = gp_shape_with_last(x, wide ? wide : n);
  return gp_infer_out(sig, sig->in[0]->dtype, &out);
}

/* Reads x and w, never y. The gradient of b is a sum over rows with an op of its own. */
static gp_status vjp_linear(gp_vjp *v) {
  gp_ref dy = v->dout[0];
  if (dy == GP_NONE) return GP_OK;
  if (v->need[0]) GP_TRY(gp_vjp_op2(v, GP_OP_linear_dx, dy, v->in[1], &v->din[0]));
  if (v->need[1]) GP_TRY(gp_vjp_op2(v, GP_OP_linear_dw, dy, v->in[0], &v->din[1]));
  if (v->n_in == 3 && v->need[2]) GP_TRY(gp_vjp_op1(v, GP_OP_sum_rows_dw, dy, &v->din[2]));
  return GP_OK;
}

static gp_cost cost_linear(const gp_sig *sig) {
  double out = (double)gp_meta_numel(&sig->out[0]);
  double products = 2 * out * (double)gp_meta_width(sig->in[0]);
  return gp_cost_of(sig, products + (sig->n_in == 3 ? out : 0));
}

/* Fill the rows with the bias; the product is added to them, without a second pass over y. */
static void fill_rows(const gp_arg *y, const gp_arg *bias, gp_span span, int64_t n) {
  size_t bytes = (size_t)n * gp_dtype_size(y->meta->dtype);
  if (bytes == 0) return; /* memory of no bytes has no address */
  for (int64_t r = span.first; r < span.last; r++) memcpy(gp_arg_at(y, r * n), bias->data, bytes);
}

/* Is x w^T a product of ops/dense/large.h? */
static bool is_large(const gp_call *call) {
  const gp_meta *x = call->in[0].meta;
  return gp_large_is(x->dtype, gp_meta_width(call->out[0].meta), gp_meta_width(x));
}

/* Outputs of one product, which bounds the copy of an unpacked weight. A packed weight has the same
 * parts, so that the bits are the same. */
enum { PART = 768 };

/* Rows of x, and the part of the weight that is multiplied now: [k, part.last - part.first]. */
typedef struct factor {
  const void *data;
  int64_t ld;
} factor;

static gp_status run_rows(const gp_call *call, gp_span rows, gp_span part, factor w) {
  const gp_arg *x = &call->in[0], *y = &call->out[0];
  int64_t n = gp_meta_width(y->meta), k = gp_meta_width(x->meta);
  gp_gemm g = {.m = rows.last - rows.first,
               .n = part.last - part.first,
               .k = k,
               .lda = k,
               .ldb = w.ld,
               .ldc = n,
               .alpha = 1,
               .beta = call->n_in == 3 ? 1 : 0};
  return gp_multiply(y->meta->dtype, g, gp_arg_at(x, rows.first * k), w.data,
                     gp_arg_at(y, rows.first * n + part.first));
}

/* Return the part of the weight as [K, part]: a view of a packed one, else a copy in scratch. */
static factor factor_of(const gp_call *call, gp_span part) {
  const gp_arg *w = &call->in[1];
  int64_t k = gp_meta_width(call->in[0].meta), n = part.last - part.first;
  if (call->attr->linear.packed)
    return (factor){gp_arg_at(&(gp_arg){w->data, call->in[0].meta}, part.first),
                    gp_packed_stride(call->attr->linear.packed)};
  gp_meta from = {w->meta->dtype, {2, {k, n}}, {1, k}, 0};
  gp_meta to = {w->meta->dtype, {2, {k, n}}, {gp_packed_stride(n), 1}, 0};
  gp_view_copy(&to, part.scratch, &from, gp_arg_at(w, part.first * k));
  return (factor){part.scratch, gp_packed_stride(n)};
}

static gp_status run_linear(const gp_call *call, gp_span span) {
  int64_t n = gp_meta_width(call->out[0].meta);
  if (call->attr->linear.wide)
    return gp_fail(GP_EUNSUPPORTED, "linear: its rows are padded, expected a GPU");
  if (gp_half_multiplies(call)) return gp_half_linear(call, span);
  if (is_large(call)) return gp_large_linear(call, span);
  if (call->n_in == 3) fill_rows(&call->out[0], &call->in[2], span, n);
  for (int64_t first = 0; first < n; first += PART) {
    gp_span part = gp_span_part(span, first, n - first < PART ? n : first + PART);
    factor w = factor_of(call, part);
    for (int64_t r = span.first; r < span.last; r += GP_ROW_BLOCK)
      GP_TRY(run_rows(call, gp_piece_at(span, r, GP_ROW_BLOCK), part, w));
  }
  return GP_OK;
}

static size_t scratch_linear(const gp_call *call) {
  const gp_shape *w = &call->in[1].meta->shape;
  if (gp_half_multiplies(call)) return gp_half_linear_scratch(call);
  if (is_large(call)) return gp_large_linear_scratch(call);
  if (call->attr->linear.packed) return 0;
  int64_t n = w->dim[0] < PART ? w->dim[0] : PART;
  return (size_t)(gp_packed_stride(n) * w->dim[1]) * gp_dtype_size(call->in[1].meta->dtype);
}

const gp_op_def gp_def_linear = {GP_OP_ROW(linear),
                                 .row_inputs = 1,
                                 .infer = infer_linear,
                                 .vjp = vjp_linear,
                                 .cost = cost_linear,
                                 .cpu = {.cut = gp_cut_whole_rows,
                                         .run = run_linear,
                                         .scratch = scratch_linear,
                                         .halves = GP_HALF_PRODUCTS}};

/* ---- gradient of the input ----------------------------------------------------------------- */

/* Packed for linear_dx: the attribute says K, dy N. */
static gp_status infer_packed_dx(gp_sig *sig) {
  const gp_meta *dy = sig->in[0];
  const int64_t packed = sig->attr->linear_dx.packed;
  GP_TRY(gp_operand_rank(sig, GP_OP_linear_dx, 0, 1));
  if (packed < 0 || dy->dtype == GP_F16)
    return gp_fail(GP_ERANGE,
                   "packed is %lld and the gradient %s, expected 0, or the inputs of a "
                   "weight and no f16",
                   (long long)packed, gp_dtype_name(dy->dtype));
  const gp_shape w = {2, {gp_meta_width(dy), packed}}, out = gp_shape_with_last(&dy->shape, packed);
  size_t bytes;
  if (dy->dtype == GP_BF16)
    bytes = gp_half_packed_bytes(&w, true);
  else
    GP_TRY(gp_packed_bytes(dy->dtype, w.dim[0], packed, &bytes));
  GP_TRY(gp_operand_packed(sig, GP_OP_linear_dx, 1, bytes));
  return gp_infer_out(sig, dy->dtype, &out);
}

/* dy [.., N], w [N, K] or packed -> dx [.., K] = dy w. */
static gp_status infer_linear_dx(gp_sig *sig) {
  if (sig->attr->linear_dx.packed) return infer_packed_dx(sig);
  GP_TRY(gp_operand_plain(sig, GP_OP_linear_dx, 1));
  GP_TRY(gp_operand_shape(sig, GP_OP_linear_dx, 1, &(gp_shape){2, {GP_ANY_DIM, GP_ANY_DIM}}, -1));
  GP_TRY(gp_operand_rank(sig, GP_OP_linear_dx, 0, 1));
  const gp_shape *dy = &sig->in[0]->shape, *w = &sig->in[1]->shape;
  gp_shape want = gp_shape_with_last(dy, w->dim[0]), out = gp_shape_with_last(dy, w->dim[1]);
  GP_TRY(gp_operand_shape(sig, GP_OP_linear_dx, 0, &want, 1));
  return gp_infer_out(sig, sig->in[0]->dtype, &out);
}

static gp_cost cost_linear_dx(const gp_sig *sig) {
  double dy = (double)gp_meta_numel(sig->in[0]);
  return gp_cost_of(sig, 2 * dy * (double)gp_meta_width(&sig->out[0]));
}

static gp_status run_rows_dx(const gp_call *call, gp_span rows) {
  const gp_arg *dy = &call->in[0], *w = &call->in[1], *dx = &call->out[0];
  const bool packed = call->attr->linear_dx.packed != 0;
  const int64_t n = gp_meta_width(dy->meta), k = gp_meta_width(dx->meta);
  gp_gemm g = {.m = rows.last - rows.first,
               .n = k,
               .k = n,
               .lda = n,
               .ldb = packed ? gp_packed_stride(k) : k,
               .ldc = k,
               .alpha = 1};
  return gp_multiply(dx->meta->dtype, g, gp_arg_at(dy, rows.first * n), w->data,
                     gp_arg_at(dx, rows.first * k));
}

static bool is_large_dx(const gp_call *call) {
  const gp_meta *dy = call->in[0].meta;
  return gp_large_is(dy->dtype, gp_meta_width(dy), gp_meta_width(call->out[0].meta));
}

static gp_status run_linear_dx(const gp_call *call, gp_span span) {
  if (gp_half_multiplies(call)) return gp_half_linear_dx(call, span);
  if (is_large_dx(call)) return gp_large_linear_dx(call, span);
  for (int64_t r = span.first; r < span.last; r += GP_ROW_BLOCK)
    GP_TRY(run_rows_dx(call, gp_piece_at(span, r, GP_ROW_BLOCK)));
  return GP_OK;
}

static size_t scratch_linear_dx(const gp_call *call) {
  if (gp_half_multiplies(call)) return gp_half_linear_dx_scratch(call);
  return is_large_dx(call) ? gp_large_linear_dx_scratch(call) : 0;
}

const gp_op_def gp_def_linear_dx = {GP_OP_ROW(linear_dx), .row_inputs = 1, .infer = infer_linear_dx,
                                    .cost = cost_linear_dx,
                                    .cpu = {.cut = gp_cut_whole_rows,
                                            .run = run_linear_dx,
                                            .scratch = scratch_linear_dx,
                                            .halves = GP_HALF_PRODUCTS}};

/* ---- gradient of the weight ---------------------------------------------------------------- */

/* dy [.., N], x [.., K] -> dw [N, K] = dy^T x, all rows in one product. */
static gp_status infer_linear_dw(gp_sig *sig) {
  GP_TRY(gp_operand_rank(sig, GP_OP_linear_dw, 0, 1));
  GP_TRY(gp_operand_rank(sig, GP_OP_linear_dw, 1, 1));
  gp_shape want = gp_shape_with_last(&sig->in[0]->shape, GP_ANY_DIM);
  GP_TRY(gp_operand_shape(sig, GP_OP_linear_dw, 1, &want, 0));
  gp_shape out = {2, {gp_meta_width(sig->in[0]), gp_meta_width(sig->in[1])}};
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &out);
}

static gp_cost cost_linear_dw(const gp_sig *sig) {
  double rows = (double)gp_meta_rows(sig->in[0]);
  return gp_cost_of(sig, 2 * rows * (double)gp_meta_numel(&sig->out[0]));
}

static bool is_large_dw(const gp_call *call) {
  const gp_shape *dw = &call->out[0].meta->shape;
  return gp_large_is(call->in[0].meta->dtype, dw->dim[0], dw->dim[1]);
}

/* Cut into about eight pieces, so that a team stays busy; of 64 rows or more each, where the
 * product is fast, and no longer than Ctrl-C may wait for. */
static gp_cut cut_linear_dw(const gp_call *call) {
  if (gp_half_multiplies(call)) return gp_half_linear_dw_cut(call);
  if (is_large_dw(call)) return gp_large_linear_dw_cut(call);
  const gp_shape *shape = &call->out[0].meta->shape;
  int64_t n = shape->dim[0], grain = ((n + 7) / 8 + 63) / 64 * 64;
  double of_64 = 2.0 * 64 * (double)shape->dim[1] * (double)gp_meta_rows(call->in[0].meta);
  double most = of_64 > 0 ? GP_MOST_OF_A_PIECE / of_64 : 1;
  if (most < (double)(grain / 64)) grain = 64 * (most < 1 ? 1 : (int64_t)most);
  return (gp_cut){n, grain > 0 ? grain : 1};
}

/* Compute rows [first, last) of dw; the product itself sums over the rows of dy and x. If nothing
 * accumulates, dw is zeroed while it is in the cache and the product is added, instead of one
 * without beta: the bits are those of a gradient that was zero, down to the sign of a zero. */
static gp_status run_outputs(const gp_call *call, gp_span part) {
  const gp_arg *dy = &call->in[0], *x = &call->in[1], *dw = &call->out[0];
  int64_t n = dw->meta->shape.dim[0], k = dw->meta->shape.dim[1], rows = gp_meta_rows(dy->meta);
  gp_gemm g = {.transpose_a = true,
               .m = part.last - part.first,
               .n = k,
               .k = rows,
               .lda = n,
               .ldb = k,
               .ldc = k,
               .alpha = 1,
               .beta = 1};
  void *to = gp_arg_at(dw, part.first * k);
  if (!call->accumulate) memset(to, 0, (size_t)(g.m * g.n) * gp_dtype_size(dw->meta->dtype));
  return gp_multiply(dw->meta->dtype, g, gp_arg_at(dy, part.first), x->data, to);
}

static gp_status run_linear_dw(const gp_call *call, gp_span span) {
  if (gp_half_multiplies(call)) return gp_half_linear_dw(call, span);
  if (is_large_dw(call)) return gp_large_linear_dw(call, span);
  int64_t grain = cut_linear_dw(call).grain;
  for (int64_t first = span.first; first < span.last; first += grain)
    GP_TRY(run_outputs(call, gp_piece_at(span, first, grain)));
  return GP_OK;
}

static size_t scratch_linear_dw(const gp_call *call) {
  if (gp_half_multiplies(call)) return gp_half_linear_dw_scratch(call);
  return is_large_dw(call) ? gp_large_linear_dw_scratch(call) : 0;
}

const gp_op_def gp_def_linear_dw = {GP_OP_ROW(linear_dw), .infer = infer_linear_dw,
                                    .cost = cost_linear_dw,
                                    .cpu = {.cut = cut_linear_dw,
                                            .run = run_linear_dw,
                                            .scratch = scratch_linear_dw,
                                            .halves = GP_HALF_PRODUCTS}};
