/* schedule/simulate/path.c - the critical path of a simulated schedule.
 *
 * It goes back in time from the action that ends last: what ended, or arrived, at the very moment
 * at which this action began? Times are compared with ==, because both sides are the same sums of
 * the same numbers. If the device and a value were ready together, the device counts.
 */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* A step of the way back asks what let `action` (the first of joined ones) go on at `time`. */
typedef struct step {
  int32_t action;
  double time;
} step;

/* Returns the action that ran before `action` on its device, the first of joined ones, or -1. Empty
 * cells are passed over. */
static int32_t previous(const gp_sim *r, int32_t action) {
  const gp_schedule *s = r->schedule;
  int32_t a = action - 1, first = s->first[gp_action_device(r->schedule, action)];
  while (a >= first && s->actions[a].op == GP_ACT_IDLE) a--;
  if (a < first) return -1;
  while (a > first && s->actions[a - 1].joined) a--;
  return a;
}

static int32_t first_of(const gp_sim *r, int32_t action) {
  while (action > 0 && r->schedule->actions[action - 1].joined) action--;
  return action;
}

/* Returns when the device was through with the actions that begin at `first`, sending included. */
static double release(const gp_sim *r, int32_t first) {
  double time = r->result->finish[first];
  for (int32_t a = first; r->arrivals && a < gp_schedule_group_end(r->schedule, first); a++)
    if (r->arrivals[a] >= 0 && (r->costs->blocking || r->places))
      time = r->costs->blocking ? r->arrivals[a] : r->places[a].start;
  return time;
}

/* Returns the last of the parts first..last that waited until a channel had room, or -1. */
static int32_t held_up(const gp_sim *r, int32_t first, int32_t last) {
  for (int32_t a = last; r->places && a >= first; a--)
    if (r->places[a].freed_by >= 0) return a;
  return -1;
}

/* Go back over parts first..last, to their begin or to the action that made room for them. */
static gp_reason go_back(const gp_sim *r, int32_t first, int32_t last, gp_reason reason, step *at) {
  int32_t held = held_up(r, first, last);
  if (held < 0) {
    *at = (step){first, r->result->begin[first]};
    return reason;
  }
  *at = (step){first_of(r, r->places[held].freed_by), r->places[held].freed};
  return GP_BY_CHANNEL;
}

/* Go back to the action whose end began a copy to the host, if that kept the device from going on
 * behind the actions that begin at `before`. */
static bool waited_behind(const gp_sim *r, int32_t before, step *at) {
  const int32_t end = before < 0 ? before : gp_schedule_group_end(r->schedule, before);
  for (int32_t a = before; a < end; a++) {
    if (gp_sim_away_leaves(r, a) != at->time) continue;
    const int32_t forward = first_of(r, r->away.behind[a]);
    *at = (step){forward, r->result->begin[forward]};
    return true;
  }
  return false;
}

/* Go back to the action with which the values of a backward action began to come back, if that
 * waited for them. */
static bool waited_for_values(const gp_sim *r, int32_t action, step *at) {
  if (at->time <= 0 || gp_sim_away_arrives(r, action) != at->time) return false;
  int32_t fetch = action - 1;
  while (r->away.fetch[fetch] != action) fetch--;
  fetch = first_of(r, fetch);
  *at = (step){fetch, r->result->begin[fetch]};
  return true;
}

/* Go back to the last action of the other replicas of a stream that this one waited for. */
static bool waited_for_replicas(const gp_sim *r, int32_t action, step *at, gp_reason *reason) {
  gp_sim_wait waits[GP_MEET_COUNT];
  const int count = gp_sim_waits(r, action, waits);
  for (int i = 0; i < count; i++) {
    if (waits[i].from == action || waits[i].arrival != at->time) continue;
    *reason = go_back(r, first_of(r, waits[i].from), waits[i].from, GP_BY_VALUE, at);
    return true;
  }
  return false;
}

/* Go back to what let this step go on, and return why it did. GP_BY_CHANNEL: the action of *at did
 * not run then, it waited. */
static gp_reason why(const gp_sim *r, step *at) {
  int32_t before = previous(r, at->action), end = gp_schedule_group_end(r->schedule, at->action);
  if (before >= 0 && release(r, before) == at->time)
    return go_back(r, before, gp_schedule_group_end(r->schedule, before) - 1, GP_BY_DEVICE, at);
  if (waited_behind(r, before, at)) return GP_BY_COPY;
  for (int32_t a = at->action; a < end; a++) {
    int32_t from = gp_sim_source(r, a);
    gp_reason reason;
    if (waited_for_replicas(r, a, at, &reason)) return reason;
    if (waited_for_values(r, a, at)) return GP_BY_COPY;
    if (from >= 0 && gp_sim_arrival(r, from, a) == at->time)
      return go_back(r, first_of(r, from), from, GP_BY_VALUE, at);
  }
  return GP_BY_START;
}

static gp_status append(const gp_sim *r, int32_t action, size_t *room) {
  gp_simulation *result = r->result;
  int32_t device = gp_action_device(r->schedule, action);
  GP_TRY(gp_grow_array((size_t)result->path_count, room, sizeof *result->path,
                       (void **)&result->path));
  result->path[result->path_count++] =
      (gp_critical){.device = device,
                    .position = action - r->schedule->first[device],
                    .begin = result->begin[action],
                    .finish = result->finish[action]};
  return GP_OK;
}

static void reverse(gp_critical *path, int count) {
  for (int i = 0; i < count / 2; i++) {
    gp_critical other = path[i];
    path[i] = path[count - 1 - i];
    path[count - 1 - i] = other;
  }
}

/* Returns the first of the actions that end last, or -1 if all cells are empty. */
static int32_t last_action(const gp_sim *r) {
  const gp_schedule *s = r->schedule;
  int32_t last = -1;
  for (int32_t a = 0; a < s->first[s->device_count]; a = gp_schedule_group_end(s, a))
    if (s->actions[a].op != GP_ACT_IDLE &&
        (last < 0 || r->result->finish[a] > r->result->finish[last]))
      last = a;
  return last;
}

gp_status gp_sim_path(const gp_sim *run) {
  gp_simulation *result = run->result;
  size_t room = 0;
  int32_t last = last_action(run);
  if (last < 0) return GP_OK;
  step at = {last, result->begin[last]};
  for (gp_reason reason = GP_BY_DEVICE; reason != GP_BY_START;) {
    bool ran = reason != GP_BY_CHANNEL;
    if (ran) GP_TRY(append(run, at.action, &room));
    reason = why(run, &at);
    if (ran) result->path[result->path_count - 1].reason = reason;
  }
  reverse(result->path, result->path_count);
  return GP_OK;
}
