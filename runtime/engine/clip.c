/* engine/clip.c - sums of squares and scales of all gradients, wherever they lie: clipping by their norm.
 *
 * Squares are summed per parameter and added in the order given: the same bits for every cut. GPUs sum
 * what lies with them; all sums of a GPU come to the host at once.
 */
#include <math.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "device/gpus.h"
#include "engine/pipeline.h"
#include "optim/optim.h"

enum { MOST_HOMES = 64 };

/* Gradients, their sums of squares, and the GPUs that have some. */
typedef struct norm {
  gp_tensor **grads; /* NULL where there is none */
  double *sums, *fetched;
  int count, home_count;
  gp_home *homes[MOST_HOMES];
} norm;

static void note_home(norm *n, gp_home *home) {
  for (int i = 0; i < n->home_count; i++)
    if (n->homes[i] == home) return;
  if (home && n->home_count < MOST_HOMES) n->homes[n->home_count++] = home;
}

/* On one GPU: every gradient that lies there, then all sums at once. */
static gp_status sum_on_gpu(const norm *n, gp_home *home) {
  const gp_gpu_api *api;
  char *memory;
  size_t sums = (size_t)n->count * sizeof(double);
  GP_TRY(gp_gpus_api(&api));
  GP_TRY(gp_home_scratch(home, GP_GPU_SUM_SCRATCH + sums, (void **)&memory));
  double *there = (double *)(memory + GP_GPU_SUM_SCRATCH);
  GP_TRY(api->fill(gp_home_gpu(home), GP_STREAM_COMPUTE, there, 0, sums));
  for (int i = 0; i < n->count; i++) {
    gp_tensor *grad = n->grads[i];
    if (!grad || gp_tensor_home(grad) != home) continue;
    GP_TRY(api->sum_squares(gp_home_gpu(home), gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad),
                            gp_tensor_data(grad), there + i, memory));
  }
  GP_TRY(home->read(home, n->fetched, there, sums));
  for (int i = 0; i < n->count; i++)
    if (n->grads[i] && gp_tensor_home(n->grads[i]) == home) n->sums[i] = n->fetched[i];
  return GP_OK;
}

static gp_status sum_all(const norm *n, double *sum) {
  for (int i = 0; i < n->count; i++) {
    gp_tensor *grad = n->grads[i];
    if (!grad) continue;
    if (!gp_tensor_home(grad))
      n->sums[i] = gp_optim_sum_squares(gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad),
                                        gp_tensor_data(grad));
  }
  for (int h = 0; h < n->home_count; h++) GP_TRY(sum_on_gpu(n, n->homes[h]));
  *sum = 0;
  for (int i = 0; i < n->count; i++)
    if (n->grads[i]) *sum += n->sums[i];
  return GP_OK;
}

static gp_status scale_all(const norm *n, double factor) {
  const gp_gpu_api *api = NULL;
  if (n->home_count) GP_TRY(gp_gpus_api(&api));
  for (int i = 0; i < n->count; i++) {
    gp_tensor *grad = n->grads[i];
    if (!grad) continue;
    gp_home *home = gp_tensor_home(grad);
    gp_dtype dtype = gp_tensor_meta(grad)->dtype;
    int64_t numel = gp_tensor_numel(grad);
    if (home)
      GP_TRY(api->scale(gp_home_gpu(home), dtype, numel, gp_tensor_data(grad), factor));
    else
      gp_optim_scale(dtype, numel, gp_tensor_data(grad), factor);
  }
  for (int h = 0; h < n->home_count; h++)
    GP_TRY(api->sync(gp_home_gpu(n->homes[h]), GP_STREAM_COMPUTE));
  return GP_OK;
}

static void close_norm(norm *n) {
  for (int i = 0; n->grads && i < n->count; i++) gp_tensor_free(n->grads[i]);
  gp_free(n->grads);
  gp_free(n->sums);
  gp_free(n->fetched);
}

/* The gradients that there are now, and where they lie. Given back also where this fails. */
static gp_status open_norm(gp_param *const *params, int param_count, norm *n) {
  size_t count = (size_t)param_count + 1;
  *n = (norm){.count = param_count};
  GP_TRY(gp_alloc_array(count, sizeof(gp_tensor *), (void **)&n->grads));
  GP_TRY(gp_alloc_array(count, sizeof(double), (void **)&n->sums));
  GP_TRY(gp_alloc_array(count, sizeof(double), (void **)&n->fetched));
  for (int i = 0; i < n->count; i++) {
    gp_param_grad(params[i], &n->grads[i]);
    if (n->grads[i]) note_home(n, gp_tensor_home(n->grads[i]));
  }
  return GP_OK;
}

gp_status gp_gradients_squares(gp_param *const *params, int count, double *sum) {
  norm n;
  gp_status status = open_norm(params, count, &n);
  if (!status) status = sum_all(&n, sum);
  close_norm(&n);
  return status;
}

gp_status gp_gradients_scale(gp_param *const *params, int count, double factor) {
  norm n;
  gp_status status = open_norm(params, count, &n);
  if (!status) status = scale_all(&n, factor);
  close_norm(&n);
  return status;
}

static gp_status clip(const norm *n, double max, double *result) {
  double sum;
  GP_TRY(sum_all(n, &sum));
  *result = sqrt(sum);
  return *result > max ? scale_all(n, max / (*result + 1e-6)) : GP_OK;
}

/* Without GPUs nothing is allocated. */
static gp_status clip_on_host(gp_param *const *params, int count, double max, double *result) {
  double sum = 0;
  gp_tensor *grad;
  for (int i = 0; i < count; i++) {
    gp_param_grad(params[i], &grad);
    if (!grad) continue;
    sum += gp_optim_sum_squares(gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad),
                                gp_tensor_data(grad));
    gp_tensor_free(grad);
  }
  *result = sqrt(sum);
  for (int i = 0; i < count && (*result) > max; i++) {
    gp_param_grad(params[i], &grad);
    if (!grad) continue;
    gp_optim_scale(gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad), gp_tensor_data(grad),
                   max / (*result + 1e-6));
    gp_tensor_free(grad);
  }
  return GP_OK;
}

static bool on_gpus(gp_param *const *params, int count) {
  bool found = false;
  for (int i = 0; i < count && !found; i++) {
    gp_tensor *grad;
    gp_param_grad(params[i], &grad);
    found = grad && gp_tensor_home(grad);
    gp_tensor_free(grad);
  }
  return found;
}

gp_status gp_clip_grad_norm(gp_param *const *params, int count, double max, double *result) {
  norm n;
  if (!on_gpus(params, count)) return clip_on_host(params, count, max, result);
  gp_status status = open_norm(params, count, &n);
  if (!status) status = clip(&n, max, result);
  close_norm(&n);
  return status;
}
