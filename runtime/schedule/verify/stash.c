/* schedule/verify/stash.c - how many versions of a stage's weights are alive at once.
 *
 * Those are the newest, and older ones that somebody still computes with: what the engine stashes.
 */
#include "base/memory.h"
#include "schedule/verify/live.h"

typedef struct weights {
  const gp_schedule *s;
  int32_t versions;              /* that there can be */
  int32_t *last;                 /* [stage][copy][version]: position + 1 of its last use */
  int32_t *newest, *live, *peak; /* [stage][copy] */
  int32_t limit, over;           /* over: position at which more are alive, or -1 */
} weights;

static bool uses_weights(const gp_action *x) { return x->op <= GP_ACT_R && x->version >= 0; }

static int32_t *last_use(const weights *w, int32_t holder, int32_t version) {
  return &w->last[(size_t)holder * (size_t)w->versions + (size_t)version];
}

static void add_version(weights *w, int32_t holder, int32_t a) {
  int32_t live = ++w->live[holder];
  if (live > w->peak[holder]) w->peak[holder] = live;
  if (live > w->limit && w->over < 0) w->over = a;
}

/* At an update the version before the new one dies, if nobody uses it later. */
static void follow(weights *w, int32_t a) {
  const gp_action *x = &w->s->actions[a];
  if (x->op != GP_ACT_U && !uses_weights(x)) return;
  int32_t holder = gp_action_holder(w->s, a);
  if (x->op == GP_ACT_U) {
    bool used = *last_use(w, holder, w->newest[holder]++) > a + 1;
    if (used) add_version(w, holder, a);
  } else if (x->version < w->newest[holder] && *last_use(w, holder, x->version) == a + 1) {
    w->live[holder]--;
  }
}

static void count_versions(weights *w) {
  int32_t total = w->s->first[w->s->device_count];
  for (int32_t a = 0; a < total; a++) {
    const gp_action *x = &w->s->actions[a];
    if (uses_weights(x)) *last_use(w, gp_action_holder(w->s, a), x->version) = a + 1;
  }
  for (int32_t a = 0; a < total; a++) follow(w, a);
}

gp_status gp_verify_stash(const gp_schedule *s, int32_t limit, int32_t *live, int32_t *over) {
  size_t holders = (size_t)s->stage_count * (size_t)s->copy_count, entries;
  weights w = {.s = s, .peak = live, .limit = limit, .over = -1};
  w.versions = 2 + (s->batch ? s->micro_count / s->batch : 0);
  GP_TRY(gp_size_mul(holders, (size_t)w.versions, &entries));
  GP_TRY(gp_alloc_array(entries + 2 * holders, sizeof(int32_t), (void **)&w.last));
  w.newest = w.last + entries;
  w.live = w.newest + holders;
  for (size_t i = 0; i < holders; i++) w.live[i] = live[i] = 1;
  count_versions(&w);
  gp_free(w.last);
  *over = w.over;
  return GP_OK;
}

gp_status gp_schedule_versions(const gp_schedule *s, int32_t *live) {
  int32_t over;
  return gp_verify_stash(s, INT32_MAX, live, &over);
}
