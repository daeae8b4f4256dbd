/* ops/choice/compare.cu - eq ne lt le gt ge on a GPU: two values of any one dtype -> bool. */
#include "ops/choice/predicate.cuh"

GP_GPU_PREDICATE2(eq, a == b)
GP_GPU_PREDICATE2(ne, a != b)
GP_GPU_PREDICATE2(lt, a < b)
GP_GPU_PREDICATE2(le, a <= b)
GP_GPU_PREDICATE2(gt, a > b)
GP_GPU_PREDICATE2(ge, a >= b)
