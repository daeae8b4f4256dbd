/* ops/choice/logical.cu - and, or, xor, not on a GPU; everything but 0 is true. */
#include "ops/choice/predicate.cuh"

GP_GPU_PREDICATE2(logical_and, a != C(0) && b != C(0))
GP_GPU_PREDICATE2(logical_or, a != C(0) || b != C(0))
GP_GPU_PREDICATE2(logical_xor, (a != C(0)) != (b != C(0)))
GP_GPU_PREDICATE1(logical_not, a == C(0))
