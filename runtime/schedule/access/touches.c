/* schedule/access/touches.c - what the actions of a schedule touch.
 *
 * F makes the activation of its (stage, micro-batch), R makes it again, backward actions read it:
 * what F made lives until its last reader, or ends with F if R makes it again. What I leaves for W
 * lives from the one to the other. An update makes the
 * next version of its stage's weights in the place of the newest one, unless that is still read.
 * Source of the versions: PipeDream (Narayanan et al. 2019), weight stashing.
 */
#include "base/memory.h"
#include "schedule/access/access.h"
#include "schedule/access/away.h"
#include "schedule/access/tally.h"
#include "schedule/edges.h"

typedef struct toucher {
  const gp_schedule *s;
  gp_access_list *list;
  int32_t *buffer[GP_BUFFER_COUNT]; /* per class that is asked for and stage held: its buffer */
  int32_t *newest;                  /* per stage: version of its weights, or -1 before the first */
  gp_away_list away;                /* NULL: it was not asked for */
} toucher;

/* ---- buffers ------------------------------------------------------------------------------- */

static const gp_buffer_class classes_here[] = {
    GP_BUFFER_INPUT,     GP_BUFFER_ACTIVATION, GP_BUFFER_HEAD,   GP_BUFFER_AWAY,
    GP_BUFFER_AWAY_HEAD, GP_BUFFER_CARRIED,    GP_BUFFER_VERSION};
enum { CLASSES = sizeof classes_here / sizeof *classes_here };

/* Number a buffer of each class for each stage of the device. */
static int32_t number_buffers(toucher *t, int32_t device, gp_buffer *buffers) {
  const gp_stage_list held = gp_schedule_stages(t->s, device);
  int32_t count = 0;
  for (int32_t i = 0; i < held.count; i++)
    for (int k = 0; k < CLASSES; k++) {
      const gp_buffer_class class = classes_here[k];
      if (!t->buffer[class]) continue;
      t->buffer[class][held.stages[i]] = count;
      if (buffers) buffers[count] = (gp_buffer){.class = class, .stage = held.stages[i]};
      count++;
    }
  return count;
}

static gp_status make_room(toucher *t, unsigned classes, int32_t **memory) {
  size_t stages = (size_t)t->s->stage_count;
  GP_TRY(gp_alloc_array((CLASSES + 1) * stages, sizeof(int32_t), (void **)memory));
  t->newest = *memory;
  for (int k = 0; k < CLASSES; k++)
    if (classes & 1u << classes_here[k])
      t->buffer[classes_here[k]] = *memory + (size_t)(k + 1) * stages;
  for (size_t stage = 0; stage < stages; stage++) t->newest[stage] = -1;
  return GP_OK;
}

/* ---- actions ------------------------------------------------------------------------------- */

static gp_status touch(toucher *t, gp_buffer_class class, const gp_action *x, gp_access_mode mode) {
  if (!t->buffer[class]) return GP_OK;
  return gp_access_list_add(t->list, t->buffer[class][x->stage], x->micro, mode);
}

static gp_status touch_activation(toucher *t, const gp_action *x) {
  static const gp_buffer_class kept[] = {GP_BUFFER_INPUT, GP_BUFFER_ACTIVATION, GP_BUFFER_CARRIED,
                                         GP_BUFFER_HEAD};
  const gp_tally_use use = gp_tally_use_of((gp_act)x->op);
  for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
    const bool makes = use.makes & 1u << kept[k];
    if (makes || use.reads & 1u << kept[k])
      GP_TRY(touch(t, kept[k], x, makes ? GP_ACCESS_WRITE : GP_ACCESS_READ));
  }
  return GP_OK;
}

/* Touch what comes back before an action or has left behind it. */
static gp_status touch_moved(toucher *t, const gp_action *first, int32_t forward,
                             gp_access_mode mode) {
  if (!forward) return GP_OK;
  GP_TRY(touch(t, GP_BUFFER_AWAY, &first[forward - 1], mode));
  return touch(t, GP_BUFFER_AWAY_HEAD, &first[forward - 1], mode);
}

static gp_status touch_away(toucher *t, const gp_action *first, int32_t a) {
  const gp_action *x = &first[a];
  const gp_access_mode mode = x->op == GP_ACT_F ? GP_ACCESS_WRITE : GP_ACCESS_READ;
  if (!t->away.leaves || x->op > GP_ACT_R) return GP_OK;
  GP_TRY(touch_moved(t, first, t->away.fetches[a], GP_ACCESS_WRITE));
  GP_TRY(touch(t, GP_BUFFER_AWAY, x, mode));
  if (x->op != GP_ACT_W) GP_TRY(touch(t, GP_BUFFER_AWAY_HEAD, x, mode));
  return touch_moved(t, first, t->away.leaves[a], GP_ACCESS_READ);
}

/* The first version is there before the first action of its stage. Actions of synchronous schedules
 * name no version, because there is only one. */
static gp_status touch_weights(toucher *t, const gp_action *x) {
  if (!t->buffer[GP_BUFFER_VERSION] || (x->op > GP_ACT_R && x->op != GP_ACT_U)) return GP_OK;
  const int32_t buffer = t->buffer[GP_BUFFER_VERSION][x->stage];
  int32_t *newest = &t->newest[x->stage];
  if (*newest < 0) {
    *newest = 0;
    GP_TRY(gp_access_list_add(t->list, buffer, 0, GP_ACCESS_WRITE));
  }
  if (x->op != GP_ACT_U)
    return x->version < 0 ? GP_OK : gp_access_list_add(t->list, buffer, x->version, GP_ACCESS_READ);
  GP_TRY(gp_access_list_add(t->list, buffer, *newest, GP_ACCESS_READ));
  return gp_access_list_add(t->list, buffer, ++*newest, GP_ACCESS_REPLACE);
}

static gp_status touch_all(toucher *t, int32_t device) {
  const gp_schedule *s = t->s;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    const bool joined = a > s->first[device] && s->actions[a - 1].joined;
    gp_access_list_begin(t->list, joined);
    if (s->actions[a].stage < 0) continue; /* an empty cell */
    GP_TRY(touch_activation(t, &s->actions[a]));
    GP_TRY(touch_away(t, &s->actions[s->first[device]], a - s->first[device]));
    GP_TRY(touch_weights(t, &s->actions[a]));
  }
  return GP_OK;
}

static gp_status fill(toucher *t, int32_t device) {
  const gp_schedule *s = t->s;
  const int32_t count = number_buffers(t, device, NULL);
  gp_buffer *buffers;
  GP_TRY(gp_alloc_array((size_t)count + 1, sizeof *buffers, (void **)&buffers));
  number_buffers(t, device, buffers);
  /* There can be a version for each micro-batch, beside the first. */
  GP_TRY(gp_access_list_new(s->first[device + 1] - s->first[device], s->micro_count + 2, buffers,
                            count, t->list));
  return touch_all(t, device);
}

gp_status gp_schedule_touches(const gp_schedule *schedule, int32_t device, unsigned classes,
                              gp_access_list *list) {
  toucher t = {.s = schedule, .list = list};
  int32_t *memory = NULL;
  *list = (gp_access_list){0};
  gp_status status = make_room(&t, classes, &memory);
  if (!status && classes & 1u << GP_BUFFER_AWAY)
    status = gp_away_list_new(schedule, device, &t.away);
  if (!status) status = fill(&t, device);
  if (status) gp_access_list_free(list);
  gp_away_list_free(&t.away);
  gp_free(memory);
  return status;
}
