/* schedule/access/tally.c - what lives on a device of a schedule, without a list of accesses.
 *
 * What a micro-batch keeps lasts from the action that makes it to the last one that reads it, and
 * which one is the last shows where the device's list is read from its end. So a pass backward and
 * a pass forward find all that a watch is told, with a byte for each action and for each stage and
 * micro-batch, whose bits are classes. A thousand devices have ten million actions, whose accesses
 * and lifetimes would take a hundred times as much, to be written and read one after another.
 */
#include "schedule/access/tally.h"

#include <string.h>

#include "base/memory.h"

typedef struct tally {
  const gp_schedule *s;
  const gp_tally_watch *watch;
  gp_stage_list held;
  int32_t first, end; /* actions of the device */
  int32_t *place;     /* per stage held: its place among them */
  uint8_t *last;      /* per action of the device: the classes whose lives end with it */
  uint8_t *open;      /* per place and micro-batch: the classes that are alive, on the way back
                       * those that a later action reads */
} tally;

static size_t cell_count(const tally *t) {
  return (size_t)t->held.count * (size_t)t->s->micro_count;
}

static uint8_t *open_of(const tally *t, const gp_action *x) {
  return &t->open[(size_t)t->place[x->stage] * (size_t)t->s->micro_count + (size_t)x->micro];
}

static gp_tally_use use_of(const tally *t, const gp_action *x) {
  const gp_tally_use all = gp_tally_use_of((gp_act)x->op);
  const uint8_t asked = t->watch->classes;
  return (gp_tally_use){all.makes & asked, all.reads & asked};
}

/* Note which access of each life is its last one. Ahead of the action that makes an instance lies
 * an earlier life, if there is any. */
static void find_last(const tally *t) {
  for (int32_t a = t->end - 1; a >= t->first; a--) {
    const gp_action *x = &t->s->actions[a];
    const gp_tally_use use = use_of(t, x);
    if (!(use.makes | use.reads)) continue;
    uint8_t *later = open_of(t, x);
    t->last[a - t->first] = (use.makes | use.reads) & ~*later;
    *later = (*later | use.reads) & ~use.makes;
  }
}

/* What is read and was not made was there before: its life begins with the first reading. */
static void begin(const tally *t, int32_t a) {
  const gp_action *x = &t->s->actions[a];
  const gp_tally_use use = use_of(t, x);
  if (!(use.makes | use.reads)) return;
  uint8_t *open = open_of(t, x);
  const uint8_t born = use.makes | (use.reads & ~*open);
  *open |= born;
  if (born) t->watch->born(t->watch->context, (gp_tally_lives){t->place[x->stage], born});
}

static void end(const tally *t, int32_t a) {
  const gp_action *x = &t->s->actions[a];
  const uint8_t dead = t->last[a - t->first];
  if (!dead) return;
  *open_of(t, x) &= ~dead;
  t->watch->dead(t->watch->context, (gp_tally_lives){t->place[x->stage], dead});
}

/* Joined actions hold everything that any of them needs. */
static void walk(const tally *t) {
  for (int32_t a = t->first, next; a < t->end; a = next) {
    next = gp_schedule_group_end(t->s, a);
    for (int32_t i = a; i < next; i++) begin(t, i);
    for (int32_t i = next - 1; i >= a; i--) end(t, i);
  }
}

static gp_status make_room(tally *t) {
  const size_t stages = (size_t)t->s->stage_count, actions = (size_t)(t->end - t->first);
  GP_TRY(gp_alloc_array(stages, sizeof *t->place, (void **)&t->place));
  GP_TRY(gp_alloc_array(actions + cell_count(t) + 1, sizeof *t->last, (void **)&t->last));
  t->open = t->last + actions;
  for (int32_t i = 0; i < t->held.count; i++) t->place[t->held.stages[i]] = i;
  return GP_OK;
}

gp_status gp_schedule_tally(const gp_schedule *s, int32_t device, const gp_tally_watch *watch) {
  tally t = {.s = s,
             .watch = watch,
             .held = gp_schedule_stages(s, device),
             .first = s->first[device],
             .end = s->first[device + 1]};
  gp_status status = make_room(&t);
  if (!status) {
    find_last(&t);
    memset(t.open, 0, cell_count(&t)); /* what is read and never made was left there */
    walk(&t);
  }
  gp_free(t.place);
  gp_free(t.last);
  return status;
}
