/* schedule/verify/live.c - which activations are alive when, and the slots that hold them.
 *
 * The activation of a (stage, micro-batch) lives from its F to its B or W; where R makes it again,
 * only during F and then from R on. Joined actions overlap, so what one ends is alive while the
 * other begins.
 * Slots are given by interval colouring, lowest free one first: a stage needs as many as its peak.
 */
#include <string.h>

#include "base/memory.h"
#include "schedule/verify/live.h"

/* ---- the walk ------------------------------------------------------------------------------ */

static bool ends_at_once(const gp_verify *v, const gp_action *x) {
  return v->forward_only || gp_edges_at(&v->edges, GP_ACT_R, x->stage, x->micro) >= 0;
}

/* An activation begins at F and R, ends at B, W and, where nothing is kept, at F. */
static gp_status tell(const gp_verify *v, const gp_live_watcher *w, int32_t begin, int32_t end) {
  for (int32_t a = begin; a < end; a++) {
    int op = v->s->actions[a].op;
    if (op == GP_ACT_F || op == GP_ACT_R) GP_TRY(w->born(w->context, a));
  }
  for (int32_t a = begin; a < end; a++) {
    const gp_action *x = &v->s->actions[a];
    if (x->op == GP_ACT_B || x->op == GP_ACT_W || (x->op == GP_ACT_F && ends_at_once(v, x)))
      w->dead(w->context, a);
  }
  return GP_OK;
}

gp_status gp_verify_lives(const gp_verify *v, const gp_live_watcher *watcher) {
  const gp_schedule *s = v->s;
  for (int32_t d = 0; d < s->device_count; d++)
    for (int32_t a = s->first[d], end; a < s->first[d + 1]; a = end) {
      end = gp_schedule_group_end(s, a);
      GP_TRY(tell(v, watcher, a, end));
    }
  return GP_OK;
}

/* ---- peaks --------------------------------------------------------------------------------- */

typedef struct peaks {
  const gp_schedule *s;
  int32_t *live, *peak;             /* per device */
  int32_t *stage_live, *stage_peak; /* [stage][copy] */
} peaks;

static void up(int32_t *live, int32_t *peak) {
  if (++*live > *peak) *peak = *live;
}

static gp_status peak_born(void *context, int32_t a) {
  peaks *p = context;
  int32_t device = gp_action_device(p->s, a), holder = gp_action_holder(p->s, a);
  up(&p->live[device], &p->peak[device]);
  up(&p->stage_live[holder], &p->stage_peak[holder]);
  return GP_OK;
}

static void peak_dead(void *context, int32_t a) {
  peaks *p = context;
  p->live[gp_action_device(p->s, a)]--;
  p->stage_live[gp_action_holder(p->s, a)]--;
}

gp_status gp_schedule_peaks(const gp_schedule *s, int32_t *per_device, int32_t *per_stage) {
  size_t devices = (size_t)s->device_count,
         holders = (size_t)s->stage_count * (size_t)s->copy_count;
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault};
  peaks p = {.s = s, .peak = per_device, .stage_peak = per_stage};
  memset(per_device, 0, devices * sizeof *per_device);
  memset(per_stage, 0, holders * sizeof *per_stage);
  GP_TRY(gp_alloc_array(devices + holders, sizeof(int32_t), (void **)&p.live));
  p.stage_live = p.live + devices;
  gp_status status = gp_verify_index(&v);
  if (!status) status = gp_verify_lives(&v, &(gp_live_watcher){&p, peak_born, peak_dead});
  gp_verify_free(&v);
  gp_free(p.live);
  return status;
}

/* ---- slots --------------------------------------------------------------------------------- */

typedef struct slots {
  const gp_verify *v;
  uint64_t *taken; /* [stage][copy][words]: a bit per slot */
  size_t words;
  int32_t *slot;  /* [stage][micro] */
  int32_t *count; /* [stage][copy] */
} slots;

static gp_status slot_born(void *context, int32_t a) {
  slots *t = context;
  const gp_action *x = &t->v->s->actions[a];
  int32_t holder = gp_action_holder(t->v->s, a), word = 0;
  uint64_t *taken = &t->taken[(size_t)holder * t->words];
  while (taken[word] == UINT64_MAX) word++;
  int32_t slot = 64 * word + __builtin_ctzll(~taken[word]);
  taken[word] |= UINT64_C(1) << slot % 64;
  t->slot[gp_edges_cell(t->v->s, x->stage, x->micro)] = slot;
  if (slot >= t->count[holder]) t->count[holder] = slot + 1;
  return GP_OK;
}

static void slot_dead(void *context, int32_t a) {
  slots *t = context;
  const gp_action *x = &t->v->s->actions[a];
  int32_t slot = t->slot[gp_edges_cell(t->v->s, x->stage, x->micro)];
  t->taken[(size_t)gp_action_holder(t->v->s, a) * t->words + (size_t)slot / 64] &=
      ~(UINT64_C(1) << slot % 64);
}

gp_status gp_schedule_slots(const gp_schedule *s, int32_t *slot, int32_t *count) {
  size_t holders = (size_t)s->stage_count * (size_t)s->copy_count;
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault};
  slots t = {.v = &v, .words = (size_t)s->micro_count / 64 + 1, .slot = slot, .count = count};
  memset(count, 0, holders * sizeof *count);
  GP_TRY(gp_alloc_array(holders * t.words, sizeof *t.taken, (void **)&t.taken));
  gp_status status = gp_verify_index(&v);
  if (!status) status = gp_verify_lives(&v, &(gp_live_watcher){&t, slot_born, slot_dead});
  gp_verify_free(&v);
  gp_free(t.taken);
  return status;
}
