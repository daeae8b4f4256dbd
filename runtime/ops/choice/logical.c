/* ops/choice/logical.c - and, or, xor, not of values of any one dtype -> bool.
 *
 * Everything but 0 is true, NaN too. */
#include "ops/choice/predicate.h"

#define AND(p, q) (p) != 0 && (q) != 0
#define OR(p, q)  (p) != 0 || (q) != 0
#define XOR(p, q) ((p) != 0) != ((q) != 0)
#define NOT(p)    (p) == 0

GP_PREDICATE2(logical_and, AND)
GP_PREDICATE2(logical_or, OR)
GP_PREDICATE2(logical_xor, XOR)
GP_PREDICATE1(logical_not, NOT, NOT)
