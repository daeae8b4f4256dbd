/* tests/c/ops/vmath_test.c - the float functions against libm's doubles, over the whole range. */
#include "ops/math/vmath.h"
#include "test.h"

/* Returns the error in units in the last place of the float nearest to `right`. */
static double ulps(float y, double right) {
  if (isnan(right)) return isnan(y) ? 0 : INFINITY;
  if (y == (float)right) return signbit(y) == signbit((float)right) ? 0 : INFINITY;
  if (isinf((float)right) || isinf(y)) return INFINITY;
  int exponent = right == 0 ? -126 : ilogb(right);
  return fabs((double)y - right) / ldexp(1, (exponent < -126 ? -126 : exponent) - 23);
}

/* Tests every 4099th float of both signs (a prime, so that mantissas vary), NaNs and infinities
 * too. */
static double worst(float (*f)(float), double (*right)(double)) {
  double most = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) {
    float x = gp_float_of((uint32_t)bits);
    double error = ulps(f(x), right((double)x));
    if (error > most) most = error;
  }
  return most;
}

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

/* The bounds were measured over every 37th float; each has a little added. */
TEST(errors_stay_below_their_bounds) {
  CHECK(worst(gp_expf, exp) < 1.2);
  CHECK(worst(gp_tanhf, tanh) < 2.8);
  CHECK(worst(gp_sigmoidf, sigmoid) < 2.5);
  CHECK(worst(gp_erff, erf) < 3.2);
  CHECK(worst(gp_logf, log) < 1.0);
  CHECK(worst(gp_expm1f, expm1) < 1.8);
  CHECK(worst(gp_log1pf, log1p) < 2.5);
}

/* Tests both zeros, the ends of the ranges, denormals, infinities, NaN. */
TEST(special_values_are_libms) {
  static const float special[] = {0.0f,     -0.0f,     1.0f,    -1.0f,  88.72f,          88.73f,
                                  -87.4f,   -103.9f,   -104.1f, 1e-45f, 1.17549435e-38f, 3.4e38f,
                                  INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
    float x = special[i];
    CHECK(ulps(gp_expf(x), exp((double)x)) < 1.2);
    CHECK(ulps(gp_tanhf(x), tanh((double)x)) < 2.8);
    CHECK(ulps(gp_sigmoidf(x), sigmoid((double)x)) < 2.5);
    CHECK(ulps(gp_erff(x), erf((double)x)) < 3.2);
    CHECK(ulps(gp_logf(x), log((double)x)) < 1.0);
    CHECK(ulps(gp_expm1f(x), expm1((double)x)) < 1.8);
    CHECK(ulps(gp_log1pf(x), log1p((double)x)) < 2.5);
  }
}

TEST_MAIN(errors_stay_below_their_bounds, special_values_are_libms)
