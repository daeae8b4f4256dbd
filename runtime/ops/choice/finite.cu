/* ops/choice/finite.cu - isnan, isinf, isfinite on a GPU. Integers and booleans are always
 * finite. */
#include "ops/choice/predicate.cuh"

/* x - x is 0, except for infinities and NaN. */
GP_GPU_PREDICATE1(isnan, !(a == a))
GP_GPU_PREDICATE1(isinf, a - a != C(0) && a == a)
GP_GPU_PREDICATE1(isfinite, a - a == C(0))
