/* ops/shape/reshape.c - the same elements in row-major order under another shape; a view.
 *
 * A strided value can be viewed when every run of its dims that lie behind one another is cut or
 * joined within itself. If it cannot be, the code that applies the op makes a contiguous copy first
 * (gp_op_needs_copy). */
#include "ops/shape/reshape.h"

#include "base/status.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/infer.h"

/* The dims of a value after merging those that lie behind one another; dims of size 1 are
 * dropped. */
typedef struct runs {
  int count;
  int64_t size[GP_MAX_RANK], step[GP_MAX_RANK];
} runs;

/* A dim joins the run before it if one step of that run is all steps of this dim. */
static runs merge_dims(const gp_meta *meta) {
  runs r = {0};
  for (int d = 0; d < meta->shape.rank; d++) {
    int64_t size = meta->shape.dim[d], step = meta->stride[d];
    if (size == 1) continue;
    if (r.count > 0 && r.step[r.count - 1] == size * step) {
      r.size[r.count - 1] *= size;
      r.step[r.count - 1] = step;
    } else {
      r.size[r.count] = size;
      r.step[r.count++] = step;
    }
  }
  return r;
}

/* Find strides that show the runs under the shape of as many elements; false if there are none. */
static bool cut_runs(const runs *r, const gp_shape *to, int64_t *stride) {
  int64_t left = 1, step = 1;
  int run = r->count;
  for (int d = to->rank - 1; d >= 0; d--) {
    if (to->dim[d] != 1 && left == 1) {
      left = r->size[--run];
      step = r->step[run];
    }
    if (left % to->dim[d] != 0) return false;
    stride[d] = step;
    step *= to->dim[d];
    left /= to->dim[d];
  }
  return true;
}

/* Find strides of a view under the shape of as many elements; false if there are none. */
static bool view_strides(const gp_meta *in, const gp_shape *to, int64_t *stride) {
  if (gp_meta_numel(in) > 0) {
    runs r = merge_dims(in);
    return cut_runs(&r, to, stride);
  }
  for (int d = 0; d < to->rank; d++) stride[d] = 0; /* nothing will ever be read */
  return true;
}

bool gp_reshape_is_view(const gp_meta *in, const gp_shape *to) {
  int64_t stride[GP_MAX_RANK], n;
  return gp_shape_numel(to, &n) == GP_OK && n == gp_meta_numel(in) && view_strides(in, to, stride);
}

/* Replace the one -1, at dim d, by what the other dims leave of n elements. */
static gp_status fill_unknown(gp_shape *to, int d, int64_t n) {
  int64_t known;
  to->dim[d] = 1;
  GP_TRY(gp_shape_numel(to, &known));
  if (known == 0 || n % known != 0)
    return gp_fail(GP_ESHAPE, "%lld elements cannot be shared out over %lld", (long long)n,
                   (long long)known);
  to->dim[d] = n / known;
  return GP_OK;
}

/* Compare the counts. The error names both shapes and both counts: the caller got one
 * of them wrong. */
static gp_status check_numel(const gp_shape *from, int64_t n, const gp_shape *to) {
  int64_t wanted;
  GP_TRY(gp_shape_numel(to, &wanted));
  if (wanted == n) return GP_OK;
  char a[GP_SHAPE_TEXT], b[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "%s has %lld elements, %s has %lld", gp_shape_print(from, a, sizeof a),
                 (long long)n, gp_shape_print(to, b, sizeof b), (long long)wanted);
}

gp_status gp_reshape_target(const gp_shape *asked, const gp_shape *from, gp_shape *to) {
  gp_shape shape = *asked;
  int64_t n;
  int unknown = -1;
  GP_TRY(gp_infer_rank(asked));
  GP_TRY(gp_shape_numel(from, &n));
  for (int d = 0; d < shape.rank; d++) {
    if (shape.dim[d] != -1) continue;
    if (unknown >= 0) return gp_fail(GP_ESHAPE, "more than one dimension is -1");
    unknown = d;
  }
  if (unknown >= 0) GP_TRY(fill_unknown(&shape, unknown, n));
  GP_TRY(check_numel(from, n, &shape));
  *to = shape;
  return GP_OK;
}

/* ---- the op --------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  gp_shape to;
  int64_t stride[GP_MAX_RANK];
  GP_TRY(gp_reshape_target(&sig->attr->reshape.to, &sig->in[0]->shape, &to));
  if (!view_strides(sig->in[0], &to, stride))
    return gp_fail(GP_ESHAPE, "the value is strided and must be copied first");
  return gp_infer_view(sig, &to, stride);
}

/* The gradient is dy under the shape that x had. */
static gp_status vjp(gp_vjp *v) {
  gp_shape from = gp_vjp_meta(v, v->in[0])->shape;
  return gp_vjp_reshape(v, v->dout[0], &from, &v->din[0]);
}

const gp_op_def gp_def_reshape = {
    GP_OP_ROW(reshape),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_none,
};
