/* linalg/linalg.c - checks the tensors of a factorization and walks over its batch. */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "linalg/job.h"

typedef struct routine {
  const char *name;
  const char *dims[GP_LINALG_MAX_TENSORS];
  int n_tensors;
  gp_linalg_body f32, f64;
} routine;

#define COUNT(...) ((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)))
static const routine routines[] = {
#define X(name, ...)                                                                               \
  {#name, {__VA_ARGS__}, COUNT(__VA_ARGS__), gp_linalg_##name##_f32, gp_linalg_##name##_f64},
    GP_LINALG_LIST(X)
#undef X
};

const char *gp_linalg_name(gp_linalg what) { return routines[what].name; }
int gp_linalg_n_tensors(gp_linalg what) { return routines[what].n_tensors; }

gp_status gp_linalg_reserve(gp_linalg_job *job, size_t bytes) {
  if (bytes <= job->bytes) return GP_OK;
  gp_free(job->room);
  job->room = NULL;
  job->bytes = 0;
  GP_TRY(gp_alloc(bytes, &job->room));
  job->bytes = bytes;
  return GP_OK;
}

/* ---- shapes --------------------------------------------------------------------------------- */

/* LAPACK counts in int: its workspaces grow with the square of the smaller of two dimensions, and
 * with some dozens of the larger one. */
enum { MOST = 1 << 24, MOST_LEAST = 16384 };

static gp_status bind_letter(gp_linalg_job *job, bool *seen, char letter, int64_t size) {
  if (size > MOST)
    return gp_fail(GP_ESHAPE, "a matrix has a dimension of %lld, expected at most %d",
                   (long long)size, MOST);
  if (seen[(int)letter] && job->size[(int)letter] != size)
    return gp_fail(GP_ESHAPE, "a matrix has a dimension of %lld, expected %d as the others",
                   (long long)size, job->size[(int)letter]);
  seen[(int)letter] = true;
  job->size[(int)letter] = (int)size;
  return GP_OK;
}

/* Bind the letters of a tensor's last dimensions; its batch must be that of the first tensor. */
static gp_status bind_tensor(gp_linalg_job *job, bool *seen, const char *dims,
                             const gp_tensor *first, int batch_rank, const gp_tensor *tensor) {
  const gp_meta *meta = gp_tensor_meta(tensor), *like = gp_tensor_meta(first);
  const int rank = meta->shape.rank, own = (int)strlen(dims);
  if (meta->dtype != like->dtype || (meta->dtype != GP_F32 && meta->dtype != GP_F64))
    return gp_fail(GP_EDTYPE, "a matrix is %s, expected all f32 or all f64",
                   gp_dtype_name(meta->dtype));
  if (!gp_tensor_is_host(tensor) || !gp_tensor_is_contiguous(tensor))
    return gp_fail(GP_EINVAL, "a matrix lies elsewhere or in another order, expected row-major");
  if (batch_rank < 0 || rank - own != batch_rank ||
      memcmp(meta->shape.dim, like->shape.dim, (size_t)batch_rank * sizeof(int64_t)) != 0)
    return gp_fail(GP_ESHAPE, "the batches of matrices differ, expected the same");
  for (int d = 0; d < own; d++)
    GP_TRY(bind_letter(job, seen, dims[d], meta->shape.dim[batch_rank + d]));
  return GP_OK;
}

/* Check that no matrix is too large, and that p, q and r fit a whole or a reduced factorization. */
static gp_status check_sizes(gp_linalg what, const gp_linalg_job *job, bool has_rows) {
  const int n = job->size['n'], m = has_rows ? job->size['m'] : n, least = m < n ? m : n;
  const int p = job->size['p'], q = job->size['q'], r = job->size['r'];
  if (least > MOST_LEAST)
    return gp_fail(GP_ESHAPE, "a matrix is %dx%d, expected at most %d rows or columns", m, n,
                   MOST_LEAST);
  if (what == GP_LINALG_qr && p != m && p != least)
    return gp_fail(GP_ESHAPE, "Q has %d columns, expected %d or %d", p, m, least);
  const bool whole = p == m && q == n, reduced = p == least && q == least;
  if (what == GP_LINALG_svd && (r != least || (!whole && !reduced)))
    return gp_fail(GP_ESHAPE, "there are %d singular values of %d and %d vectors, expected %d", r,
                   p, q, least);
  return GP_OK;
}

/* ---- the batch ------------------------------------------------------------------------------ */

static gp_status run_batch(const routine *r, gp_linalg_job *job, gp_tensor *const *tensors,
                           int64_t batch, gp_linalg_fault *fault) {
  const gp_dtype dtype = gp_tensor_meta(tensors[0])->dtype;
  gp_status status = GP_OK;
  for (int64_t i = 0; i < batch && status == GP_OK; i++) {
    for (int t = 0; t < r->n_tensors; t++) {
      size_t elements = 1;
      for (const char *d = r->dims[t]; *d; d++) elements *= (size_t)job->size[(int)*d];
      job->at[t] = (char *)gp_tensor_data(tensors[t]) + (size_t)i * elements * gp_dtype_size(dtype);
    }
    job->info = 0;
    status = (dtype == GP_F32 ? r->f32 : r->f64)(job);
    if (status != GP_OK || !job->info) continue;
    *fault = (gp_linalg_fault){i, job->info};
    status =
        gp_fail(GP_EFINITE, "matrix %lld has no answer (LAPACK: %d)", (long long)i + 1, job->info);
  }
  return status;
}

gp_status gp_linalg_run(gp_linalg what, gp_tensor *const *tensors, gp_linalg_fault *fault) {
  const routine *r = &routines[what];
  const gp_shape *shape = &gp_tensor_meta(tensors[0])->shape;
  const int batch_rank = shape->rank - 2;
  bool seen['z' + 1] = {false};
  gp_linalg_job job = {.info = 0};
  int64_t batch = 1;
  for (int t = 0; t < r->n_tensors; t++)
    GP_TRY(bind_tensor(&job, seen, r->dims[t], tensors[0], batch_rank, tensors[t]));
  GP_TRY(check_sizes(what, &job, seen['m']));
  GP_TRY(gp_lapack_open(&job.f32, &job.f64));
  for (int d = 0; d < batch_rank; d++) batch *= shape->dim[d];
  gp_status status = run_batch(r, &job, tensors, batch, fault);
  gp_free(job.room);
  return status;
}
