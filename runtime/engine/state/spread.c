/* engine/state/spread.c - see spread.h: failures that come from other ranks and go to them.
 *
 * They come on the thread of ranks/net.c, at any time: of the run under way, or of the next one,
 * which this rank may not have begun. */
#include "engine/state/spread.h"

#include <stdio.h>

#include "base/memory.h"
#include "device/link/ranks/near.h"
#include "engine/state/pipeline.h"
#include "engine/watch/report.h"
#include "ranks/ranks.h"

/* ---- the port -------------------------------------------------------------------------------- */

static void *room(void *context, int32_t from, const gp_rank_message *m, uint64_t *expected) {
  gp_spread *s = context;
  *expected = m->kind == GP_RANK_FAILURE ? sizeof(gp_far_failure) : 0;
  return m->kind == GP_RANK_FAILURE ? &s->in[from] : NULL;
}

/* Let the run fail here, too. */
static void take(gp_spread *s, int32_t from, const gp_far_failure *f) {
  const bool known = f->status > 0 && f->status < GP_STATUS_COUNT;
  if (f->gives_up) atomic_store(&s->gives_up, 1);
  gp_run_fail_from(s->run, from, f->order, known ? (gp_status)f->status : GP_EIO, f->text);
}

static void arrived(void *context, int32_t from, const gp_rank_message *m) {
  gp_spread *s = context;
  gp_far_failure *f = &s->in[from];
  f->text[GP_SPREAD_TEXT - 1] = '\0';
  if (m->run == s->runs && s->is_running) take(s, from, f);
  if (m->run != s->runs + 1) return;
  if (s->has_early && s->early.order <= f->order) return;
  s->has_early = true;
  s->early_from = from;
  s->early = *f;
}

/* A rank that is gone fails the run under way before all tasks: what it would have sent is
 * missing. */
static void gone(void *context, const char *text) {
  gp_spread *s = context;
  if (!s->lost) snprintf(s->why, sizeof s->why, "%s", text);
  s->lost = true;
  if (!s->is_running) return;
  atomic_store(&s->gives_up, 1);
  gp_run_fail_from(s->run, s->own, -1, GP_EDEVICE, s->why);
}

/* While a run is under way its plan stays: gp_spread_end waits for the lock of ports. */
static void words(void *context, char *text, size_t size) {
  const gp_spread *s = context;
  char cause[256];
  if (s->is_running)
    snprintf(text, size, "in its step %s", gp_report_cause(s->pipeline, cause, sizeof cause));
}

/* ---- life ------------------------------------------------------------------------------------ */

gp_bell *gp_spread_bell(const gp_spread *s, int32_t device) {
  return s && s->bells ? (gp_bell *)gp_shared_data(s->bells) + device : NULL;
}

gp_status gp_spread_new(gp_pipeline *pipeline, gp_spread **spread) {
  gp_spread *s;
  GP_TRY(gp_ranks_join());
  GP_TRY(gp_alloc(sizeof *s, (void **)&s));
  *spread = s;
  s->pipeline = pipeline;
  s->run = &pipeline->run;
  s->own = gp_ranks_own();
  s->count = gp_ranks_count();
  GP_TRY(gp_ranks_number("gp.pipeline", &s->port));
  s->port <<= 32;
  /* without such memory the ranks of this host send each other messages */
  (void)gp_near_make_bells(pipeline->device_count, &s->bells);
  GP_TRY(gp_alloc_array((size_t)s->count, sizeof *s->in, (void **)&s->in));
  return gp_ports_add(&(gp_port){.number = s->port,
                                 .context = s,
                                 .room = room,
                                 .arrived = arrived,
                                 .gone = gone,
                                 .words = words});
}

void gp_spread_free(gp_spread *s) {
  if (!s) return;
  gp_ports_remove(s->port);
  gp_shared_free(s->bells);
  gp_free(s->in);
  gp_free(s);
}

const char *gp_spread_lost(gp_spread *s) {
  gp_ports_lock();
  const bool lost = s->lost;
  gp_ports_unlock();
  return lost ? s->why : NULL;
}

/* The first reason stays. */
void gp_spread_lose(gp_spread *s, const char *why) {
  gp_ports_lock();
  if (!s->lost) snprintf(s->why, sizeof s->why, "%s", why);
  s->lost = true;
  gp_ports_unlock();
}

void gp_spread_begin(gp_spread *s) {
  gp_ports_lock();
  s->runs++;
  s->is_running = true;
  snprintf(s->what, sizeof s->what, "step"); /* of a stream, until it is noted */
  atomic_store(&s->gives_up, 0);
  s->knows = false;
  if (s->has_early) take(s, s->early_from, &s->early);
  s->has_early = false;
  gp_ports_unlock();
}

void gp_spread_note(gp_spread *s, const char *kind) {
  const gp_plan *plan = s->run->plan;
  const int64_t rows = gp_plan_first_row(plan, plan->step_micros);
  snprintf(s->what, sizeof s->what, "%.8s of %lld rows", kind, (long long)rows);
  gp_ranks_note_pass((uint32_t)(s->port >> 32), s->what);
}

void gp_spread_end(gp_spread *s) {
  gp_ports_lock();
  s->is_running = false;
  gp_ports_unlock();
}

gp_status gp_spread_failure(gp_spread *s, char text[GP_SPREAD_TEXT]) {
  pthread_mutex_lock(&s->run->failure_lock);
  const gp_status status = s->run->status;
  snprintf(text, GP_SPREAD_TEXT, "%s", s->run->text);
  pthread_mutex_unlock(&s->run->failure_lock);
  return status;
}

void gp_spread_blame(gp_spread *s, const char *text) {
  gp_run *run = s->run;
  pthread_mutex_lock(&run->failure_lock);
  snprintf(run->text, sizeof run->text, "%s", text);
  run->failed_by = s->own;
  s->knows = true;
  pthread_mutex_unlock(&run->failure_lock);
}

/* A message that cannot be sent is no loss: the ranks agree at the end of the run. */
void gp_spread_tell(gp_spread *s, const gp_far_failure *failure) {
  const gp_rank_message m = {
      .kind = GP_RANK_FAILURE, .run = s->runs, .port = s->port, .bytes = sizeof *failure};
  for (int32_t r = 0; r < s->count; r++)
    if (r != s->own) (void)gp_ranks_send_copy(r, &m, failure);
}
