/* linalg/job.h - one factorization of one matrix: the matrices, their sizes, the workspace. */
#ifndef GP_LINALG_JOB_H
#define GP_LINALG_JOB_H

#include "gpipe/linalg.h"
#include "linalg/lapack.h"

typedef struct gp_linalg_job {
  /* The matrices, row-major, in the order of the list. */
  void *at[GP_LINALG_MAX_TENSORS];
  const gp_lapack_f32 *f32;
  const gp_lapack_f64 *f64;
  int size['z' + 1]; /* by letter */
  int info;          /* LAPACK's info for this matrix */
  void *room;        /* workspace; it grows, and serves all matrices of a batch */
  size_t bytes;
} gp_linalg_job;

/* Make the workspace hold at least `bytes`; *room is 64-byte aligned, its content is undefined. */
gp_status gp_linalg_reserve(gp_linalg_job *job, size_t bytes);

typedef gp_status (*gp_linalg_body)(gp_linalg_job *job);

#define GP_LINALG_BODIES(name)                                                                     \
  gp_status gp_linalg_##name##_f32(gp_linalg_job *job);                                            \
  gp_status gp_linalg_##name##_f64(gp_linalg_job *job);
#define X(name, ...) GP_LINALG_BODIES(name)
GP_LINALG_LIST(X)
#undef X

#endif
