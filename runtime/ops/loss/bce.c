/* ops/loss/bce.c - binary cross-entropy of each element, for a probability and for a score.
 *
 * The losses are not summed: summing and counting are the caller's. For scores, exponentials are
 * taken of negative numbers only, so that nothing overflows, and a score far on the side of its
 * target keeps the digits of its small loss. */
#include "ops/elementwise/loops.h"

/* ---- probabilities ------------------------------------------------------------------------- */

/* Lower bounds of logarithms, so that the loss of what should be impossible is finite, and of the
 * divisor in the slope. */
#define LOWEST      (-100)
#define SMALLEST    1e-12
#define AT_LEAST(x) ((x) < LOWEST ? LOWEST : (x))

static inline float loss32(float p, float t) {
  const float no = gp_log1pf(-p), yes = gp_logf(p);
  return (t - 1) * AT_LEAST(no) - t * AT_LEAST(yes);
}

static inline double loss64(double p, double t) {
  const double no = log1p(-p), yes = log(p);
  return (t - 1) * AT_LEAST(no) - t * AT_LEAST(yes);
}

/* dy (p - t) / (p (1 - p)). */
static inline float slope32(float p, float t) {
  const float spread = (1 - p) * p;
  return (p - t) / (spread < (float)SMALLEST ? (float)SMALLEST : spread);
}

static inline double slope64(double p, double t) {
  const double spread = (1 - p) * p;
  return (p - t) / (spread < SMALLEST ? SMALLEST : spread);
}

GP_MAP2(bce_f32, float, float, loss32(a, b))
GP_MAP2(bce_f64, double, double, loss64(a, b))
GP_MAP3(bce_dx_f32, float, float, (a * slope32(b, c)))
GP_MAP3(bce_dx_f64, double, double, (a * slope64(b, c)))

GP_MAP_KERNEL(bce, bce_f32, bce_f64)
GP_MAP_KERNEL(bce_dx, bce_dx_f32, bce_dx_f64)

/* Apply the first operand's gradient op to dy and both operands. */
static gp_status set_slope(gp_vjp *v, gp_op op) {
  const gp_attrs none = {0};
  const gp_ref in[] = {v->dout[0], v->in[0], v->in[1]};
  return v->need[0] ? gp_build(v->builder, op, &none, in, 3, &v->din[0]) : GP_OK;
}

static gp_status bounded_log(gp_vjp *v, gp_op op, gp_ref x, gp_ref *out) {
  const gp_attrs least = {.clamp = {LOWEST, INFINITY}};
  GP_TRY(gp_vjp_op1(v, op, x, out));
  return gp_build(v->builder, GP_OP_clamp, &least, (gp_ref[]){*out}, 1, out);
}

/* The gradient of the target is dy (log(1 - p) - log(p)). */
static gp_status bce_vjp(gp_vjp *v) {
  gp_ref minus, yes, no, g;
  GP_TRY(set_slope(v, GP_OP_bce_dx));
  if (!v->need[1]) return GP_OK;
  GP_TRY(gp_vjp_op1(v, GP_OP_neg, v->in[0], &minus));
  GP_TRY(bounded_log(v, GP_OP_log1p, minus, &no));
  GP_TRY(bounded_log(v, GP_OP_log, v->in[0], &yes));
  GP_TRY(gp_vjp_op2(v, GP_OP_sub, no, yes, &g));
  return gp_vjp_op2(v, GP_OP_mul, v->dout[0], g, &v->din[1]);
}

GP_MAP_OP(bce, 2, .infer = gp_map_dx_infer, .vjp = bce_vjp, .cost = gp_map_cost_heavy)
GP_MAP_OP(bce_dx, 3, .infer = gp_map_infer, .cost = gp_map_cost_light)

/* ---- scores -------------------------------------------------------------------------------- */

/* Besides log(1 + e^-|x|), a loss has the cost of a score on the wrong side. */
#define COST(x, t) ((x) > 0 ? (x) * (1 - (t)) : -(x) * (t))

static inline float score_loss32(float x, float t) {
  return COST(x, t) + gp_log1pf(gp_expf(-fabsf(x)));
}
static inline double score_loss64(double x, double t) { return COST(x, t) + log1p(exp(-fabs(x))); }

/* dy (sigmoid(x) - t), each part with its digits. */
static inline float score_slope32(float x, float t) {
  return (1 - t) * gp_sigmoidf(x) - t * gp_sigmoidf(-x);
}
static inline double score_slope64(double x, double t) {
  return (1 - t) * gp_sigmoid(x) - t * gp_sigmoid(-x);
}

GP_MAP2(bce_logits_f32, float, float, score_loss32(a, b))
GP_MAP2(bce_logits_f64, double, double, score_loss64(a, b))
GP_MAP3(bce_logits_dx_f32, float, float, (a * score_slope32(b, c)))
GP_MAP3(bce_logits_dx_f64, double, double, (a * score_slope64(b, c)))

GP_MAP_KERNEL(bce_logits, bce_logits_f32, bce_logits_f64)
GP_MAP_KERNEL(bce_logits_dx, bce_logits_dx_f32, bce_logits_dx_f64)

/* The gradient of the target is -dy x. */
static gp_status bce_logits_vjp(gp_vjp *v) {
  gp_ref g;
  GP_TRY(set_slope(v, GP_OP_bce_logits_dx));
  if (!v->need[1]) return GP_OK;
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], v->in[0], &g));
  return gp_vjp_op1(v, GP_OP_neg, g, &v->din[1]);
}

GP_MAP_OP(bce_logits, 2, .infer = gp_map_dx_infer, .vjp = bce_logits_vjp, .cost = gp_map_cost_heavy)
GP_MAP_OP(bce_logits_dx, 3, .infer = gp_map_infer, .cost = gp_map_cost_heavy)
