/* schedule/verify/limits.c - does a schedule keep within limits of activations, versions, buffers
 * and channels? */
#include "base/memory.h"
#include "schedule/access/held.h"
#include "schedule/verify/verify.h"

typedef struct watch {
  const gp_verify *v;
  const gp_schedule_limits *limits;
  const gp_access_list *list; /* of the device at hand */
  int32_t device, live;
  int32_t *buffer; /* [stage][buffers]: position + 1 of the F whose activation is there */
} watch;

static int32_t position_of(const watch *w, const gp_lifetime *life) {
  return w->v->s->first[w->device] + life->task;
}

/* Watch what each device holds of a class. */
static gp_status watch_all(watch *w, gp_buffer_class class, const gp_lifetime_watch *watcher) {
  gp_access_list list;
  w->list = &list;
  for (w->device = 0; w->device < w->v->s->device_count; w->device++)
    GP_TRY(gp_schedule_watch(w->v->s, w->device, 1u << class, &list, watcher));
  return GP_OK;
}

/* ---- activations --------------------------------------------------------------------------- */

static gp_status live_born(void *context, const gp_lifetime *life) {
  watch *w = context;
  int32_t limit = w->limits->peak_live[w->device];
  if (++w->live <= limit || limit < 0) return GP_OK;
  return gp_verify_fail(w->v, position_of(w, life), "liveness",
                        "is the activation too many on device %d: %d are alive, %d allowed",
                        (int)w->device, (int)w->live, (int)limit);
}

static void live_dead(void *context, const gp_lifetime *life) {
  (void)life;
  ((watch *)context)->live--;
}

static gp_status check_live(watch *w) {
  if (!w->limits->peak_live) return GP_OK;
  return watch_all(w, GP_BUFFER_ACTIVATION, &(gp_lifetime_watch){w, live_born, live_dead});
}

/* ---- buffers ------------------------------------------------------------------------------- */

/* Micro-batches take the buffers of a stage in turn. */
static int32_t *buffer_of(const watch *w, const gp_lifetime *life) {
  size_t buffers = (size_t)w->limits->buffers;
  return &w->buffer[(size_t)w->list->buffers[life->buffer].stage * buffers +
                    (size_t)life->instance % buffers];
}

/* A buffer holds the stage's input too, so it is taken from F on even if R makes the rest again. */
static gp_status buffer_born(void *context, const gp_lifetime *life) {
  watch *w = context;
  char one[GP_ACTION_TEXT];
  int32_t *taken = buffer_of(w, life), a = position_of(w, life);
  if (*taken)
    return gp_verify_fail(w->v, a, "buffers", "takes buffer %d of %d, in which %s still is",
                          (int)(life->instance % w->limits->buffers), (int)w->limits->buffers,
                          gp_verify_name(w->v, *taken - 1, one));
  *taken = a + 1;
  return GP_OK;
}

static void buffer_dead(void *context, const gp_lifetime *life) { *buffer_of(context, life) = 0; }

static gp_status check_buffers(watch *w) {
  size_t count;
  if (w->limits->buffers < 0) return GP_OK;
  if (w->limits->buffers == 0)
    return gp_verify_fail(w->v, 0, "buffers", "takes a buffer, but there are none");
  GP_TRY(gp_size_mul((size_t)w->v->s->stage_count, (size_t)w->limits->buffers, &count));
  GP_TRY(gp_alloc_array(count, sizeof(int32_t), (void **)&w->buffer));
  return watch_all(w, GP_BUFFER_INPUT, &(gp_lifetime_watch){w, buffer_born, buffer_dead});
}

/* ---- versions and channels ----------------------------------------------------------------- */

static gp_status fail_versions(const watch *w, int32_t a) {
  const gp_action *x = &w->v->s->actions[a];
  return gp_verify_fail(
      w->v, a, "versions",
      "makes version %d of stage %d while %d older ones are still used: %d may be "
      "alive at once",
      (int)x->micro + 1, (int)x->stage, (int)w->limits->versions, (int)w->limits->versions);
}

/* Check how many versions of its weights a stage holds at once. */
static gp_status check_versions(const watch *w) {
  const gp_schedule *s = w->v->s;
  int32_t limit = w->limits->versions, over = -1, *most;
  if (limit < 0) return GP_OK;
  if (limit == 0)
    return gp_verify_fail(w->v, 0, "versions", "uses weights, but no version of them may be alive");
  GP_TRY(gp_alloc_array((size_t)s->stage_count, sizeof *most, (void **)&most));
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && over < 0 && d < s->device_count; d++)
    status = gp_held_versions(s, d, limit, most, &over);
  gp_free(most);
  return status || over < 0 ? status : fail_versions(w, over);
}

static gp_status check_capacity(const watch *w) {
  int32_t makespan, capacity = w->limits->capacity;
  if (capacity < 0) return GP_OK;
  return gp_verify_channels(w->v, capacity, true, &makespan);
}

static gp_status check_all(watch *w) {
  GP_TRY(check_live(w));
  GP_TRY(check_buffers(w));
  GP_TRY(check_versions(w));
  return check_capacity(w);
}

gp_status gp_schedule_limit(const gp_schedule *s, const gp_schedule_limits *limits,
                            gp_schedule_fault *fault) {
  gp_verify v = {.s = s, .fault = fault, .order = s->order};
  watch w = {.v = &v, .limits = limits};
  gp_status status = gp_verify_index(&v);
  if (!status) status = check_all(&w);
  gp_verify_free(&v);
  gp_free(w.buffer);
  return status;
}
