/* ops/function/erfc.c - 1 minus the error function of x, and its gradient. The result keeps its
 * digits where the error function is near 1. */
#include "ops/constants.h"
#include "ops/elementwise/unary.h"

/* dx = -dy 2 / sqrt(pi) e^(-x x). */
GP_SLOPE(erfc, GP_NO_SET, in, (a * (-(float)GP_2_ROOT_PI * expf(-(b * b)))),
         (a * (-GP_2_ROOT_PI * exp(-(b * b)))), heavy)
GP_UNARY(erfc, GP_NO_SET, erfcf(a), erfc(a), heavy, .vjp = erfc_vjp)
