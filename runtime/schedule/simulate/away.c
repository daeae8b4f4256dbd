/* schedule/simulate/away.c - copies of what F saves to the host's memory and back.
 *
 * A device has two lanes beside its list, one each way, and each does one copy after the other. A
 * copy takes no time of the device, but where it is not over in time the device waits: behind the
 * work beside which it went, or before the backward pass. */
#include "schedule/away.h"

#include "base/memory.h"
#include "schedule/simulate/simulate.h"

static const double MARKED = -1; /* of an F that goes: its copy has not begun */

/* A walk through a device's list of work. */
typedef struct finder {
  gp_sim *run;
  int32_t *work, count; /* actions, and how many there are so far */
  int32_t *forward;     /* per (stage, micro-batch): place of its F in work + 1; 0: none is open */
} finder;

static double cost_of(const gp_sim *run, int32_t action) {
  return run->costs->away[run->schedule->actions[action].stage];
}

static int32_t *forward_of(const finder *f, int32_t action) {
  const gp_action *x = &f->run->schedule->actions[action];
  return &f->forward[(size_t)x->stage * (size_t)f->run->schedule->micro_count + (size_t)x->micro];
}

/* Note what goes between the F at a place and the first backward action behind it, the last of the
 * work so far. */
static void note(const finder *f, int32_t forward) {
  const gp_action *actions = f->run->schedule->actions;
  const int32_t backward = f->count - 1, *work = f->work;
  gp_sim_away *away = &f->run->away;
  gp_away_span span;
  if (cost_of(f->run, work[forward]) <= 0) return;
  const bool recomputes = actions[work[forward + 1]].op == GP_ACT_R;
  if (!gp_away_find(forward, backward, recomputes, &span)) return;
  away->over[work[forward]] = MARKED;
  away->behind[work[span.held]] = work[forward];
  away->fetch[work[span.fetch]] = work[backward];
}

static void find(finder *f, int32_t device) {
  const gp_schedule *s = f->run->schedule;
  f->count = 0;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    if (s->actions[a].op > GP_ACT_R) continue;
    int32_t *at = forward_of(f, a);
    f->work[f->count++] = a;
    if (s->actions[a].op == GP_ACT_F) {
      *at = f->count;
      continue;
    }
    if (*at) note(f, *at - 1);
    *at = 0;
  }
}

static gp_status make_room(gp_sim *run, size_t actions) {
  gp_sim_away *away = &run->away;
  const size_t devices = (size_t)run->schedule->device_count;
  GP_TRY(gp_alloc_array(2 * actions + 1, sizeof(int32_t), (void **)&away->behind));
  GP_TRY(gp_alloc_array(actions + 2 * devices, sizeof(double), (void **)&away->over));
  away->fetch = away->behind + actions;
  away->out = away->over + actions;
  away->in = away->out + devices;
  for (size_t i = 0; i < 2 * actions; i++) away->behind[i] = -1;
  return GP_OK;
}

gp_status gp_sim_open_away(gp_sim *run, size_t actions) {
  const gp_schedule *s = run->schedule;
  const size_t cells = (size_t)s->stage_count * (size_t)s->micro_count;
  finder f = {.run = run};
  if (!run->costs->away || s->batch) return GP_OK;
  GP_TRY(make_room(run, actions));
  GP_TRY(gp_alloc_array(actions + cells + 1, sizeof(int32_t), (void **)&f.work));
  f.forward = f.work + actions;
  for (int32_t d = 0; d < s->device_count; d++) find(&f, d);
  gp_free(f.work);
  return GP_OK;
}

void gp_sim_close_away(gp_sim *run) {
  gp_free(run->away.behind);
  gp_free(run->away.over);
}

double gp_sim_away_leaves(const gp_sim *run, int32_t action) {
  const int32_t forward = run->away.behind ? run->away.behind[action] : -1;
  return forward < 0 ? 0 : run->away.over[forward];
}

double gp_sim_away_arrives(const gp_sim *run, int32_t action) {
  const bool reads = run->away.over && run->schedule->actions[action].op != GP_ACT_F;
  return reads ? run->away.over[action] : 0;
}

void gp_sim_await_away(const gp_sim *run, gp_sim_cursor *c) {
  for (int32_t a = c->next; a < c->end; a++) {
    const double arrives = gp_sim_away_arrives(run, a);
    if (arrives > c->ready) c->ready = arrives;
  }
}

/* Put a copy into a lane and return when it is over. */
static double copy(double *lane, double from, double seconds) {
  *lane = (from > *lane ? from : *lane) + seconds;
  return *lane;
}

void gp_sim_copy_away(gp_sim *run, int32_t device) {
  const gp_sim_cursor *c = &run->cursors[device];
  gp_sim_away *away = &run->away;
  if (!away->over) return;
  for (int32_t a = c->next; a < c->end; a++) {
    const int32_t fetched = away->fetch[a];
    if (fetched >= 0)
      away->over[fetched] = copy(&away->in[device], run->result->begin[a], cost_of(run, fetched));
    if (away->over[a] == MARKED)
      away->over[a] = copy(&away->out[device], run->result->finish[a], cost_of(run, a));
  }
}
