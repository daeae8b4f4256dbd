/* tests/c/ops/op_gradient.h - gradient rules against central differences, with a builder of our
 * own.
 *
 * A rule asks its builder for nodes; this builder applies each op at once, so a rule can be tested
 * without a graph. Include it in one file of a test program: it defines the functions of
 * gp_builder. */
#ifndef GP_TESTS_OP_GRADIENT_H
#define GP_TESTS_OP_GRADIENT_H

#include "base/status.h"
#include "op_support.h"

enum { BUILDER_VALUES = 128 };

struct gp_builder {
  int count;
  gp_tensor *value[BUILDER_VALUES];
};

/* Keeps a value (taken) and gives it a number. */
static inline gp_ref builder_add(gp_builder *b, gp_tensor *value) {
  GP_ASSERT(b->count < BUILDER_VALUES);
  b->value[b->count] = value;
  return b->count++;
}

/* Random ops get the same clock each time, so that forward and gradient draw the same mask. */
gp_status gp_build(gp_builder *b, gp_op op, const gp_attrs *attrs, const gp_ref *in, int n_in,
                   gp_ref *out) {
  gp_tensor *inputs[GP_MAX_INPUTS], *outputs[GP_MAX_OUTPUTS];
  int n_out;
  for (int i = 0; i < n_in; i++) inputs[i] = b->value[in[i]];
  gp_eager_seed(77);
  GP_TRY(gp_eager_apply(op, attrs, inputs, n_in, outputs, &n_out));
  gp_ref first = b->count;
  for (int i = 0; i < n_out; i++) builder_add(b, outputs[i]);
  *out = first;
  return GP_OK;
}

const gp_meta *gp_build_meta(const gp_builder *b, gp_ref ref) {
  return gp_tensor_meta(b->value[ref]);
}

gp_status gp_build_constant(gp_builder *b, gp_dtype dtype, double value, gp_ref *out) {
  const gp_shape scalar = {0};
  gp_tensor *t;
  GP_TRY(gp_tensor_new(dtype, &scalar, &t));
  gp_tensor_set_double(t, 0, value);
  *out = builder_add(b, t);
  return GP_OK;
}

static inline void builder_free(gp_builder *b) {
  for (int i = 0; i < b->count; i++) gp_tensor_free(b->value[i]);
  b->count = 0;
}

/* One application whose gradient is checked. Float inputs are differentiated unless fixed. */
typedef struct gradient_case {
  gp_op op;
  gp_attrs attrs;
  int n_in;
  gp_tensor *in[GP_MAX_INPUTS]; /* f64; taken */
  unsigned fixed;               /* bit i: in[i] is not differentiated */
  double tolerance;             /* 0: 1e-6, relative plus absolute */
} gradient_case;

/* sum over outputs k of sum(weight[k] * output k), computed anew from the current inputs. */
static inline double weighted(const gradient_case *c, gp_tensor *const *weight) {
  gp_builder b = {0};
  gp_ref in[GP_MAX_INPUTS], out = 0;
  double total = 0;
  for (int i = 0; i < c->n_in; i++) in[i] = builder_add(&b, gp_tensor_retain(c->in[i]));
  CHECK_STATUS(gp_build(&b, c->op, &c->attrs, in, c->n_in, &out), GP_OK);
  for (int k = 0; out + k < b.count; k++)
    for (int64_t i = 0; weight[k] && i < gp_tensor_numel(weight[k]); i++)
      total += gp_tensor_get_double(weight[k], i) * gp_tensor_get_double(b.value[out + k], i);
  builder_free(&b);
  return total;
}

/* Compares one input's gradient element by element; reports the first wrong element. */
static inline void check_input(const gradient_case *c, int i, gp_tensor *const *weight,
                               const gp_tensor *g) {
  double h = 1e-5, tolerance = c->tolerance > 0 ? c->tolerance : 1e-6;
  CHECK(gp_meta_equal(gp_tensor_meta(g), gp_tensor_meta(c->in[i])));
  for (int64_t e = 0; e < gp_tensor_numel(g); e++) {
    double x = gp_tensor_get_double(c->in[i], e);
    gp_tensor_set_double(c->in[i], e, x + h);
    double above = weighted(c, weight);
    gp_tensor_set_double(c->in[i], e, x - h);
    double slope = (above - weighted(c, weight)) / (2 * h), got = gp_tensor_get_double(g, e);
    gp_tensor_set_double(c->in[i], e, x);
    if (fabs(got - slope) <= tolerance * (1 + fabs(slope))) continue;
    printf("%s, input %d, element %d: ", gp_op_name(c->op), i + 1, (int)e);
    CHECK_NEAR(got, slope, tolerance * (1 + fabs(slope)));
    return;
  }
}

/* Applies the op, asks its rule, and compares with the slopes; frees the inputs. */
static inline void check_gradient(gradient_case c) {
  gp_builder b = {0};
  gp_ref in[GP_MAX_INPUTS], out[GP_MAX_OUTPUTS], dout[GP_MAX_OUTPUTS], din[GP_MAX_INPUTS];
  gp_tensor *weight[GP_MAX_OUTPUTS] = {0};
  bool need[GP_MAX_INPUTS];
  for (int i = 0; i < c.n_in; i++) {
    in[i] = builder_add(&b, gp_tensor_retain(c.in[i]));
    need[i] = gp_dtype_is_float(gp_tensor_meta(c.in[i])->dtype) && !(c.fixed >> i & 1);
    din[i] = GP_NONE;
  }
  CHECK_STATUS(gp_build(&b, c.op, &c.attrs, in, c.n_in, &out[0]), GP_OK);
  int n_out = b.count - out[0];
  for (int k = 0; k < n_out; k++) {
    const gp_meta *meta = gp_build_meta(&b, out[k] = out[0] + k);
    if (gp_dtype_is_float(meta->dtype)) weight[k] = uniform(meta->dtype, meta->shape, 0.5, 1.5);
    dout[k] = weight[k] ? builder_add(&b, gp_tensor_retain(weight[k])) : GP_NONE;
  }
  gp_vjp v = {&b, &c.attrs, c.n_in, n_out, in, out, dout, need, din};
  CHECK_STATUS(gp_op_get(c.op)->vjp(&v), GP_OK);
  for (int i = 0; i < c.n_in; i++) {
    CHECK(need[i] ? din[i] != GP_NONE : true);
    if (need[i] && din[i] != GP_NONE) check_input(&c, i, weight, b.value[din[i]]);
  }
  builder_free(&b);
  for (int k = 0; k < n_out; k++) gp_tensor_free(weight[k]);
  for (int i = 0; i < c.n_in; i++) gp_tensor_free(c.in[i]);
}

#endif
