/* ops/function/erf.cu - the error function on a GPU, and its gradient. */
#include "ops/constants.h"
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(erf, erf(a))
GP_GPU_SLOPE(erf, (a * (C(GP_2_ROOT_PI) * exp(-(b * b)))))
