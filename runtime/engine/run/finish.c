/* engine/run/finish.c - after the workers are done: losses, buffers, the clock; or undoing it
 * all. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/pipeline.h"

/* The text is written before the order is published, because who sees the order skips its tasks. */
static void note_failure(gp_run *run, int64_t order, gp_status status, const char *text) {
  if (order >= atomic_load(&run->failed_order)) return;
  run->status = status;
  snprintf(run->text, sizeof run->text, "%s", text);
  atomic_store_explicit(&run->failed_order, order, memory_order_release);
}

/* Called by workers: the smallest order wins, whoever comes first. */
void gp_run_fail(gp_run *run, int64_t order, gp_status status, const char *text) {
  pthread_mutex_lock(&run->failure_lock);
  note_failure(run, order, status, text);
  pthread_mutex_unlock(&run->failure_lock);
  gp_run_progress(run);
}

bool gp_run_interrupt(gp_run *run) {
  pthread_mutex_lock(&run->failure_lock);
  bool stops = !run->committed;
  if (stops) note_failure(run, -1, GP_EINTERRUPT, "interrupted");
  pthread_mutex_unlock(&run->failure_lock);
  if (stops) gp_run_progress(run);
  return stops;
}

/* The lock decides between a failure and the updates: either every stage sees the one or makes the
 * other. */
bool gp_run_commit(gp_run *run) {
  pthread_mutex_lock(&run->failure_lock);
  run->committed = run->committed || atomic_load(&run->failed_order) == INT64_MAX;
  bool committed = run->committed;
  pthread_mutex_unlock(&run->failure_lock);
  return committed;
}

void gp_run_spoil(gp_run *run, int64_t group) {
  pthread_mutex_lock(&run->failure_lock);
  if (group < run->spoilt) run->spoilt = group;
  pthread_mutex_unlock(&run->failure_lock);
}

/* The partial sums of the micro-batches, added in ascending order.
 *
 * This is no action of the schedule, unlike everything else that joins the stages at the end of a
 * step: no device waits for it, as the counts that gradients are divided by were settled by C
 * before the first loss. Only one stage leaves losses, one number for each micro-batch, each in a
 * place of its own; the script has to be told them anyway, so that adding them here, in the same
 * order for every cut and schedule, costs no message more than a device's own sum would. */
double gp_run_loss(const gp_run *run, int64_t group, int64_t *count) {
  const gp_plan *plan = run->plan;
  int32_t size = gp_run_group(plan);
  int64_t micro = group * size;
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  double sum = 0;
  *count = 0;
  if (plan->shapes[0].loss == GP_NONE) return 0;
  gp_dtype dtype = plan->shapes[0].trace->graph.values[plan->shapes[0].loss].meta.dtype;
  for (int32_t i = 0; i < size; i++) {
    const gp_micro_result *one = &batch->results[(micro + i) % plan->step_micros];
    sum += dtype == GP_F32 ? (double)one->loss.f32 : one->loss.f64;
    *count += one->count[0];
  }
  if (plan->sum_loss) return sum;
  return *count ? sum / (double)*count : 0;
}

/* Between `to` and `from` of every stage that has buffers; the workers rest. */
static gp_status copy_buffers(gp_pipeline *p, bool save) {
  for (int32_t s = 0; s < p->stage_count; s++) {
    const gp_arena *a = &p->arenas[s];
    const gp_lane *lane = gp_stage_lane(p, s, 0);
    if (!a->buffer_bytes) continue;
    GP_TRY(gp_lane_copy(lane, save ? a->committed : a->buffers[0],
                        save ? a->buffers[0] : a->committed, a->buffer_bytes));
    GP_TRY(gp_lane_sync(lane));
  }
  return GP_OK;
}

/* Buffers as they were before the run: written back unless a training run succeeds. */
gp_status gp_run_save_buffers(gp_pipeline *p) { return copy_buffers(p, true); }

/* Updates of a run that failed cannot be taken back. Are all stages as many ahead, and by none that
 * was made with what failed? Buffers are not: they are what they were before the run. */
static bool is_even(const gp_pipeline *p) {
  int64_t updates = p->arenas[0].updates;
  for (int32_t s = 0; s < p->stage_count; s++) {
    const gp_arena *a = &p->arenas[s];
    if (a->torn || a->updates != updates || (updates && a->buffer_bytes)) return false;
    if (a->updates > p->run.spoilt) return false;
  }
  return true;
}

/* Updates that were made: those that were left out are none of the optimizer's. Where stages decide
 * for themselves one may have made more than another. */
static int64_t updates_made(const gp_pipeline *p) {
  int64_t most = 0;
  for (int32_t s = 0; s < p->stage_count; s++) {
    int64_t made = p->arenas[s].updates - p->arenas[s].skipped;
    if (made > most) most = made;
  }
  return p->overflow ? 0 : most;
}

/* Training goes on after so many mini-batches. */
static void count_steps(gp_pipeline *p, int64_t steps) {
  p->split_step = p->step;
  p->step += (uint32_t)steps;
  if (!p->optimizer || p->run.plan->update == GP_UPDATE_NONE) return;
  p->updates++;
  gp_optimizer_set_steps(p->optimizer, p->run.first_update + updates_made(p));
}

/* The first mini-batches of a stream may have been trained with when a later one failed. */
static void undo(gp_pipeline *p, bool training) {
  if (training) gp_pipeline_zero_grad(p);
  p->broken = p->broken || !is_even(p);
  if (!p->broken && p->arenas[0].updates) count_steps(p, p->arenas[0].updates);
}

/* On the script's thread, after every worker is done. */
void gp_run_finish(gp_pipeline *p) {
  gp_run *run = &p->run;
  const gp_plan *plan = run->plan;
  bool training = gp_plan_trains(plan->kind);
  int64_t groups = (int64_t)run->given * (plan->step_micros / gp_run_group(plan));
  gp_status status = GP_OK;
  /* evaluation may not change a model, nor may a step that failed */
  if (!training || run->status) status = copy_buffers(p, false);
  if (status && !run->status) gp_run_fail(run, 0, status, gp_error_text());
  if (run->status) {
    undo(p, training);
    return;
  }
  if (plan->batch && plan->update != GP_UPDATE_NONE) gp_pipeline_zero_grad(p);
  run->known = groups;
  if (training && !run->backward_half) count_steps(p, groups);
}
