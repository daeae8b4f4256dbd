/* schedule/access/held.c - what the devices of a schedule hold at once: activations, slots for
 * them, versions of the weights. */
#include <string.h>

#include "base/memory.h"
#include "schedule/access/held.h"
#include "schedule/access/tally.h"
#include "schedule/edges.h"

/* The index [stage][copy] of a stage on one of its devices. */
static int32_t holder_on(const gp_schedule *s, int32_t stage, int32_t device) {
  return stage * s->copy_count + gp_schedule_copy_on(s, stage, device);
}

/* ---- peaks --------------------------------------------------------------------------------- */

typedef struct peaks {
  const gp_schedule *s;
  int32_t device, live;
  gp_stage_list stages;             /* of the device */
  int32_t *peak;                    /* of the device */
  int32_t *stage_live, *stage_peak; /* [stage][copy] */
} peaks;

static void up(int32_t *live, int32_t *peak) {
  if (++*live > *peak) *peak = *live;
}

static int32_t peak_holder(const peaks *p, gp_tally_lives lives) {
  return holder_on(p->s, p->stages.stages[lives.place], p->device);
}

static void peak_born(void *context, gp_tally_lives lives) {
  peaks *p = context;
  const int32_t holder = peak_holder(p, lives);
  up(&p->live, p->peak);
  up(&p->stage_live[holder], &p->stage_peak[holder]);
}

static void peak_dead(void *context, gp_tally_lives lives) {
  peaks *p = context;
  p->live--;
  p->stage_live[peak_holder(p, lives)]--;
}

static gp_status peaks_of(const gp_schedule *s, uint8_t class, int32_t *per_device,
                          int32_t *per_stage) {
  size_t devices = (size_t)s->device_count,
         holders = (size_t)s->stage_count * (size_t)s->copy_count;
  int32_t *live;
  memset(per_device, 0, devices * sizeof *per_device);
  memset(per_stage, 0, holders * sizeof *per_stage);
  GP_TRY(gp_alloc_array(holders, sizeof *live, (void **)&live));
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && d < s->device_count; d++) {
    peaks p = {.s = s,
               .device = d,
               .stages = gp_schedule_stages(s, d),
               .peak = &per_device[d],
               .stage_live = live,
               .stage_peak = per_stage};
    status = gp_schedule_tally(s, d, &(gp_tally_watch){&p, class, peak_born, peak_dead});
  }
  gp_free(live);
  return status;
}

gp_status gp_schedule_peaks(const gp_schedule *s, int32_t *per_device, int32_t *per_stage) {
  return peaks_of(s, GP_TALLY_ACTIVATION, per_device, per_stage);
}

gp_status gp_schedule_carried(const gp_schedule *s, int32_t *per_device, int32_t *per_stage) {
  return peaks_of(s, GP_TALLY_CARRIED, per_device, per_stage);
}

/* ---- slots --------------------------------------------------------------------------------- */

/* If R makes an activation again, the slot of its second life counts. */
static void note_slots(const gp_schedule *s, const gp_access_list *list,
                       const gp_lifetimes *lifetimes, const int32_t *of_life, int32_t *slot) {
  for (int32_t i = 0; i < lifetimes->count; i++) {
    const gp_lifetime *life = &lifetimes->list[i];
    slot[gp_edges_cell(s, list->buffers[life->buffer].stage, life->instance)] = of_life[i];
  }
}

static gp_status slots_of(const gp_schedule *s, int32_t device, const gp_access_list *list,
                          int32_t *slot, int32_t *count) {
  gp_lifetimes lifetimes;
  int32_t *of_life, *of_buffer;
  GP_TRY(gp_lifetimes_find(list, &lifetimes));
  size_t lives = (size_t)lifetimes.count, buffers = (size_t)list->buffer_count;
  gp_status status = gp_alloc_array(lives + buffers + 1, sizeof *of_life, (void **)&of_life);
  if (!status) {
    of_buffer = of_life + lives;
    status = gp_lifetimes_colour(list, &lifetimes, of_life, of_buffer);
    for (size_t b = 0; b < buffers; b++)
      count[holder_on(s, list->buffers[b].stage, device)] = of_buffer[b];
    note_slots(s, list, &lifetimes, of_life, slot);
    gp_free(of_life);
  }
  gp_lifetimes_free(&lifetimes);
  return status;
}

gp_status gp_schedule_slots(const gp_schedule *s, int32_t *slot, int32_t *count) {
  memset(count, 0, (size_t)s->stage_count * (size_t)s->copy_count * sizeof *count);
  for (int32_t d = 0; d < s->device_count; d++) {
    gp_access_list list;
    GP_TRY(gp_schedule_touches(s, d, 1u << GP_BUFFER_ACTIVATION, &list));
    gp_status status = slots_of(s, d, &list, slot, count);
    gp_access_list_free(&list);
    GP_TRY(status);
  }
  return GP_OK;
}

/* ---- versions ------------------------------------------------------------------------------ */

typedef struct versions {
  const gp_access_list *list;
  int32_t *live, *peak; /* per stage */
  int32_t limit, over;  /* over: task that makes one more than the limit; -1: none so far */
} versions;

static gp_status version_born(void *context, const gp_lifetime *life) {
  versions *v = context;
  const int32_t stage = v->list->buffers[life->buffer].stage;
  up(&v->live[stage], &v->peak[stage]);
  if (v->live[stage] > v->limit && v->over < 0) v->over = life->task;
  return GP_OK;
}

static void version_dead(void *context, const gp_lifetime *life) {
  versions *v = context;
  v->live[v->list->buffers[life->buffer].stage]--;
}

/* A stage without actions on the device holds one version. */
gp_status gp_held_versions(const gp_schedule *s, int32_t device, int32_t limit, int32_t *most,
                           int32_t *over) {
  gp_access_list list;
  versions v = {.list = &list, .peak = most, .limit = limit, .over = -1};
  GP_TRY(gp_alloc_array((size_t)s->stage_count, sizeof *v.live, (void **)&v.live));
  for (int32_t stage = 0; stage < s->stage_count; stage++) most[stage] = 1;
  gp_status status = gp_schedule_watch(s, device, 1u << GP_BUFFER_VERSION, &list,
                                       &(gp_lifetime_watch){&v, version_born, version_dead});
  gp_free(v.live);
  *over = v.over < 0 ? -1 : s->first[device] + v.over;
  return status;
}

/* Actions of a synchronous schedule name no version, because there is only one. */
gp_status gp_schedule_versions(const gp_schedule *s, int32_t *live) {
  int32_t *most, over;
  for (int32_t h = 0; h < s->stage_count * s->copy_count; h++) live[h] = 1;
  if (!s->batch) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)s->stage_count, sizeof *most, (void **)&most));
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && d < s->device_count; d++) {
    status = gp_held_versions(s, d, INT32_MAX, most, &over);
    const gp_stage_list held = gp_schedule_stages(s, d);
    for (int32_t i = 0; !status && i < held.count; i++)
      live[holder_on(s, held.stages[i], d)] = most[held.stages[i]];
  }
  gp_free(most);
  return status;
}
