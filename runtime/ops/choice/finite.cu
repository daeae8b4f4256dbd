/* ops/choice/finite.cu - isnan, isinf, isfinite on a GPU. Integers and booleans always are. */
#include "ops/choice/predicate.cuh"

/* A number less itself is 0, but for infinities and NaN. */
GP_GPU_PREDICATE1(isnan, !(a == a))
GP_GPU_PREDICATE1(isinf, a - a != C(0) && a == a)
GP_GPU_PREDICATE1(isfinite, a - a == C(0))
