/* engine/run/finish.c - ends a run when the workers are done: losses, buffers and the clock, or
 * undoing all of it. */

#include "engine/run/run.h"
#include "engine/state/pipeline.h"

/* Adds up the losses of the micro-batches in ascending order.
 *
 * This is no action of the schedule, unlike everything else that joins the stages at the end of a
 * step. No device waits for it, because C has settled the counts that gradients are divided by
 * before the first loss. Only one stage leaves losses: one number for each micro-batch, each in its
 * own place. The script has to be told them anyway, so adding them here, in the same order for
 * every cut and schedule, costs no more messages than a device's own sum would. */
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
    sum += dtype == GP_F32 ? (double)one->f32 : one->f64;
    *count += batch->counts[(micro + i) % plan->step_micros];
  }
  if (plan->sum_loss) return sum;
  return *count ? sum / (double)*count : 0;
}

/* Save the buffers of all stages, or write the saved ones back, while the workers rest. */
static gp_status copy_buffers(gp_pipeline *p, bool save) {
  for (int32_t s = 0; s < p->stage_count; s++) {
    const gp_arena *a = &p->arenas[s];
    const gp_lane *lane = gp_stage_lane(p, s, 0);
    if (!a->buffer_bytes) continue;
    char *buffers = a->copies[0].buffers;
    GP_TRY(gp_lane_copy(lane, save ? a->committed : buffers, save ? buffers : a->committed,
                        a->buffer_bytes));
    GP_TRY(gp_lane_sync(lane));
  }
  return GP_OK;
}

/* Saves buffers as they are before the run: they are written back unless a training run
 * succeeds. */
gp_status gp_run_save_buffers(gp_pipeline *p) { return copy_buffers(p, true); }

/* Have all stages made equally many updates, and none with wrong gradients? The updates of a run
 * that failed cannot be taken back. */
static bool is_even(const gp_pipeline *p) {
  int64_t updates = p->run.stages[0].updates;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    const gp_stage_run *made = &p->run.stages[h];
    if (made->torn || made->updates != updates) return false;
    /* buffers are back to what they were before the run, but values are updated */
    if (updates && p->arenas[h / p->copy_count].buffer_bytes) return false;
    if (made->updates > p->run.spoilt) return false;
  }
  return true;
}

/* Count the updates that the optimizer has made, without skipped ones. If stages decide for
 * themselves, one may have made more than another: the largest number counts. */
static int64_t updates_made(const gp_pipeline *p) {
  int64_t most = 0;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    int64_t made = p->run.stages[h].updates - p->run.stages[h].skipped;
    if (made > most) most = made;
  }
  return p->overflow ? 0 : most;
}

/* Advance the clock and the optimizer's count after so many mini-batches. */
static void count_steps(gp_pipeline *p, int64_t steps) {
  p->split_step = p->step;
  p->step += (uint32_t)steps;
  if (!p->optimizer || p->run.plan->update == GP_UPDATE_NONE) return;
  p->updates++;
  gp_optimizer_set_steps(p->optimizer, p->run.first_update + updates_made(p));
}

/* Undo what can be undone of a run that failed. Mini-batches of a stream before the one that failed
 * may have been trained with; if all stages have done so, they count. */
static void undo(gp_pipeline *p, bool training) {
  if (training) gp_pipeline_zero_grad(p);
  p->broken = p->broken || !is_even(p);
  if (!p->broken && p->run.stages[0].updates) count_steps(p, p->run.stages[0].updates);
}

/* Runs on the script's thread, after every worker is done. */
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
