/* gpipe/linalg.h - factors of matrices, by LAPACK. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_LINALG_H
#define GP_PUBLIC_LINALG_H

#include "gpipe/tensor.h"

/* X(name, dims of each tensor): the last dimensions of each tensor by letters, inputs before
 * results. Leading dimensions, a batch of matrices, are the same for all. */
#define GP_LINALG_LIST(X)                                                                          \
  X(det, "nn", "", "", "")      /* A -> determinant, its sign, log of its size */                  \
  X(solve, "nn", "nk", "nk")    /* A, B -> A^-1 B */                                               \
  X(cholesky, "nn", "nn")       /* A, of which the lower half is read -> L, A = L L^T */           \
  X(qr, "mn", "mp", "pn")       /* A -> Q, R; p is m or the less of m and n */                     \
  X(svd, "mn", "mp", "r", "qn") /* A -> U, S, V^T; p is m and q is n, or both are r, the less */   \
  X(eigh, "nn", "n", "nn")      /* A, of which the lower half is read -> eigenvalues, vectors */

typedef enum gp_linalg {
#define X(name, ...) GP_LINALG_##name,
  GP_LINALG_LIST(X)
#undef X
      GP_LINALG_COUNT
} gp_linalg;

/* The matrix of the batch (0-based) that has no answer, and LAPACK's info for it: the pivot
 * (1-based) that is 0 (solve) or not above 0 (cholesky); -1: an element is not finite. */
typedef struct gp_linalg_fault {
  int64_t matrix;
  int info;
} gp_linalg_fault;

enum { GP_LINALG_MAX_TENSORS = 4 };

const char *gp_linalg_name(gp_linalg what); /* "solve" */
int gp_linalg_n_tensors(gp_linalg what);
/* Compute for each matrix of the batch; tensors as the list says, contiguous, all f32 or all f64,
 * on the host. fault receives what went wrong with GP_EFINITE. Errors: GP_EDTYPE; GP_ESHAPE;
 * GP_EFINITE: a matrix has no answer. Source: LAPACK 3.11, users' guide. */
gp_status gp_linalg_run(gp_linalg what, gp_tensor *const *tensors, gp_linalg_fault *fault);

#endif
