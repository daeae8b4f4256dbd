/* ops/random/rand.c - random values in `forward`: rand (uniform in [0, 1)) and randn (standard
 * normals).
 *
 * They have no input: a value is a function of (seed, step, number of the op, element), as the
 * words of dropout are. So every step draws anew, and neither the cut, recomputation nor the number
 * of threads changes a bit; nor does the way in which the mini-batch is split, if the first
 * dimension carries the rows of the micro-batch (ops/elements.h). No gradient flows into them. */
#include "base/random/random.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/elements.h"
#include "ops/infer.h"

/* rand and randn have the same attributes. */
static gp_status infer(gp_sig *sig) {
  const gp_attr_rand *a = &sig->attr->rand;
  if (a->dtype != GP_F32 && a->dtype != GP_F64)
    return gp_fail(GP_EDTYPE, "dtype is %s, expected f32 or f64", gp_dtype_name(a->dtype));
  GP_TRY(gp_infer_rank(&a->shape));
  return gp_infer_out(sig, a->dtype, &a->shape);
}

static gp_status draw(const gp_call *call, gp_span span, gp_init init) {
  const gp_arg *out = &call->out[0];
  const gp_step_block *step = call->step;
  const gp_random_stream stream = {step->seed, step->step, call->attr->random};
  const int64_t n = gp_meta_numel(out->meta);
  const int64_t leading = out->meta->shape.rank > 0 ? out->meta->shape.dim[0] : 1;
  int64_t first, last;
  gp_rows_elements(n, gp_rows_count(out->meta), span, &first, &last);
  char *to = (char *)out->data + (size_t)first * gp_dtype_size(out->meta->dtype);
  gp_random_values(&stream, &init, out->meta->dtype,
                   gp_first_element(step, leading, n) + (uint64_t)first, last - first, to);
  return GP_OK;
}

static gp_status run_rand(const gp_call *call, gp_span span) {
  return draw(call, span, (gp_init){GP_INIT_UNIFORM, 0, 1});
}

static gp_status run_randn(const gp_call *call, gp_span span) {
  return draw(call, span, (gp_init){GP_INIT_NORMAL, 0, 1});
}

/* Count ten rounds of Philox; the logarithm, sine and cosine of normals cost three times
 * as much besides. */
static gp_cost cost_rand(const gp_sig *sig) { return gp_cost_elements(sig, 10); }
static gp_cost cost_randn(const gp_sig *sig) { return gp_cost_elements(sig, 40); }

const gp_op_def gp_def_rand = {GP_OP_ROW(rand), .infer = infer, .cost = cost_rand,
                               .cpu = {.cut = gp_cut_rows, .run = run_rand}};

const gp_op_def gp_def_randn = {GP_OP_ROW(randn), .infer = infer, .cost = cost_randn,
                                .cpu = {.cut = gp_cut_rows, .run = run_randn}};
