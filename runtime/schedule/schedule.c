/* schedule/schedule.c - make a schedule of lists of actions and a placement, and verify it. */
#include "schedule/schedule.h"

#include <string.h>

#include "base/memory.h"

bool gp_schedule_holds(const gp_schedule *s, int32_t device, int32_t stage) {
  return gp_schedule_copy_on(s, stage, device) < s->copy_count;
}

int32_t gp_schedule_copy_on(const gp_schedule *s, int32_t stage, int32_t device) {
  const int32_t *at = &s->placement[stage * s->copy_count];
  int32_t copy = 0;
  while (copy < s->copy_count && at[copy] != device) copy++;
  return copy;
}

int gp_schedule_device_count(const gp_schedule *s) { return s->device_count; }
int gp_schedule_stage_count(const gp_schedule *s) { return s->stage_count; }
int gp_schedule_micro_count(const gp_schedule *s) { return s->micro_count; }
int gp_schedule_copy_count(const gp_schedule *s) { return s->copy_count; }

const gp_action *gp_schedule_get(const gp_schedule *s, int device, int *count) {
  *count = s->first[device + 1] - s->first[device];
  return &s->actions[s->first[device]];
}

/* ---- building ------------------------------------------------------------------------------ */

/* Copy the placement; every stage must be on a device that exists. */
static gp_status copy_placement(const gp_schedule_spec *spec, gp_schedule *s) {
  size_t count = (size_t)s->stage_count * (size_t)s->copy_count;
  GP_TRY(gp_alloc_array(count + 1, sizeof(int32_t), (void **)&s->placement));
  for (size_t i = 0; i < count; i++) {
    int32_t device = s->placement[i] = spec->placement[i];
    s->fault = (gp_schedule_fault){"placement", device, -1};
    if (device < 0 || device >= s->device_count)
      return gp_fail(GP_ESCHEDULE, "schedule: stage %zu is placed on device %d, expected 0..%d",
                     i / (size_t)s->copy_count, (int)device, (int)s->device_count - 1);
  }
  return GP_OK;
}

/* List the stages of each device. Of two copies on one device the second adds nothing. */
static gp_status list_stages(gp_schedule *s) {
  const size_t devices = (size_t)s->device_count,
               holders = (size_t)s->stage_count * (size_t)s->copy_count;
  GP_TRY(gp_alloc_array(devices + 2, sizeof(int32_t), (void **)&s->held_first));
  GP_TRY(gp_alloc_array(holders + 1, sizeof(int32_t), (void **)&s->held));
  int32_t *next = s->held_first + 1; /* of a device; its first one once all are counted */
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t h = 0; h < (int32_t)holders; h++) {
      const int32_t stage = h / s->copy_count, device = s->placement[h];
      if (gp_schedule_copy_on(s, stage, device) != h % s->copy_count) continue;
      if (pass) s->held[next[device]] = stage;
      next[pass ? device : device + 1]++;
    }
    for (int32_t d = 0; !pass && d < s->device_count; d++) next[d + 1] += next[d];
  }
  return GP_OK;
}

/* The largest number of a stage, micro-batch or update, so that indices made of them stay far from
 * overflow. */
enum { LARGEST = 9999999 };

/* Counts micro-batches; the number of an update is not one. */
static void count_micros(gp_schedule *s, const gp_action *action) {
  if (action->op != GP_ACT_U && action->micro >= s->micro_count) s->micro_count = action->micro + 1;
}

/* Check the numbers of an action, and count micro-batches if their number was not given. */
static gp_status note(gp_schedule *s, const gp_action *action, int32_t device, int32_t position) {
  char text[GP_ACTION_TEXT];
  s->fault = (gp_schedule_fault){"text", device, position};
  if (action->op >= GP_ACT_COUNT || action->micro > LARGEST || action->version > LARGEST)
    return gp_fail(GP_ESCHEDULE,
                   "schedule, device %d: action %d is none: op %d, expected numbers to %d",
                   (int)device, (int)position, (int)action->op, (int)LARGEST);
  if (action->op == GP_ACT_IDLE) return GP_OK;
  if (!s->micros_given) count_micros(s, action);
  if (action->stage >= 0 && action->stage < s->stage_count) return GP_OK;
  return gp_fail(GP_ESCHEDULE, "schedule, device %d: stage %d of %s has no placement (%d stages)",
                 (int)device, (int)action->stage, gp_action_print(action, text),
                 (int)s->stage_count);
}

/* Copy the rows into one list, device after device. */
static gp_status copy_rows(const gp_rows *rows, gp_schedule *s) {
  int32_t devices = s->device_count, total = 0;
  GP_TRY(gp_alloc_array((size_t)devices + 1, sizeof(int32_t), (void **)&s->first));
  for (int32_t d = 0; d < devices; d++) {
    int count;
    gp_rows_get(rows, d, &count);
    if (count > INT32_MAX - total) return gp_fail(GP_ERANGE, "schedule: too many actions");
    s->first[d + 1] = total += count;
  }
  GP_TRY(gp_alloc_array((size_t)total + 1, sizeof(gp_action), (void **)&s->actions));
  for (int32_t d = 0; d < devices; d++) {
    int count;
    const gp_action *actions = gp_rows_get(rows, d, &count);
    if (count) memcpy(&s->actions[s->first[d]], actions, (size_t)count * sizeof *actions);
    for (int32_t i = 0; i < count; i++) GP_TRY(note(s, &actions[i], d, i));
  }
  return GP_OK;
}

/* Every later step relies on a verified schedule, so a faulty one is never returned. */
static int replicas_of(const gp_schedule_spec *spec) {
  return spec->replicas > 1 ? spec->replicas : 1;
}

static gp_status check_spec(const gp_schedule_spec *spec) {
  const int replicas = replicas_of(spec), copies = spec->copy_count / replicas;
  if (copies < 1 || copies > 2 || copies * replicas != spec->copy_count || spec->batch < 0 ||
      spec->micro_count < 0)
    return gp_fail(GP_EINVAL,
                   "schedule: %d devices a stage in %d replicas, expected 1 or 2 in each; %d "
                   "micro-batches an update",
                   spec->copy_count, replicas, spec->batch);
  if (replicas == 1) return GP_OK;
  if (spec->replica_micros > 0 && spec->batch <= (int64_t)replicas * spec->replica_micros)
    return GP_OK;
  return gp_fail(GP_EINVAL,
                 "schedule: %d replicas of %d micro-batches, %d an update: expected at least one "
                 "micro-batch each, and no update of more than all of them",
                 replicas, spec->replica_micros, spec->batch);
}

gp_status gp_schedule_new(const gp_schedule_spec *spec, gp_schedule **schedule,
                          gp_schedule_fault *fault) {
  gp_schedule *made;
  GP_TRY(check_spec(spec));
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->device_count = gp_rows_device_count(spec->rows);
  made->stage_count = spec->stage_count;
  made->copy_count = spec->copy_count;
  made->replicas = replicas_of(spec);
  made->replica_micros = made->replicas > 1 ? spec->replica_micros : 0;
  made->batch = spec->batch;
  made->micro_count = spec->micro_count;
  made->micros_given = spec->micro_count > 0;
  gp_status status = copy_placement(spec, made);
  if (!status) status = list_stages(made);
  if (!status) status = copy_rows(spec->rows, made);
  if (!status) status = gp_schedule_check(made);
  if (status && fault) *fault = made->fault;
  if (status) return gp_schedule_free(made), status;
  *schedule = made;
  return GP_OK;
}

gp_status gp_schedule_like(const gp_schedule *schedule, gp_schedule **like) {
  const size_t holders = (size_t)schedule->stage_count * (size_t)schedule->copy_count;
  gp_schedule *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  *made = *schedule;
  made->micros_given = true;
  made->placement = made->first = made->order = made->held_first = made->held = NULL;
  made->actions = NULL;
  gp_status status =
      gp_alloc_array(holders + 1, sizeof *made->placement, (void **)&made->placement);
  if (!status) {
    memcpy(made->placement, schedule->placement, holders * sizeof *made->placement);
    status = list_stages(made);
  }
  if (status) return gp_schedule_free(made), status;
  *like = made;
  return GP_OK;
}

/* The schedule may be one whose making failed half-way. */
void gp_schedule_free(gp_schedule *schedule) {
  if (!schedule) return;
  gp_free(schedule->placement);
  gp_free(schedule->actions);
  gp_free(schedule->first);
  gp_free(schedule->order);
  gp_free(schedule->held_first);
  gp_free(schedule->held);
  gp_free(schedule);
}
