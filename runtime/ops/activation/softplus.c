/* ops/activation/softplus.c - x -> log(1 + exp(beta x)) / beta, and its gradient.
 *
 * Where beta x is above the threshold the result is x: the rest is below the last digit. Only
 * exponentials of negative numbers are taken, so nothing overflows. The gradient reads the input.
 * Source: Dugas et al., "Incorporating second-order functional knowledge" (2000), equation 4. */
#include "ops/elementwise/loops.h"

static inline float softplus32(float x, float beta, float threshold) {
  const float z = x * beta;
  const float y = (z > 0.0f ? z : 0.0f) + gp_log1pf(gp_expf(-fabsf(z)));
  return z > threshold ? x : y / beta;
}

static inline double softplus64(double x, double beta, double threshold) {
  const double z = x * beta;
  if (z > threshold) return x;
  return ((z > 0 ? z : 0) + log1p(exp(-fabs(z)))) / beta;
}

static inline float slope32(float x, float beta, float threshold) {
  return x * beta > threshold ? 1.0f : gp_sigmoidf(x * beta);
}

static inline double slope64(double x, double beta, double threshold) {
  return x * beta > threshold ? 1.0 : gp_sigmoid(x * beta);
}

/* softplus and softplus_dx have the same attributes. */
#define ATTRS(T)                                                                                   \
  const gp_attr_softplus *attr = &run->call->attr->softplus;                                       \
  const T beta = (T)attr->beta, threshold = (T)attr->threshold

GP_MAP1_WITH(softplus_f32, float, float, ATTRS(float), softplus32(a, beta, threshold))
GP_MAP1_WITH(softplus_f64, double, double, ATTRS(double), softplus64(a, beta, threshold))
GP_MAP2_WITH(softplus_dx_f32, float, float, ATTRS(float), (a * slope32(b, beta, threshold)))
GP_MAP2_WITH(softplus_dx_f64, double, double, ATTRS(double), (a * slope64(b, beta, threshold)))

GP_MAP_KERNEL(softplus, softplus_f32, softplus_f64)

GP_MAP_KERNEL(softplus_dx, softplus_dx_f32, softplus_dx_f64)

static gp_status vjp(gp_vjp *v) {
  const gp_attr_softplus *attr = &v->attr->softplus;
  const gp_attrs attrs = {.softplus_dx = {attr->beta, attr->threshold}};
  return gp_build(v->builder, GP_OP_softplus_dx, &attrs, (gp_ref[]){v->dout[0], v->in[0]}, 2,
                  &v->din[0]);
}

GP_MAP_OP(softplus, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)

GP_MAP_OP(softplus_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_heavy)
