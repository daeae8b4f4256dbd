/* engine/run/feed.c - mini-batches given to the workers: one and wait for it, or one after another.
 *
 * A stream is opened by its first mini-batch and closed by draining; in between the workers never
 * stop and nothing joins them. Each mini-batch has a place in a ring, which is filled again when
 * every device is through with what it held.
 */
#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "base/thread.h"
#include "engine/bind/links.h"
#include "engine/optimizer/optimizer.h"
#include "engine/pipeline.h"
#include "engine/run/arguments.h"
#include "engine/update/update.h"
#include "engine/watch/report.h"
#include "gpipe/device.h"
#include "gpipe/process.h"

enum { WAIT_NS = 100000000 };

/* ---- room ---------------------------------------------------------------------------------- */

/* Its arrays; the tensors were given back when the mini-batch was over. */
static void free_feed(gp_feed *feed) {
  gp_free(feed->blocks);
  gp_free(feed->results);
  gp_free(feed->rows);
  gp_free(feed->hyper);
  *feed = (gp_feed){0};
}

static void free_ring(gp_feed *feeds, int32_t room) {
  for (int32_t i = 0; feeds && i < room; i++) free_feed(&feeds[i]);
  gp_free(feeds);
}

/* No run is on: the ring is empty. */
void gp_feeds_free(gp_pipeline *p) {
  free_ring(p->run.feeds, p->run.feed_room);
  p->run.feeds = NULL;
  p->run.feed_room = p->run.feed_micros = p->run.feed_groups = 0;
}

/* Arrays for the largest plan so far: groups may be none. */
static gp_status make_feed(gp_feed *feed, size_t micros, size_t groups) {
  GP_TRY(gp_alloc_array(micros, sizeof(gp_step_block), (void **)&feed->blocks));
  GP_TRY(gp_alloc_array(micros, sizeof(gp_micro_result), (void **)&feed->results));
  GP_TRY(gp_alloc_array(micros, sizeof(int64_t), (void **)&feed->rows));
  return gp_alloc_array(groups + 1, sizeof(gp_optim_hyper), (void **)&feed->hyper);
}

static gp_status make_ring(gp_feed **feeds, int32_t room, int32_t micros, int32_t groups) {
  gp_feed *made;
  GP_TRY(gp_alloc_array((size_t)room, sizeof(gp_feed), (void **)&made));
  gp_status status = GP_OK;
  for (int32_t i = 0; !status && i < room; i++)
    status = make_feed(&made[i], (size_t)micros, (size_t)groups);
  if (status) return free_ring(made, room), status;
  *feeds = made;
  return GP_OK;
}

/* Grown when a plan needs more, between runs: a run allocates nothing. On failure the ring is as it
 * was. */
gp_status gp_feeds_prepare(gp_pipeline *p, const gp_plan *plan) {
  gp_run *run = &p->run;
  int32_t room = gp_plan_feed_room(plan);
  int32_t micros = plan->step_micros * plan->copy_count;
  int32_t groups = p->optimizer ? gp_optimizer_groups(p->optimizer) : 0;
  gp_feed *feeds;
  if (room <= run->feed_room && micros <= run->feed_micros && groups <= run->feed_groups)
    return GP_OK;
  if (room < run->feed_room) room = run->feed_room;
  if (micros < run->feed_micros) micros = run->feed_micros;
  if (groups < run->feed_groups) groups = run->feed_groups;
  GP_TRY(make_ring(&feeds, room, micros, groups));
  gp_feeds_free(p);
  run->feeds = feeds;
  run->feed_room = room;
  run->feed_micros = micros;
  run->feed_groups = groups;
  return GP_OK;
}

/* ---- filling a place of the ring ------------------------------------------------------------- */

/* The count is known here where the shapes decide it; else the last stage counts first. */
static double constant_inverse(const gp_plan *plan, int32_t first, int32_t size) {
  int64_t count = 0;
  if (plan->shapes[0].programs[plan->stage_count - 1].count) return 0;
  for (int32_t i = first; i < first + size; i++)
    count += plan->shapes[gp_plan_shape_of(plan, i)].constant_count;
  return count ? 1.0 / (double)count : 0;
}

/* Of mini-batch `step` of the stream. Rows count from the begin of what is trained together. */
static void set_blocks(gp_pipeline *p, const gp_run *run, gp_feed *feed, uint32_t step) {
  const gp_plan *plan = run->plan;
  int32_t size = gp_run_group(plan), groups = plan->step_micros / size;
  uint32_t clock = run->backward_half ? p->split_step : run->first_step;
  double inverse = 0; /* of the mini-batch that i belongs to */
  for (int32_t i = 0; i < plan->step_micros; i++) {
    int32_t first = i - i % size, shape = gp_plan_shape_of(plan, i);
    if (i == first) inverse = constant_inverse(plan, first, size);
    feed->rows[i] = gp_plan_first_row(plan, i);
    feed->results[i].count[0] = feed->results[i].count[1] = plan->shapes[shape].constant_count;
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      *gp_feed_block(plan, feed, i, copy) =
          (gp_step_block){.seed = p->seed,
                          .step = clock + step * (uint32_t)groups + (uint32_t)(i / size),
                          .rows = plan->shapes[shape].rows,
                          .first_row = feed->rows[i] - gp_plan_first_row(plan, first),
                          .inverse_count = inverse,
                          .scale = p->scaling.scale > 0 ? p->scaling.scale : 1};
  }
}

/* What the caller gave, and what the kernels will read of it. */
static void fill_feed(gp_pipeline *p, const gp_run *run, gp_feed *feed, const gp_run_args *args) {
  feed->input_count = args->input_count;
  feed->target_count = args->target_count;
  for (int i = 0; i < args->input_count; i++) feed->inputs[i] = args->inputs[i];
  for (int i = 0; i < args->target_count; i++) feed->targets[i] = args->targets[i];
  feed->output = args->output;
  feed->out_grad = args->out_grad;
  feed->accumulate = args->accumulate;
  if (p->optimizer && args->hyper)
    memcpy(feed->hyper, args->hyper,
           (size_t)gp_optimizer_groups(p->optimizer) * sizeof *feed->hyper);
  set_blocks(p, run, feed, run->fed);
}

/* In streams the script may let go of its tensors; what the ring holds is held the same way
 * always. */
static void retain(gp_feed *feed) {
  for (int i = 0; i < feed->input_count; i++) gp_tensor_retain(feed->inputs[i]);
  for (int i = 0; i < feed->target_count; i++) gp_tensor_retain(feed->targets[i]);
}

/* Once: counts of zero say that nothing is held. */
static void release(gp_feed *feed) {
  for (int i = 0; i < feed->input_count; i++) gp_tensor_free(feed->inputs[i]);
  for (int i = 0; i < feed->target_count; i++) gp_tensor_free(feed->targets[i]);
  feed->input_count = feed->target_count = 0;
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* Whatever keeps a pipeline from running, before anything is touched. */
static gp_status check_ready(const gp_pipeline *p) {
  if (p->closed) return gp_fail(GP_ESTATE, "the pipeline is closed");
  if (p->watch.lost) return gp_fail(GP_ESTATE, "the pipeline is lost: %s", p->run.text);
  if (p->broken)
    return gp_fail(GP_ESTATE, "an earlier failure left some stages updated and others not: load a "
                              "state (load_state_dict of the pipeline, and of an optimizer with "
                              "moments) before you go on");
  return GP_OK;
}

static gp_status begin_run(gp_pipeline *p, const gp_plan *plan, bool backward_half) {
  gp_run *run = &p->run;
  run->binding = gp_pipeline_binding(p, plan);
  run->plan = plan;
  run->backward_half = backward_half;
  run->prepared = false;
  run->status = GP_OK;
  if (plan->update != GP_UPDATE_NONE) p->updates++;
  run->fed = 0;
  run->known = run->told = 0;
  run->first_step = p->step;
  run->first_update = p->optimizer ? gp_optimizer_steps(p->optimizer) : 0;
  for (int32_t d = 0; d < p->device_count; d++) atomic_store(&p->workers[d].ranges_done, 0);
  for (int32_t s = 0; s < p->stage_count; s++) {
    p->arenas[s].updates = 0;
    p->arenas[s].skipped = 0;
    p->arenas[s].torn = false;
  }
  atomic_store(&run->gate, 0);
  atomic_store(&run->losses, 0);
  atomic_store(&run->arrived, 0);
  atomic_store(&run->released, 0);
  atomic_store(&run->failed_order, INT64_MAX);
  run->spoilt = INT64_MAX;
  run->committed = gp_plan_streams(plan);
  if (!backward_half) gp_links_begin(run->binding);
  gp_watch_reset(p);
  if (p->optimizer) GP_TRY(gp_optimizer_begin(p->optimizer));
  if (p->scaling.scale == 0) p->overflow = false;
  p->last_plan = plan;
  p->last_begin = gp_now_ns();
  return gp_run_save_buffers(p);
}

/* A task never sees half a run: everything is set before the ticket, read after the last worker. */
gp_status gp_pipeline_run(gp_pipeline *p, gp_plan *plan, const gp_run_args *args,
                          gp_run_result *result) {
  gp_run *run = &p->run;
  GP_TRY(check_ready(p));
  if (run->open) return gp_fail(GP_ESTATE, "a stream is open: drain it first");
  GP_TRY(gp_run_check_args(plan, args));
  bool split = plan->kind == GP_PLAN_SPLIT, backward_half = split && args->out_grad;
  if (backward_half) GP_TRY(gp_unchanged_check(p, args));
  GP_TRY(begin_run(p, plan, backward_half));
  if (split && !backward_half) gp_unchanged_note(p, args);
  bool prepares = plan->update == GP_UPDATE_NONE && !plan->batch && !backward_half;
  if (prepares) gp_prepared_begin(p);
  p->resumed = args->accumulate;
  fill_feed(p, run, &run->feeds[0], args);
  retain(&run->feeds[0]);
  run->fed = 1;
  atomic_store(&run->gate, GP_GATE_END);
  gp_status status = gp_workers_run(p, gp_run_device, run);
  if (p->watch.lost) return status;
  gp_run_finish(p);
  if (prepares) gp_prepared_end(p);
  release(&run->feeds[0]);
  gp_record_close(p);
  GP_TRY(status);
  if (run->status) return gp_fail_text(run->status, run->text);
  result->loss = gp_run_loss(run, 0, &result->count);
  run->told = run->known;
  return GP_OK;
}

/* ---- streams ------------------------------------------------------------------------------- */

void gp_run_progress(gp_run *run) {
  atomic_fetch_add(&run->progress, 1);
  gp_wake_word(&run->progress, INT_MAX);
}

/* Workers that wait at it are woken. */
static void open_gate(gp_pipeline *p, uint32_t gate) {
  atomic_store(&p->run.gate, gate);
  for (int32_t d = 0; d < p->device_count; d++) gp_worker_ring(&p->workers[d]);
}

static bool has_failed(const gp_run *run) {
  return atomic_load(&((gp_run *)run)->failed_order) != INT64_MAX;
}

/* Is the place in the ring that mini-batch `step` is to take free on every device? */
static bool is_free(const gp_pipeline *p, uint32_t step) {
  const gp_run *run = &p->run;
  int64_t over = (int64_t)step - run->feed_room + 1; /* mini-batches that must be over */
  for (int32_t d = 0; over > 0 && d < run->plan->device_count; d++)
    if ((int64_t)atomic_load(&p->workers[d].ranges_done) < over + run->plan->ranges.lag[d])
      return false;
  return true;
}

/* Are the losses known that this step is to tell? Asynchronous: and the first stage has taken it
 * in; where no gradient flows back to it, that says nothing about the losses. */
static bool is_taken(const gp_pipeline *p, uint32_t step) {
  const gp_run *run = &p->run;
  int64_t repeats, passed = run->plan->ranges.passed[gp_plan_range(run->plan, step, &repeats)];
  bool through = atomic_load(&p->workers[run->plan->placement[0]].ranges_done) > step;
  return (through || !run->plan->batch) &&
         atomic_load(&run->losses) >= passed + repeats * run->plan->step_micros;
}

/* Until the condition holds, the stream has failed, be it because the watchdog gave it up, or
 * Ctrl-C. */
static void wait_until(gp_pipeline *p, bool (*holds)(const gp_pipeline *, uint32_t),
                       uint32_t step) {
  gp_watch_begin(p);
  for (;;) {
    uint32_t seen = atomic_load(&p->run.progress);
    if (holds(p, step) || has_failed(&p->run) || gp_interrupt_pending()) return;
    gp_wait_word(&p->run.progress, seen, WAIT_NS);
    gp_watch_check(p);
  }
}

/* A stream that was interrupted ends where all stages have made the same updates: what was fed runs
 * to its end. */
static gp_status end_stream(gp_pipeline *p) {
  bool interrupted = !has_failed(&p->run) && gp_interrupt_pending();
  GP_TRY(gp_pipeline_drain(p));
  return interrupted ? gp_fail(GP_EINTERRUPT, "interrupted") : GP_OK;
}

gp_status gp_pipeline_feed(gp_pipeline *p, gp_plan *plan, const gp_run_args *args) {
  gp_run *run = &p->run;
  GP_TRY(check_ready(p));
  if (run->open && run->plan != plan)
    return gp_fail(GP_ESTATE, "another stream is open: drain it first");
  GP_TRY(gp_run_check_args(plan, args));
  if (!run->open) {
    GP_TRY(begin_run(p, plan, false));
    run->open = true;
    gp_workers_begin(p, gp_run_device, run);
  }
  uint32_t step = run->fed;
  gp_feed *feed = &run->feeds[step % (uint32_t)run->feed_room];
  wait_until(p, is_free, step);
  if (has_failed(run) || gp_interrupt_pending()) return end_stream(p);
  release(feed);
  fill_feed(p, run, feed, args);
  retain(feed);
  run->fed = step + 1;
  open_gate(p, run->fed);
  wait_until(p, is_taken, step);
  if (has_failed(run) || gp_interrupt_pending()) return end_stream(p);
  int64_t repeats, known = plan->ranges.known[gp_plan_range(plan, step, &repeats)];
  run->known = known + repeats * (plan->step_micros / gp_run_group(plan));
  return gp_run_is_stuck(p) ? gp_pipeline_drain(p) : GP_OK;
}

gp_status gp_pipeline_drain(gp_pipeline *p) {
  gp_run *run = &p->run;
  if (!run->open) return GP_OK;
  open_gate(p, GP_GATE_END);
  gp_status status = gp_workers_join(p);
  if (p->watch.lost) return status;
  run->open = false;
  gp_run_finish(p);
  for (int32_t i = 0; i < run->feed_room; i++) release(&run->feeds[i]);
  gp_record_close(p);
  GP_TRY(status);
  return run->status ? gp_fail_text(run->status, run->text) : gp_norm_decide_stream(p);
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
