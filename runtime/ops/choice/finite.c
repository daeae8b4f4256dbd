/* ops/choice/finite.c - isnan, isinf, isfinite -> bool.
 *
 * Integers and booleans are always finite. */
#include "ops/choice/predicate.h"

/* x - x is 0, except for infinities and NaN. */
#define IS_NAN(p)    (p) != (p)
#define IS_INF(p)    (p) - (p) != 0 && (p) == (p)
#define IS_FINITE(p) (p) - (p) == 0
#define NEVER(p)     ((void)(p), 0)
#define ALWAYS(p)    ((void)(p), 1)

GP_PREDICATE1(isnan, IS_NAN, NEVER)
GP_PREDICATE1(isinf, IS_INF, NEVER)
GP_PREDICATE1(isfinite, IS_FINITE, ALWAYS)
