/* engine/run/stream.c - gives mini-batches to the workers: one and waits for it, or one after
 * another.
 *
 * The first mini-batch opens a stream, and draining closes it. In between the workers never stop,
 * and the script's thread does not join them.
 */
#include <limits.h>

#include "base/thread.h"
#include "engine/bind/bind.h"
#include "engine/bind/links.h"
#include "engine/bind/parts.h"
#include "engine/optimizer/optimizer.h"
#include "engine/optimizer/skips.h"
#include "engine/profile/recorder.h"
#include "engine/run/agree.h"
#include "engine/run/arguments.h"
#include "engine/run/run.h"
#include "engine/run/weights.h"
#include "engine/state/pipeline.h"
#include "engine/update/earlier.h"
#include "engine/watch/jobs.h"
#include "engine/watch/report.h"
#include "engine/watch/watchdog.h"
#include "engine/worker/worker.h"
#include "gpipe/process.h"

/* ---- runs ---------------------------------------------------------------------------------- */

/* Refuse what keeps a pipeline from running, before anything is touched. */
static gp_status check_ready(const gp_pipeline *p) {
  if (p->closed) return gp_fail(GP_ESTATE, "the pipeline is closed");
  if (p->watch.lost) return gp_fail(GP_ESTATE, "the pipeline is lost: %s", p->run.text);
  if (p->broken)
    return gp_fail(GP_ESTATE, "an earlier failure left some stages updated and others not: load a "
                              "state (load_state_dict of the pipeline, and of an optimizer with "
                              "moments) before you go on");
  /* last: a rank whose script ended behind the same failure is no other reason */
  if (p->spread && gp_spread_lost(p->spread))
    return gp_fail(GP_ESTATE, "the pipeline is lost: %s", p->spread->why);
  return GP_OK;
}

/* The clock of a pass's random draws. Draws of a pass that does not train differ from pass to pass
 * too, but never are those of training: the clock of such passes has its highest bit set. */
static uint32_t clock_of(gp_pipeline *p, const gp_plan *plan) {
  if (gp_plan_trains(plan->kind)) return p->step;
  return UINT32_C(1) << 31 | (p->looks++ & (UINT32_MAX >> 1));
}

/* Open the links, before anything can fail: another rank may have begun to send. */
static void open_run(gp_pipeline *p, const gp_plan *plan, bool backward_half) {
  gp_run *run = &p->run;
  run->binding = gp_pipeline_binding(p, plan);
  run->plan = plan;
  run->backward_half = backward_half;
  gp_run_clear_failure(run);
  if (!backward_half) gp_links_begin(run->binding);
  if (!backward_half) gp_parts_begin(run->binding);
  if (p->spread) gp_spread_begin(p->spread);
}

static gp_status begin_run(gp_pipeline *p, const gp_plan *plan) {
  gp_run *run = &p->run;
  run->prepared = false;
  if (plan->update != GP_UPDATE_NONE) p->updates++;
  run->given = 0;
  run->known = run->told = 0;
  run->first_step = clock_of(p, plan);
  run->first_update = p->optimizer ? gp_optimizer_steps(p->optimizer) : 0;
  for (int32_t d = 0; d < p->device_count; d++) {
    atomic_store(&p->workers[d].ranges_done, 0);
    atomic_store(&p->workers[d].losses, 0);
  }
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    p->run.stages[h].updates = 0;
    p->run.stages[h].skipped = 0;
    p->run.stages[h].torn = false;
  }
  atomic_store(&run->gate, 0);
  run->spoilt = INT64_MAX;
  run->committed = gp_plan_streams(plan);
  gp_watch_reset(p);
  if (p->optimizer) GP_TRY(gp_optimizer_begin(p->optimizer));
  if (p->scaling.scale == 0) p->overflow = false;
  p->last_plan = plan;
  gp_profile_note_run(p);
  p->last_begin = gp_now_ns();
  return gp_run_save_buffers(p);
}

/* Check a run and begin it. */
static gp_status prepare_run(gp_pipeline *p, const gp_plan *plan, const gp_run_args *args) {
  const bool backward_half = p->run.backward_half;
  GP_TRY(gp_run_check_args(plan, args));
  if (backward_half) GP_TRY(gp_unchanged_check(p, args));
  if (args->accumulate && args->apart) GP_TRY(gp_earlier_take(p));
  GP_TRY(begin_run(p, plan));
  if (plan->kind == GP_PLAN_SPLIT && !backward_half) gp_unchanged_note(p, args);
  return GP_OK;
}

gp_status gp_pipeline_run(gp_pipeline *p, gp_plan *plan, const gp_run_args *args,
                          gp_run_result *result) {
  gp_run *run = &p->run;
  GP_TRY(check_ready(p));
  if (run->open) return gp_fail(GP_ESTATE, "a stream is open: drain it first");
  const bool backward_half = plan->kind == GP_PLAN_SPLIT && args->out_grads;
  open_run(p, plan, backward_half);
  if (p->spread) gp_spread_note(p->spread, gp_report_kind(run));
  gp_status status = prepare_run(p, plan, args);
  if (status) return p->spread ? gp_run_refuse(p, status) : status;
  bool prepares = plan->update == GP_UPDATE_NONE && !plan->batch && !backward_half;
  if (prepares) gp_prepared_begin(p);
  p->resumed = args->accumulate;
  gp_minibatch_fill(p, &run->batches[0], args);
  run->given = 1;
  atomic_store(&run->gate, GP_GATE_END);
  /* a task never sees half a run: everything is set before the workers begin, and read when the
   * last one is done */
  status = gp_workers_run(p, gp_run_device, run);
  if (p->spread) gp_run_agree(p);
  if (p->watch.lost) return status;
  gp_run_finish(p);
  if (prepares) gp_prepared_end(p);
  gp_minibatch_release(&run->batches[0]);
  gp_record_close(p);
  GP_TRY(status);
  if (run->status) return gp_fail_text(run->status, run->text);
  result->loss = gp_run_loss(run, 0, &result->count);
  run->told = run->known;
  return GP_OK;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Open the gate up to a number of mini-batches, and wake the workers that wait at it. A worker that
 * comes late finds it open and goes on at once. */
static void open_gate(gp_pipeline *p, uint32_t gate) {
  atomic_store(&p->run.gate, gate);
  for (int32_t d = 0; d < p->device_count; d++) gp_worker_ring(&p->workers[d]);
}

/* Is the place in the ring that mini-batch `step` is to take free on every device of this
 * process? */
static bool is_free(const gp_pipeline *p, uint32_t step) {
  const gp_run *run = &p->run;
  int64_t over = (int64_t)step - run->batch_room + 1; /* mini-batches that must be over */
  for (int32_t d = 0; over > 0 && d < run->plan->device_count; d++)
    if (gp_device_is_here(p, d) &&
        (int64_t)atomic_load(&p->workers[d].ranges_done) < over + run->plan->ranges.lag[d])
      return false;
  return true;
}

/* Ranks have to be given the same mini-batches, so a rank waits for the place also after a failure:
 * its workers pass through their tasks. */
static bool is_free_or_lost(const gp_pipeline *p, uint32_t step) {
  return is_free(p, step) || atomic_load(&((gp_pipeline *)p)->watch.given_up);
}

/* Has a replica run what is_taken waits for? */
static bool is_taken_by(const gp_pipeline *p, int32_t replica, uint32_t step) {
  const gp_plan *plan = p->run.plan;
  const int32_t copy = replica * gp_plan_twins(plan), stages = plan->stage_count;
  const int32_t first = plan->placement[gp_plan_holder(plan, 0, copy)];
  const int32_t last = plan->placement[gp_plan_holder(plan, stages - 1, copy)];
  int64_t repeats, range = gp_plan_range(plan, step, &repeats);
  const int64_t passed = plan->ranges.passed[range * plan->replicas + replica];
  const int64_t told =
      plan->ranges.known[range] + repeats * (plan->step_micros / gp_run_group(plan));
  const bool own = told * gp_run_group(plan) > (int64_t)step * plan->step_micros;
  const bool through =
      own || !gp_device_is_here(p, first) || atomic_load(&p->workers[first].ranges_done) > step;
  return through &&
         (!gp_device_is_here(p, last) || atomic_load(&p->workers[last].losses) >=
                                             passed + repeats * gp_plan_micros_of(plan, replica));
}

/* Are the losses known that this step is to tell? Unless its own is among them, the first stage
 * must also have taken the mini-batch in; if no gradient flows back to that stage, the two are
 * independent. A rank waits for the stages that it has. */
static bool is_taken(const gp_pipeline *p, uint32_t step) {
  for (int32_t r = 0; r < p->run.plan->replicas; r++)
    if (!is_taken_by(p, r, step)) return false;
  return true;
}

/* Wait until the condition holds. Unless it has to hold, the wait ends when the stream has failed
 * (also if the watchdog gave it up) or Ctrl-C is pressed. */
static void wait_until(gp_pipeline *p, bool (*holds)(const gp_pipeline *, uint32_t), uint32_t step,
                       bool has_to) {
  gp_watch_begin(p);
  for (;;) {
    uint32_t seen = atomic_load(&p->run.progress);
    if (holds(p, step)) return;
    if (!has_to && (gp_run_failed(&p->run) || gp_interrupt_pending())) return;
    gp_wait_word(&p->run.progress, seen, GP_WAIT_NS);
    gp_watch_check(p);
  }
}

/* End a stream that has failed or was interrupted. After Ctrl-C all that was given runs to its end,
 * so that all stages have made the same updates. */
static gp_status end_stream(gp_pipeline *p, bool interrupted) {
  GP_TRY(gp_pipeline_drain(p));
  return interrupted ? gp_fail(GP_EINTERRUPT, "interrupted") : GP_OK;
}

static bool is_stopped(const gp_pipeline *p, bool *interrupted) {
  const bool failed = gp_run_failed(&p->run);
  *interrupted = !failed && gp_interrupt_pending();
  return failed || *interrupted;
}

static gp_status open_stream(gp_pipeline *p, const gp_plan *plan) {
  gp_run *run = &p->run;
  open_run(p, plan, false);
  gp_status status = begin_run(p, plan);
  if (status) return p->spread ? gp_run_refuse(p, status) : status;
  run->open = true;
  gp_workers_begin(p, gp_run_device, run);
  return GP_OK;
}

/* Put a mini-batch into its place of the ring and let the workers have it. */
static void give(gp_pipeline *p, const gp_run_args *args, bool fills) {
  gp_run *run = &p->run;
  gp_minibatch *batch = gp_run_minibatch_at(run, run->given);
  if (fills) {
    gp_minibatch_release(batch);
    gp_minibatch_fill(p, batch, args);
  }
  open_gate(p, ++run->given);
}

/* Give a mini-batch and wait until the losses of this step are known. Returns whether the stream
 * has to end. */
static bool submit(gp_pipeline *p, const gp_run_args *args, bool *interrupted) {
  gp_run *run = &p->run;
  const gp_plan *plan = run->plan;
  const uint32_t step = run->given;
  wait_until(p, p->spread ? is_free_or_lost : is_free, step, p->spread != NULL);
  if (!p->spread && is_stopped(p, interrupted)) return true;
  give(p, args, is_free(p, step));
  wait_until(p, is_taken, step, false);
  int64_t repeats, known = plan->ranges.known[gp_plan_range(plan, step, &repeats)];
  known += repeats * (plan->step_micros / gp_run_group(plan));
  const bool ends = p->spread
                        ? gp_stream_meet(p, gp_run_minibatch_at(run, step), known, interrupted)
                        : is_stopped(p, interrupted);
  if (!ends) run->known = known;
  return ends;
}

gp_status gp_pipeline_submit(gp_pipeline *p, gp_plan *plan, const gp_run_args *args) {
  gp_run *run = &p->run;
  bool interrupted;
  GP_TRY(check_ready(p));
  if (run->open && run->plan != plan)
    return gp_fail(GP_ESTATE, "another stream is open: drain it first");
  GP_TRY(gp_run_check_args(plan, args));
  if (!run->open) GP_TRY(open_stream(p, plan));
  if (submit(p, args, &interrupted)) return end_stream(p, interrupted);
  return gp_skips_are_stuck(p) ? gp_pipeline_drain(p) : GP_OK;
}

/* Close the stream when the workers are done. */
static void close_stream(gp_pipeline *p) {
  gp_run *run = &p->run;
  run->open = false;
  gp_run_finish(p);
  for (int32_t i = 0; i < run->batch_room; i++) gp_minibatch_release(&run->batches[i]);
  gp_record_close(p);
}

gp_status gp_pipeline_drain(gp_pipeline *p) {
  gp_run *run = &p->run;
  if (!run->open) return GP_OK;
  open_gate(p, GP_GATE_END);
  gp_status status = gp_workers_join(p);
  if (p->spread) gp_run_agree(p);
  if (p->watch.lost) return status;
  close_stream(p);
  GP_TRY(status);
  return run->status ? gp_fail_text(run->status, run->text) : gp_skips_end_stream(p);
}

/* The other ranks may not come to the end of the stream: this script may have failed. */
void gp_stream_drop(gp_pipeline *p) {
  if (!p->run.open) return;
  gp_run_fail(&p->run, -1, GP_ESTATE, "the pipeline was closed, expected pipe:flush() before");
  gp_watch_give_up(p);
  (void)gp_workers_join(p);
  gp_spread_end(p->spread);
  if (!p->watch.lost) close_stream(p);
}

const gp_plan *gp_pipeline_stream(const gp_pipeline *p) { return p->run.open ? p->run.plan : NULL; }

int gp_pipeline_losses(gp_pipeline *p, double *losses, int room) {
  int taken = 0;
  for (; taken < room && p->run.told < p->run.known; taken++) {
    int64_t count;
    losses[taken] = gp_run_loss(&p->run, p->run.told++, &count);
  }
  return taken;
}
