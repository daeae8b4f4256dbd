/* tests/c/optim/update_test.c - the fused updates against the formulas written out element by
 * element. */
#include <float.h>
#include <stdlib.h>

#include "optim/hypers.h"
#include "optim/optim.h"
#include "test.h"

enum { N = 1003, STEPS = 7 }; /* N: 62 blocks of 16 and a remainder */

/* ---- the formulas, as torch documents them -------------------------------------------------- */

typedef struct element {
  double p, g, m, v, w;
} element;

static void naive_sgd(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g + h->weight_decay * e->p;
  if (h->momentum != 0) {
    e->m = step == 1 ? d : h->momentum * e->m + (1 - h->dampening) * d;
    d = h->nesterov ? d + h->momentum * e->m : e->m;
  }
  e->p -= h->lr * d;
}

static void naive_adam(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g;
  if (h->kind == GP_OPTIM_ADAM)
    d += h->weight_decay * e->p;
  else
    e->p -= h->lr * h->weight_decay * e->p;
  e->m = h->beta1 * e->m + (1 - h->beta1) * d;
  e->v = h->beta2 * e->v + (1 - h->beta2) * d * d;
  e->w = h->amsgrad ? fmax(e->w, e->v) : e->v;
  double m = e->m / (1 - pow(h->beta1, step)), v = e->w / (1 - pow(h->beta2, step));
  e->p -= h->lr * m / (sqrt(v) + h->eps);
}

static void naive_rmsprop(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g + h->weight_decay * e->p, alpha = h->beta2;
  (void)step;
  e->v = alpha * e->v + (1 - alpha) * d * d;
  e->w = alpha * e->w + (1 - alpha) * d;
  double size = sqrt(e->v - (h->centered ? e->w * e->w : 0)) + h->eps;
  e->m = h->momentum * e->m + d / size;
  e->p -= h->lr * e->m;
}

static void naive_adagrad(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g + h->weight_decay * e->p;
  e->v += d * d;
  e->p -= h->lr / (1 + (step - 1) * h->lr_decay) * d / (sqrt(e->v) + h->eps);
}

static void naive_lion(const gp_optim_hyper *h, int step, element *e) {
  double d = h->beta1 * e->m + (1 - h->beta1) * e->g;
  (void)step;
  e->p -= h->lr * h->weight_decay * e->p;
  e->p -= h->lr * (d > 0 ? 1 : d < 0 ? -1 : 0);
  e->m = h->beta2 * e->m + (1 - h->beta2) * e->g;
}

static void naive_adamax(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g + h->weight_decay * e->p;
  e->m = h->beta1 * e->m + (1 - h->beta1) * d;
  e->v = fmax(h->beta2 * e->v, fabs(d) + h->eps);
  e->p -= h->lr / (1 - pow(h->beta1, step)) * e->m / e->v;
}

static void naive_adadelta(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g + h->weight_decay * e->p, rho = h->beta2;
  (void)step;
  e->v = rho * e->v + (1 - rho) * d * d;
  double change = sqrt((e->m + h->eps) / (e->v + h->eps)) * d;
  e->m = rho * e->m + (1 - rho) * change * change;
  e->p -= h->lr * change;
}

static void naive_nadam(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g, mu = 0, next = 0, product = 1;
  if (h->decoupled)
    e->p -= h->lr * h->weight_decay * e->p;
  else
    d += h->weight_decay * e->p;
  for (int i = 1; i <= step; i++) {
    mu = h->beta1 * (1 - pow(0.96, i * h->momentum_decay) / 2);
    next = h->beta1 * (1 - pow(0.96, (i + 1) * h->momentum_decay) / 2);
    product *= mu;
  }
  e->m = h->beta1 * e->m + (1 - h->beta1) * d;
  e->v = h->beta2 * e->v + (1 - h->beta2) * d * d;
  double size = sqrt(e->v / (1 - pow(h->beta2, step))) + h->eps;
  e->p -= h->lr * ((1 - mu) / (1 - product) * d + next / (1 - product * next) * e->m) / size;
}

static void naive_radam(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g, power = pow(h->beta2, step), most = 2 / (1 - h->beta2) - 1;
  double now = most - 2 * step * power / (1 - power);
  if (h->decoupled)
    e->p -= h->lr * h->weight_decay * e->p;
  else
    d += h->weight_decay * e->p;
  e->m = h->beta1 * e->m + (1 - h->beta1) * d;
  e->v = h->beta2 * e->v + (1 - h->beta2) * d * d;
  double change = h->lr * e->m / (1 - pow(h->beta1, step));
  if (now > 5)
    change *= sqrt(1 - power) / (sqrt(e->v) + h->eps) *
              sqrt((now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now));
  e->p -= change;
}

static void naive_rprop(const gp_optim_hyper *h, int step, element *e) {
  double d = e->g;
  if (step == 1) e->m = 0, e->v = h->lr;
  if (d * e->m > 0) e->v *= h->grow;
  if (d * e->m < 0) e->v *= h->shrink, d = 0;
  e->v = fmin(fmax(e->v, h->least), h->most);
  e->p -= d > 0 ? e->v : d < 0 ? -e->v : 0;
  e->m = d;
}

static void naive(const gp_optim_hyper *h, int step, element *e) {
  static void (*const rules[GP_OPTIM_KINDS])(const gp_optim_hyper *, int, element *) = {
      [GP_OPTIM_SGD] = naive_sgd,         [GP_OPTIM_ADAM] = naive_adam,
      [GP_OPTIM_ADAMW] = naive_adam,      [GP_OPTIM_RMSPROP] = naive_rmsprop,
      [GP_OPTIM_ADAGRAD] = naive_adagrad, [GP_OPTIM_LION] = naive_lion,
      [GP_OPTIM_ADAMAX] = naive_adamax,   [GP_OPTIM_ADADELTA] = naive_adadelta,
      [GP_OPTIM_NADAM] = naive_nadam,     [GP_OPTIM_RADAM] = naive_radam,
      [GP_OPTIM_RPROP] = naive_rprop};
  rules[h->kind](h, step, e);
}

/* ---- the kernels ---------------------------------------------------------------------------- */

static double random_value(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (double)(*state >> 8) / (1 << 23) - 1;
}

static void put(gp_dtype dtype, void *array, int i, double value) {
  if (dtype == GP_F32)
    ((float *)array)[i] = (float)value;
  else
    ((double *)array)[i] = value;
}

static double get(gp_dtype dtype, const void *array, int i) {
  return dtype == GP_F32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

typedef struct arenas {
  double p[N], g[N], m[GP_OPTIM_MOMENTS][N]; /* room for either type */
} arenas;

static gp_optim_slice slice_of(gp_dtype dtype, arenas *a, int moments) {
  gp_optim_slice slice = {.dtype = dtype, .n = N, .value = a->p, .grad = a->g};
  for (int k = 0; k < moments; k++) slice.moments[k] = a->m[k];
  return slice;
}

static void compare(gp_dtype dtype, const gp_optim_hyper *h, double tolerance) {
  static arenas a;
  static element e[N];
  memset(&a, 0, sizeof a);
  unsigned state = 1;
  for (int i = 0; i < N; i++) {
    put(dtype, a.p, i, random_value(&state));
    e[i] = (element){.p = get(dtype, a.p, i)};
  }
  gp_optim_slice slice = slice_of(dtype, &a, gp_optim_moments(h));
  for (int step = 1; step <= STEPS; step++) {
    for (int i = 0; i < N; i++) put(dtype, a.g, i, random_value(&state));
    for (int i = 0; i < N; i++) e[i].g = get(dtype, a.g, i);
    for (int i = 0; i < N; i++) naive(h, step, &e[i]);
    CHECK_STATUS(gp_optim_update(h, step, &slice, 0, N), GP_OK);
  }
  double worst = 0;
  for (int i = 0; i < N; i++) worst = fmax(worst, fabs(e[i].p - get(dtype, a.p, i)));
  CHECK_NEAR(worst, 0, tolerance);
}

TEST(updates_follow_the_formulas) {
  for (int i = 0; i < HYPERS; i++) {
    compare(GP_F64, &hypers[i], 1e-13);
    compare(GP_F32, &hypers[i], 2e-6);
  }
}

/* The bits must be the same whether [0, N) is updated at once or in odd pieces. */
static void compare_cuts(gp_dtype dtype, const gp_optim_hyper *h) {
  static arenas whole, cut;
  memset(&whole, 0, sizeof whole);
  unsigned state = 7;
  for (int i = 0; i < N; i++) put(dtype, whole.p, i, random_value(&state));
  for (int i = 0; i < N; i++) put(dtype, whole.g, i, random_value(&state));
  cut = whole;
  gp_optim_slice a = slice_of(dtype, &whole, gp_optim_moments(h));
  gp_optim_slice b = slice_of(dtype, &cut, gp_optim_moments(h));
  static const int edges[] = {0, 1, 17, 17, 100, 511, 512, 1002, N};
  for (int step = 1; step <= 3; step++) {
    CHECK_STATUS(gp_optim_update(h, step, &a, 0, N), GP_OK);
    for (int k = 0; k + 1 < (int)(sizeof edges / sizeof *edges); k++)
      CHECK_STATUS(gp_optim_update(h, step, &b, edges[k], edges[k + 1]), GP_OK);
  }
  CHECK(!memcmp(&whole, &cut, sizeof whole));
}

TEST(the_cut_changes_no_bit) {
  for (int i = 0; i < HYPERS; i++) {
    compare_cuts(GP_F32, &hypers[i]);
    compare_cuts(GP_F64, &hypers[i]);
  }
}

/* ---- wrong calls ---------------------------------------------------------------------------- */

TEST(wrong_calls_are_refused) {
  static arenas a;
  gp_optim_hyper h = hypers[ADAMW];
  gp_optim_slice slice = slice_of(GP_F32, &a, 2);
  CHECK_STATUS(gp_optim_update(&h, 0, &slice, 0, N), GP_ERANGE);
  CHECK_STATUS(gp_optim_update(&h, 1, &slice, 0, N + 1), GP_ERANGE);
  slice.dtype = GP_I64;
  CHECK_STATUS(gp_optim_update(&h, 1, &slice, 0, N), GP_EDTYPE);
  slice = slice_of(GP_F32, &a, 1);
  CHECK_STATUS(gp_optim_update(&h, 1, &slice, 0, N), GP_EINVAL);
  slice = slice_of(GP_F32, &a, 2);
  h.lr = NAN;
  CHECK_STATUS(gp_optim_update(&h, 1, &slice, 0, N), GP_EINVAL);
  h = hypers[ADAMW];
  h.beta2 = 1;
  CHECK_STATUS(gp_optim_update(&h, 1, &slice, 0, N), GP_EINVAL);
  h = (gp_optim_hyper){.kind = GP_OPTIM_SGD, .lr = 1, .nesterov = true};
  CHECK_STATUS(gp_optim_update(&h, 1, &slice, 0, N), GP_EINVAL);
}

/* ---- reductions ----------------------------------------------------------------------------- */

TEST(sums_of_squares_have_the_fixed_order) {
  static float x[N];
  unsigned state = 3;
  for (int i = 0; i < N; i++) x[i] = (float)random_value(&state);
  double lane[64] = {0};
  for (int i = 0; i < N; i++) lane[i % 64] += (double)x[i] * (double)x[i];
  for (int width = 32; width; width /= 2)
    for (int j = 0; j < width; j++) lane[j] += lane[j + width];
  CHECK(gp_optim_sum_squares(GP_F32, N, x) == lane[0]);
  CHECK(gp_optim_sum_squares(GP_F32, 0, x) == 0);
  gp_optim_scale(GP_F32, N, x, 0.5);
  CHECK(gp_optim_sum_squares(GP_F32, N, x) == lane[0] / 4);
}

/* The largest number of each type is finite, also with a sign; infinities and NaN are not, wherever
 * they stand. */
TEST(what_is_not_finite_is_seen_everywhere) {
  enum { COUNT = 69 };
  const float bad32[] = {INFINITY, -INFINITY, NAN};
  const double bad64[] = {INFINITY, -INFINITY, NAN};
  float x[COUNT];
  double y[COUNT];
  for (int i = 0; i < COUNT; i++)
    x[i] = i % 2 ? FLT_MAX : -FLT_MAX, y[i] = i % 2 ? DBL_MAX : -DBL_MAX;
  CHECK(gp_optim_is_finite(GP_F32, COUNT, x) && gp_optim_is_finite(GP_F32, 0, x));
  CHECK(gp_optim_is_finite(GP_F64, COUNT, y) && gp_optim_is_finite(GP_F64, 0, y));
  for (int i = 0; i < COUNT; i++)
    for (int k = 0; k < 3; k++) {
      float before32 = x[i];
      double before64 = y[i];
      x[i] = bad32[k], y[i] = bad64[k];
      CHECK(!gp_optim_is_finite(GP_F32, COUNT, x) && !gp_optim_is_finite(GP_F64, COUNT, y));
      x[i] = before32, y[i] = before64;
    }
}

TEST_MAIN(what_is_not_finite_is_seen_everywhere, updates_follow_the_formulas,
          the_cut_changes_no_bit, wrong_calls_are_refused, sums_of_squares_have_the_fixed_order)
