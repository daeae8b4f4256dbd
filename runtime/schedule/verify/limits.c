/* schedule/verify/limits.c - does a schedule keep within what it may take? Memory, versions,
 * buffers, channels. */
#include "base/memory.h"
#include "schedule/verify/live.h"

typedef struct watch {
  const gp_verify *v;
  const gp_schedule_limits *limits;
  int32_t *live;   /* per device */
  int32_t *buffer; /* [stage][copy][buffers]: position + 1 of the F whose activation is there */
} watch;

/* ---- activations --------------------------------------------------------------------------- */

/* An activation comes to life on the device of its F. */
static gp_status live_born(void *context, int32_t a) {
  watch *w = context;
  int32_t device = gp_action_device(w->v->s, a), limit = w->limits->peak_live[device];
  if (++w->live[device] <= limit || limit < 0) return GP_OK;
  return gp_verify_fail(w->v, a, "liveness",
                        "is the activation too many on device %d: %d are alive, %d allowed",
                        (int)device, (int)w->live[device], (int)limit);
}

/* Its last reader is through. */
static void live_dead(void *context, int32_t a) {
  watch *w = context;
  w->live[gp_action_device(w->v->s, a)]--;
}

/* Without a limit there is nothing to count. */
static gp_status check_live(watch *w) {
  if (!w->limits->peak_live) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)w->v->s->device_count, sizeof(int32_t), (void **)&w->live));
  return gp_verify_lives(w->v, &(gp_live_watcher){w, live_born, live_dead});
}

/* ---- buffers ------------------------------------------------------------------------------- */

/* Micro-batches take the buffers of a holder in turn. */
static int32_t *buffer_of(const watch *w, int32_t a) {
  size_t buffers = (size_t)w->limits->buffers;
  return &w->buffer[(size_t)gp_action_holder(w->v->s, a) * buffers +
                    (size_t)w->v->s->actions[a].micro % buffers];
}

/* The buffer holds the stage's input too, so it is taken from F on, whether R makes the rest again
 * or not. */
static gp_status buffer_born(void *context, int32_t a) {
  watch *w = context;
  char one[GP_ACTION_TEXT];
  if (w->v->s->actions[a].op != GP_ACT_F) return GP_OK;
  int32_t *holder = buffer_of(w, a);
  if (*holder)
    return gp_verify_fail(w->v, a, "buffers", "takes buffer %d of %d, in which %s still is",
                          (int)(w->v->s->actions[a].micro % w->limits->buffers),
                          (int)w->limits->buffers, gp_verify_name(w->v, *holder - 1, one));
  *holder = a + 1;
  return GP_OK;
}

/* Forward passes alone give it back at once. */
static void buffer_dead(void *context, int32_t a) {
  watch *w = context;
  if (w->v->s->actions[a].op != GP_ACT_F || w->v->forward_only) *buffer_of(w, a) = 0;
}

static gp_status check_buffers(watch *w) {
  const gp_schedule *s = w->v->s;
  size_t count, holders = (size_t)s->stage_count * (size_t)s->copy_count;
  if (w->limits->buffers < 0) return GP_OK;
  if (w->limits->buffers == 0)
    return gp_verify_fail(w->v, 0, "buffers", "takes a buffer, but there are none");
  GP_TRY(gp_size_mul(holders, (size_t)w->limits->buffers, &count));
  GP_TRY(gp_alloc_array(count, sizeof(int32_t), (void **)&w->buffer));
  return gp_verify_lives(w->v, &(gp_live_watcher){w, buffer_born, buffer_dead});
}

/* ---- versions and channels ----------------------------------------------------------------- */

/* How many versions of its weights a stage holds at once. */
static gp_status check_versions(const watch *w) {
  const gp_schedule *s = w->v->s;
  int32_t limit = w->limits->versions, over, *live;
  if (limit < 0) return GP_OK;
  if (limit == 0)
    return gp_verify_fail(w->v, 0, "versions", "uses weights, but no version of them may be alive");
  GP_TRY(
      gp_alloc_array((size_t)s->stage_count * (size_t)s->copy_count, sizeof *live, (void **)&live));
  gp_status status = gp_verify_stash(s, limit, live, &over);
  gp_free(live);
  if (status || over < 0) return status;
  return gp_verify_fail(
      w->v, over, "versions",
      "makes version %d of stage %d while %d older ones are still used: %d may be "
      "alive at once",
      (int)s->actions[over].micro + 1, (int)s->actions[over].stage, (int)limit, (int)limit);
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
  gp_free(w.live);
  gp_free(w.buffer);
  return status;
}
