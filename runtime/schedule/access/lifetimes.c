/* schedule/access/lifetimes.c - from accesses to lifetimes, and what is alive at each time.
 *
 * One pass over the list opens a lifetime at each access that makes an instance and moves its end
 * with each access after it. The cost is linear in the accesses.
 */
#include "base/memory.h"
#include "schedule/access/access.h"

/* ---- finding ------------------------------------------------------------------------------- */

typedef struct finder {
  const gp_access_list *accesses;
  gp_lifetimes *out;
  int32_t *open; /* [buffer][instance]: its latest lifetime + 1; 0: none yet */
} finder;

static int32_t *open_of(const finder *f, int32_t buffer, int32_t instance) {
  return &f->open[(size_t)buffer * (size_t)f->accesses->instance_count + (size_t)instance];
}

/* A read of an instance that no task made begins a life, too: it was there before. */
static void note(finder *f, int32_t task, const gp_access *access) {
  const int32_t time = f->accesses->time[task];
  int32_t *open = open_of(f, access->buffer, access->instance);
  if (access->mode == GP_ACCESS_READ && *open) {
    f->out->list[*open - 1].end = time;
    return;
  }
  const bool follows = access->mode == GP_ACCESS_REPLACE && access->instance > 0;
  f->out->list[f->out->count++] = (gp_lifetime){
      .buffer = access->buffer,
      .instance = access->instance,
      .task = task,
      .begin = time,
      .end = time,
      .replaces = follows ? *open_of(f, access->buffer, access->instance - 1) - 1 : -1};
  *open = f->out->count;
}

/* In a ring, an instance lasts at least as long as those before it. */
static void wait_for_earlier(const finder *f, int32_t buffer) {
  int32_t latest = 0;
  for (int32_t i = 0; i < f->accesses->instance_count; i++) {
    const int32_t own = *open_of(f, buffer, i) - 1;
    if (own < 0) continue;
    gp_lifetime *life = &f->out->list[own];
    if (life->end < latest) life->end = latest;
    latest = life->end;
  }
}

/* An instance takes the place of another one only if that one is no longer read. */
static void settle_replaced(gp_lifetimes *out) {
  for (int32_t i = 0; i < out->count; i++) {
    gp_lifetime *life = &out->list[i];
    if (life->replaces >= 0 && out->list[life->replaces].end > life->begin) life->replaces = -1;
  }
}

gp_status gp_lifetimes_find(const gp_access_list *accesses, gp_lifetimes *lifetimes) {
  finder f = {.accesses = accesses, .out = lifetimes};
  const int32_t tasks = accesses->task_count, total = accesses->first[tasks];
  size_t cells = (size_t)accesses->buffer_count * (size_t)accesses->instance_count;
  *lifetimes = (gp_lifetimes){.time_count = tasks ? accesses->time[tasks - 1] + 1 : 0};
  GP_TRY(gp_alloc_array((size_t)total + 1, sizeof(gp_lifetime), (void **)&lifetimes->list));
  gp_status status = gp_alloc_array(cells + 1, sizeof(int32_t), (void **)&f.open);
  if (status) return gp_lifetimes_free(lifetimes), status;
  for (int32_t t = 0; t < tasks; t++)
    for (int32_t a = accesses->first[t]; a < accesses->first[t + 1]; a++)
      note(&f, t, &accesses->accesses[a]);
  for (int32_t b = 0; b < accesses->buffer_count; b++)
    if (accesses->buffers[b].in_order) wait_for_earlier(&f, b);
  settle_replaced(lifetimes);
  gp_free(f.open);
  return GP_OK;
}

void gp_lifetimes_free(gp_lifetimes *lifetimes) {
  gp_free(lifetimes->list);
  *lifetimes = (gp_lifetimes){0};
}

/* ---- walking ------------------------------------------------------------------------------- */

typedef struct walker {
  const gp_lifetimes *lifetimes;
  const gp_lifetime_watch *watch;
  int32_t *ending; /* per time: a lifetime that ends then, + 1; 0: none */
  int32_t *next;   /* per lifetime: another one that ends then, + 1 */
  bool *told;      /* per lifetime: its end was told */
} walker;

static void tell_end(const walker *w, int32_t i) {
  if (w->told[i]) return;
  w->told[i] = true;
  w->watch->dead(w->watch->context, &w->lifetimes->list[i]);
}

static gp_status walk(const walker *w) {
  const gp_lifetimes *l = w->lifetimes;
  int32_t i = 0;
  for (int32_t time = 0; time < l->time_count; time++) {
    for (; i < l->count && l->list[i].begin == time; i++) {
      if (l->list[i].replaces >= 0) tell_end(w, l->list[i].replaces);
      GP_TRY(w->watch->born(w->watch->context, &l->list[i]));
    }
    for (int32_t e = w->ending[time]; e; e = w->next[e - 1]) tell_end(w, e - 1);
  }
  return GP_OK;
}

gp_status gp_lifetimes_walk(const gp_lifetimes *lifetimes, const gp_lifetime_watch *watch) {
  walker w = {.lifetimes = lifetimes, .watch = watch};
  size_t count = (size_t)lifetimes->count, times = (size_t)lifetimes->time_count;
  GP_TRY(gp_alloc_array(count + times + 1, sizeof(int32_t), (void **)&w.ending));
  w.next = w.ending + times;
  gp_status status = gp_alloc_array(count + 1, sizeof(bool), (void **)&w.told);
  for (int32_t i = 0; !status && i < lifetimes->count; i++) {
    int32_t *ending = &w.ending[lifetimes->list[i].end];
    w.next[i] = *ending;
    *ending = i + 1;
  }
  if (!status) status = walk(&w);
  gp_free(w.ending);
  gp_free(w.told);
  return status;
}

gp_status gp_access_watch(const gp_access_list *accesses, const gp_lifetime_watch *watch) {
  gp_lifetimes lifetimes;
  GP_TRY(gp_lifetimes_find(accesses, &lifetimes));
  gp_status status = gp_lifetimes_walk(&lifetimes, watch);
  gp_lifetimes_free(&lifetimes);
  return status;
}

gp_status gp_schedule_watch(const gp_schedule *schedule, int32_t device, unsigned classes,
                            gp_access_list *list, const gp_lifetime_watch *watch) {
  GP_TRY(gp_schedule_touches(schedule, device, classes, list));
  gp_status status = gp_access_watch(list, watch);
  gp_access_list_free(list);
  return status;
}
