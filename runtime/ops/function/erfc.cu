/* ops/function/erfc.cu - 1 minus the error function on a GPU, and its gradient. */
#include "ops/constants.h"
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(erfc, erfc(a))
GP_GPU_SLOPE(erfc, (a * (C(-GP_2_ROOT_PI) * exp(-(b * b)))))
