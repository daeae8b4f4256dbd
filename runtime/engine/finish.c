/* engine/finish.c - after the workers are done: losses, tied parameters, buffers; or undoing it all. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/pipeline.h"

/* Called by workers: the smallest order wins, whoever comes first. The text is written before the
 * order is published, because who sees the order skips its tasks. */
void gp_run_fail(gp_run *run, int32_t order, gp_status status, const char *text) {
  pthread_mutex_lock(&run->failure_lock);
  if (order < atomic_load(&run->failed_order)) {
    run->status = status;
    snprintf(run->text, sizeof run->text, "%s", text);
    atomic_store_explicit(&run->failed_order, order, memory_order_release);
  }
  pthread_mutex_unlock(&run->failure_lock);
}

/* The partial sums of the micro-batches, added in ascending order. */
static void sum_losses(const gp_run *run, gp_run_result *result) {
  const gp_plan *plan = run->plan;
  double sum = 0;
  *result = (gp_run_result){.count = run->count};
  if (plan->shapes[0].loss == GP_NONE) return;
  gp_dtype dtype = plan->shapes[0].trace->graph.values[plan->shapes[0].loss].meta.dtype;
  for (int32_t i = 0; i < plan->micro_count; i++) {
    const gp_micro_result *micro = &plan->results[i];
    sum += dtype == GP_F32 ? (double)micro->loss.f32 : micro->loss.f64;
  }
  if (!plan->sum_loss) sum = run->count ? sum / (double)run->count : 0;
  result->loss = sum;
}

/* A parameter that several layers use: add the accumulators in layer order. */
static void reduce_tied(gp_pipeline *p) {
  for (int32_t layer = 0; layer <= p->layer_count && p->extra_count; layer++)
    for (int32_t x = 0; x < p->extra_count; x++) {
      const gp_extra_slot *extra = &p->extras[x];
      if (extra->layer != layer) continue;
      int64_t n = gp_tensor_numel(extra->grad);
      void *to = gp_tensor_data(p->grads[extra->param]), *from = gp_tensor_data(extra->grad);
      bool f32 = gp_tensor_meta(extra->grad)->dtype == GP_F32;
      for (int64_t i = 0; f32 && i < n; i++) ((float *)to)[i] += ((float *)from)[i];
      for (int64_t i = 0; !f32 && i < n; i++) ((double *)to)[i] += ((double *)from)[i];
      memset(from, 0,
             gp_tensor_bytes(extra->grad)); /* added once, also when gradients accumulate */
    }
}

/* Buffers as they were before the run: written back unless a training run succeeds. */
void gp_run_save_buffers(gp_pipeline *p) {
  for (int32_t s = 0; s < p->stage_count; s++)
    if (p->arenas[s].buffer_bytes)
      memcpy(p->arenas[s].committed, p->arenas[s].buffers, p->arenas[s].buffer_bytes);
}

/* Evaluation may not change a model, nor may a step that failed. */
static void restore_buffers(gp_pipeline *p) {
  for (int32_t s = 0; s < p->stage_count; s++)
    if (p->arenas[s].buffer_bytes)
      memcpy(p->arenas[s].buffers, p->arenas[s].committed, p->arenas[s].buffer_bytes);
}

/* On the script's thread, after every worker is done. */
void gp_run_finish(gp_pipeline *p, gp_run_result *result) {
  gp_run *run = &p->run;
  bool training = gp_plan_trains(run->plan->kind);
  bool backward = run->plan->kind == GP_PLAN_STEP || run->backward_half;
  if (!training || run->status) restore_buffers(p);
  if (run->status) {
    if (training) gp_pipeline_zero_grad(p);
    return;
  }
  sum_losses(run, result);
  if (backward) reduce_tied(p);
  if (training && !run->backward_half) {
    p->split_step = p->step;
    p->step++;
  }
}
