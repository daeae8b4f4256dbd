/* linalg/factor.c - determinants, solutions, and the factors of matrices, for f32 and f64.
 *
 * LAPACK stores matrices column by column, we row by row: our A is its A^T. Where the answer for
 * A^T does as well, nothing is transposed. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "linalg/job.h"

/* Leading dimensions are at least 1, even those of empty matrices. */
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
