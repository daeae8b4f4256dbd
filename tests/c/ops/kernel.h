/* tests/c/ops/kernel.h - run the CPU kernel of one op directly, whole or in pieces, and compare.
 *
 * The tests of the heavy ops use op definitions, not the graph or the eager layer, so that a wrong
 * value can only come from the kernel. Outputs start as NaN, so that an element that a kernel
 * forgets is visible. finish() frees everything that is made here. */
#ifndef GP_TESTS_KERNEL_H
#define GP_TESTS_KERNEL_H

#include "op_call.h"

/* ---- values -------------------------------------------------------------------------------- */

enum { MAX_KEPT = 512 };
static gp_tensor *kept[MAX_KEPT];
static int kept_count;

static inline gp_tensor *keep(gp_tensor *tensor) {
  if (kept_count == MAX_KEPT) {
    printf("too many tensors in one test\n");
    exit(1);
  }
  return kept[kept_count++] = tensor;
}

/* Ends a test: frees all values. */
static inline void finish(void) {
  while (kept_count > 0) gp_tensor_free(kept[--kept_count]);
}

static inline gp_tensor *zeros(gp_dtype dtype, gp_shape shape) {
  return keep(new_tensor(dtype, shape));
}

static inline gp_tensor *constant(gp_dtype dtype, gp_shape shape, double value) {
  gp_tensor *tensor = zeros(dtype, shape);
  for (int64_t i = 0; i < gp_tensor_numel(tensor); i++) gp_tensor_set_double(tensor, i, value);
  return tensor;
}

/* Makes numbers in [-1, 1) from a generator of the test's own; they are rounded to f32, so that
 * both types hold the same values. */
static inline gp_tensor *noise(gp_dtype dtype, gp_shape shape, uint32_t seed) {
  gp_tensor *tensor = zeros(dtype, shape);
  uint64_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < gp_tensor_numel(tensor); i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    gp_tensor_set_double(tensor, i, (double)(float)((double)(state >> 40) / 8388608.0 - 1));
  }
  return tensor;
}

static inline gp_tensor *ids(gp_dtype dtype, gp_shape shape, int64_t count, uint32_t seed) {
  gp_tensor *tensor = noise(GP_F64, shape, seed), *result = zeros(dtype, shape);
  for (int64_t i = 0; i < gp_tensor_numel(tensor); i++)
    gp_tensor_set_int(result, i,
                      (int64_t)((gp_tensor_get_double(tensor, i) + 1) / 2 * (double)count));
  return result;
}

static inline gp_tensor *converted(gp_dtype dtype, const gp_tensor *from) {
  gp_tensor *tensor = zeros(dtype, gp_tensor_meta(from)->shape);
  CHECK_STATUS(gp_tensor_copy(tensor, from), GP_OK);
  return tensor;
}

static inline double get(const gp_tensor *t, int64_t i) { return gp_tensor_get_double(t, i); }

/* ---- applications -------------------------------------------------------------------------- */

/* One application of an op; infer_only or apply fills out. */
typedef struct application {
  const gp_op_def *def;
  gp_attrs attr;
  int n_in, n_out;
  gp_tensor *in[GP_MAX_INPUTS], *out[GP_MAX_OUTPUTS];
  gp_step_block step;
  bool accumulate; /* the op adds to out[0], which the test gives */
  bool pieces;     /* runs grain by grain, the last piece first */
} application;

#define APPLY(op, attrs, ...)                                                                      \
  ((application){.def = &gp_def_##op,                                                              \
                 .attr = attrs,                                                                    \
                 .n_in = (int)(sizeof((gp_tensor *[]){__VA_ARGS__}) / sizeof(gp_tensor *)),        \
                 .in = {__VA_ARGS__}})
#define NO_ATTRS ((gp_attrs){0})

static inline gp_status infer_only(application *a) {
  gp_sig sig = {.attr = &a->attr, .n_in = a->n_in};
  for (int i = 0; i < a->n_in; i++) sig.in[i] = gp_tensor_meta(a->in[i]);
  gp_op op = GP_OP_COUNT;
  CHECK_STATUS(gp_op_find(a->def->name, &op), GP_OK);
  gp_status status = gp_op_infer(op, &sig);
  if (status != GP_OK) return status;
  a->n_out = sig.n_out;
  for (int k = 0; k < sig.n_out; k++) {
    if (a->out[k]) continue;
    a->out[k] = zeros(sig.out[k].dtype, sig.out[k].shape);
    memset(gp_tensor_data(a->out[k]), 0xff, gp_meta_bytes(&sig.out[k])); /* NaN */
  }
  return GP_OK;
}

static inline gp_status apply(application *a) {
  gp_status status = infer_only(a);
  if (status != GP_OK) return status;
  gp_call call = {.attr = &a->attr,
                  .step = &a->step,
                  .n_in = a->n_in,
                  .n_out = a->n_out,
                  .accumulate = a->accumulate};
  bind_call(&call, a->in, a->out);
  const gp_cpu_kernel *cpu = &a->def->cpu;
  return run_pieces(&call, cpu, a->pieces ? cpu->cut(&call).grain : 0);
}

/* Applies the op and returns output 0; failures are reported. */
static inline gp_tensor *output(application a) {
  CHECK_STATUS(apply(&a), GP_OK);
  return a.out[0];
}

/* ---- comparisons --------------------------------------------------------------------------- */

/* Returns the largest |a - b| / (1 + |b|); infinity where one of them is not finite. */
static inline double difference(const gp_tensor *a, const gp_tensor *b) {
  double worst = 0;
  for (int64_t i = 0; i < gp_tensor_numel(a); i++) {
    double d = fabs(get(a, i) - get(b, i)) / (1 + fabs(get(b, i)));
    if (!(d <= worst)) worst = isfinite(d) ? d : INFINITY;
  }
  return worst;
}

/* Runs the op whole and in pieces: every output must have the same bits. Returns the whole run. */
static inline application same_in_pieces(application a) {
  application b = a;
  b.pieces = true;
  if (a.accumulate) {
    b.out[0] = zeros(gp_tensor_meta(a.out[0])->dtype, gp_tensor_meta(a.out[0])->shape);
    CHECK_STATUS(gp_tensor_copy(b.out[0], a.out[0]), GP_OK);
  }
  CHECK_STATUS(apply(&a), GP_OK);
  CHECK_STATUS(apply(&b), GP_OK);
  for (int k = 0; k < a.n_out; k++) CHECK(gp_tensor_equal(a.out[k], b.out[k]));
  return a;
}

/* Runs an f64 application in f32: both must agree within `tolerance`. */
static inline void near_in_f32(application a, double tolerance) {
  application b = a;
  CHECK_STATUS(apply(&a), GP_OK);
  for (int i = 0; i < b.n_in; i++)
    if (gp_tensor_meta(b.in[i])->dtype == GP_F64) b.in[i] = converted(GP_F32, b.in[i]);
  for (int k = 0; k < GP_MAX_OUTPUTS; k++) b.out[k] = NULL;
  CHECK_STATUS(apply(&b), GP_OK);
  for (int k = 0; k < a.n_out; k++) CHECK_NEAR(difference(b.out[k], a.out[k]), 0, tolerance);
}

/* Returns sum(output 0 * weight), for central differences. */
static inline double weighted(application a, const gp_tensor *weight) {
  for (int k = 0; k < GP_MAX_OUTPUTS; k++) a.out[k] = NULL;
  int before = kept_count;
  CHECK_STATUS(apply(&a), GP_OK);
  double sum = 0;
  for (int64_t i = 0; i < gp_tensor_numel(weight); i++) sum += get(a.out[0], i) * get(weight, i);
  while (kept_count > before) gp_tensor_free(kept[--kept_count]);
  return sum;
}

/* The gradient of weighted(forward) by input i must be `gradient`, by central differences (f64). */
static inline void check_gradient(application forward, int i, const gp_tensor *weight,
                                  const gp_tensor *gradient) {
  const double h = 1e-5;
  gp_tensor *x = forward.in[i];
  double worst = 0;
  for (int64_t e = 0; e < gp_tensor_numel(x); e++) {
    double old = get(x, e);
    gp_tensor_set_double(x, e, old + h);
    double above = weighted(forward, weight);
    gp_tensor_set_double(x, e, old - h);
    double numeric = (above - weighted(forward, weight)) / (2 * h);
    gp_tensor_set_double(x, e, old);
    double d = fabs(numeric - get(gradient, e)) / (1 + fabs(numeric));
    if (!(d <= worst)) worst = isfinite(d) ? d : INFINITY;
  }
  CHECK_NEAR(worst, 0, 1e-7);
}

/* Checks that the op refuses, with this status and this part of the text. */
static inline void refuses(application a, gp_status status, const char *text) {
  CHECK_STATUS(apply(&a), status);
  CHECK_TEXT(gp_error_text(), text);
}

#endif
