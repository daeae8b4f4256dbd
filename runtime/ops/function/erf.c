/* ops/function/erf.c - the error function of x, and its gradient. */
#include "ops/constants.h"
#include "ops/elementwise/unary.h"

/* dx = dy 2 / sqrt(pi) e^(-x x). */
GP_SLOPE(erf, GP_NO_SET, in, (a * ((float)GP_2_ROOT_PI * gp_expf(-(b * b)))),
         (a * (GP_2_ROOT_PI * exp(-(b * b)))), heavy)
GP_UNARY(erf, GP_NO_SET, gp_erff(a), erf(a), heavy, .vjp = erf_vjp)
