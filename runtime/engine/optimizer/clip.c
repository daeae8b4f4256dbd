/* engine/optimizer/clip.c - gradients clipped by their norm between steps, on the script's thread.
 *
 * Squares are summed per parameter and added in the order given: the same bits for every cut. GPUs
 * work on what lies with them, many parameters in a launch.
 */
#include <math.h>

#include "base/tensor.h"
#include "device/gpus.h"
#include "gpipe/optimizer.h"
#include "optim/optim.h"

enum { GROUP = 64 }; /* parameters that are looked at together */

/* The gradients of some parameters, NULL where there is none. */
typedef struct group {
  gp_tensor *grads[GROUP];
  double sums[GROUP];
  int count;
} group;

/* What one GPU has of a group. */
typedef struct share {
  gp_space *space;
  gp_gpu_run runs[GROUP];
  int members[GROUP], count;
} share;

typedef gp_status (*group_step)(group *g, double *value);

/* NULL for the host, and where there is no gradient. */
static gp_space *space_of(const group *g, int i) {
  return g->grads[i] ? gp_tensor_space(g->grads[i]) : NULL;
}

/* The share of the GPU that has gradient `first`; empty where one before it has been there too, and
 * for the host's. */
static void find_share(const group *g, int first, share *s) {
  s->count = 0;
  s->space = space_of(g, first);
  if (!s->space) return;
  for (int i = 0; i < first; i++)
    if (space_of(g, i) == s->space) return;
  for (int i = first; i < g->count; i++) {
    if (space_of(g, i) != s->space) continue;
    gp_tensor *grad = g->grads[i];
    s->runs[s->count] =
        (gp_gpu_run){gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad), gp_tensor_data(grad)};
    s->members[s->count++] = i;
  }
}

/* All sums of a GPU come to the host at once. */
static gp_status sum_share(const share *s, double *sums) {
  const gp_gpu_api *api;
  char *scratch;
  double fetched[GROUP];
  size_t bytes = (size_t)s->count * sizeof(double);
  GP_TRY(gp_gpus_api(&api));
  GP_TRY(gp_space_scratch(s->space, GP_GPU_SUM_SCRATCH + sizeof fetched, (void **)&scratch));
  void *there = scratch + GP_GPU_SUM_SCRATCH;
  GP_TRY(api->sum_squares(gp_space_gpu(s->space), s->runs, s->count, there, scratch));
  GP_TRY(s->space->read(s->space, fetched, there, bytes));
  for (int i = 0; i < s->count; i++) sums[s->members[i]] = fetched[i];
  return GP_OK;
}

static gp_status sum_group(group *g, double *sum) {
  share s;
  for (int i = 0; i < g->count; i++) {
    const gp_tensor *grad = g->grads[i];
    if (grad && !space_of(g, i))
      g->sums[i] = gp_optim_sum_squares(gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad),
                                        gp_tensor_data(grad));
    find_share(g, i, &s);
    if (s.count) GP_TRY(sum_share(&s, g->sums));
  }
  for (int i = 0; i < g->count; i++)
    if (g->grads[i]) *sum += g->sums[i];
  return GP_OK;
}

static gp_status scale_share(const share *s, double factor) {
  const gp_gpu_api *api;
  GP_TRY(gp_gpus_api(&api));
  GP_TRY(api->scale(gp_space_gpu(s->space), s->runs, s->count, factor));
  return api->sync(gp_space_gpu(s->space), GP_STREAM_COMPUTE);
}

static gp_status scale_group(group *g, double *factor) {
  share s;
  for (int i = 0; i < g->count; i++) {
    gp_tensor *grad = g->grads[i];
    if (grad && !space_of(g, i))
      gp_optim_scale(gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad), gp_tensor_data(grad),
                     *factor);
    find_share(g, i, &s);
    if (s.count) GP_TRY(scale_share(&s, *factor));
  }
  return GP_OK;
}

/* Group after group, in the order of the parameters. */
static gp_status for_groups(gp_param *const *params, int count, group_step step, double *value) {
  gp_status status = GP_OK;
  for (int first = 0; first < count && !status; first += GROUP) {
    group g = {.count = count - first < GROUP ? count - first : GROUP};
    for (int i = 0; i < g.count; i++) gp_param_grad(params[first + i], &g.grads[i]);
    status = step(&g, value);
    for (int i = 0; i < g.count; i++) gp_tensor_free(g.grads[i]);
  }
  return status;
}

static gp_status squares(gp_param *const *params, int count, double *sum) {
  *sum = 0;
  return for_groups(params, count, sum_group, sum);
}

static gp_status scale(gp_param *const *params, int count, double factor) {
  return for_groups(params, count, scale_group, &factor);
}

gp_status gp_clip_grad_norm(gp_param *const *params, int count, double max, double *result) {
  double sum;
  GP_TRY(squares(params, count, &sum));
  *result = sqrt(sum);
  return *result > max ? scale(params, count, max / (*result + 1e-6)) : GP_OK;
}
