/* linalg/factor.c - determinants, solutions, and the factors of matrices, for f32 and f64.
 *
 * LAPACK's matrices lie column by column, ours row by row: what lies here as A is A^T there. Where
 * that answers the same question nothing is moved. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "linalg/job.h"

/* Leading dimensions are at least 1, of empty matrices too. */
#define LEAD(n) ((n) > 0 ? (n) : 1)

#define REAL         float
#define FN(name)     gp_linalg_##name##_f32
#define LOCAL(name)  name##_f32
#define LAPACK(name) job->f32->name
#include "linalg/factor.inc"
#undef REAL
#undef FN
#undef LOCAL
#undef LAPACK

#define REAL         double
#define FN(name)     gp_linalg_##name##_f64
#define LOCAL(name)  name##_f64
#define LAPACK(name) job->f64->name
#include "linalg/factor.inc"
