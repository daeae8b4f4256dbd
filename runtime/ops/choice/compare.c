/* ops/choice/compare.c - eq ne lt le gt ge: two values of any one dtype -> bool.
 *
 * A comparison with NaN is false, except by ne. */
#include "ops/choice/predicate.h"

#define EQ(p, q) (p) == (q)
#define NE(p, q) (p) != (q)
#define LT(p, q) (p) < (q)
#define LE(p, q) (p) <= (q)
#define GT(p, q) (p) > (q)
#define GE(p, q) (p) >= (q)

GP_PREDICATE2(eq, EQ)
GP_PREDICATE2(ne, NE)
GP_PREDICATE2(lt, LT)
GP_PREDICATE2(le, LE)
GP_PREDICATE2(gt, GT)
GP_PREDICATE2(ge, GE)
