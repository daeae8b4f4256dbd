/* linalg/lapack.h - LAPACK, opened when a factorization is first asked for.
 *
 * Most scripts need none of it, and programs start without it. Fortran takes every argument by
 * address, matrices column by column, and the lengths of strings after all arguments. */
#ifndef GP_LINALG_LAPACK_H
#define GP_LINALG_LAPACK_H

#include "base/status.h"

/* X(name, parameters) for a type T. */
#define GP_LAPACK_LIST(X, T)                                                                       \
  X(getrf, (const int *m, const int *n, T *a, const int *lda, int *pivots, int *info))             \
  X(getrs, (const char *trans, const int *n, const int *k, const T *a, const int *lda,             \
            const int *pivots, T *b, const int *ldb, int *info, size_t))                           \
  X(potrf, (const char *uplo, const int *n, T *a, const int *lda, int *info, size_t))              \
  X(geqrf, (const int *m, const int *n, T *a, const int *lda, T *tau, T *work, const int *lwork,   \
            int *info))                                                                            \
  X(orgqr, (const int *m, const int *n, const int *k, T *a, const int *lda, const T *tau, T *work, \
            const int *lwork, int *info))                                                          \
  X(gesdd, (const char *jobz, const int *m, const int *n, T *a, const int *lda, T *s, T *u,        \
            const int *ldu, T *vt, const int *ldvt, T *work, const int *lwork, int *iwork,         \
            int *info, size_t))                                                                    \
  X(syevd, (const char *jobz, const char *uplo, const int *n, T *a, const int *lda, T *w, T *work, \
            const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t))

#define GP_LAPACK_MEMBER(name, parameters) void(*name) parameters;
typedef struct gp_lapack_f32 {
  GP_LAPACK_LIST(GP_LAPACK_MEMBER, float)
} gp_lapack_f32;
typedef struct gp_lapack_f64 {
  GP_LAPACK_LIST(GP_LAPACK_MEMBER, double)
} gp_lapack_f64;

/* Set both to the library's functions. Errors: GP_EUNSUPPORTED, with the reason, if there is
 * none. Threads: any. */
gp_status gp_lapack_open(const gp_lapack_f32 **f32, const gp_lapack_f64 **f64);

#endif
