/* plan/schedule.c - the text form of schedules: "0F0,0F1,0B0", one string per device. */
#include "plan/schedule.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* One table for reading and printing. */
char gp_act_letter(gp_act act) {
#define LETTER(name, letter) letter,
  static const char letters[] = {GP_ACT_LIST(LETTER)};
#undef LETTER
  return letters[act];
}

/* Letters are the ones of torch.distributed.pipelining's CSV. */
static bool find_act(char letter, gp_act *act) {
  for (int a = 0; a < GP_ACT_COUNT; a++)
    if (gp_act_letter((gp_act)a) == letter) return *act = (gp_act)a, true;
  return false;
}

/* ---- parsing ------------------------------------------------------------------------------- */

/* Digits into a number below a million; false where there are none. */
static bool read_number(const char **text, int32_t *number) {
  int32_t n = 0;
  if (!isdigit((unsigned char)**text)) return false;
  for (; isdigit((unsigned char)**text); ++*text) {
    if (n > 99999) return false;
    n = 10 * n + (**text - '0');
  }
  *number = n;
  return true;
}

/* "2F0": stage, op, micro-batch. */
static gp_status read_action(const char **text, int32_t device, gp_action *action) {
  const char *start = *text;
  if (read_number(text, &action->stage) && find_act(**text, &action->op)) {
    ++*text;
    if (read_number(text, &action->micro) && (**text == ',' || **text == 0)) return GP_OK;
  }
  size_t length = strcspn(start, ","), shown = length < 40 ? length : 40;
  return gp_fail(GP_ESCHEDULE, "schedule, device %d: '%.*s' is not an action, \"2F0\" wanted",
                 (int)device, (int)shown, start);
}

/* Commas and one: checked text, so no empty cells. */
static int32_t count_actions(const char *row) {
  int32_t n = *row != 0;
  for (; *row; row++) n += *row == ',';
  return n;
}

/* The number of micro-batches is the largest one seen. */
static gp_status read_row(const char *row, int32_t device, gp_schedule *s) {
  for (int32_t at = s->first[device]; at < s->first[device + 1]; at++) {
    gp_action *action = &s->actions[at];
    s->fault = (gp_schedule_fault){"text", device, at - s->first[device]};
    GP_TRY(read_action(&row, device, action));
    if (action->micro >= s->micro_count) s->micro_count = action->micro + 1;
    if (action->stage >= s->stage_count)
      return gp_fail(GP_ESCHEDULE,
                     "schedule, device %d: stage %d of %d%c%d has no placement (%d stages)",
                     (int)device, (int)action->stage, (int)action->stage, gp_act_letter(action->op),
                     (int)action->micro, (int)s->stage_count);
    if (*row == ',') row++;
  }
  return GP_OK;
}

/* Placement is checked here, the order in verify.c. */
static gp_status fill(const gp_schedule_text *text, gp_schedule *s) {
  size_t stages = (size_t)text->stage_count, devices = (size_t)text->device_count;
  GP_TRY(gp_alloc_array(stages, sizeof(int32_t), (void **)&s->placement));
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&s->first));
  for (size_t i = 0; i < stages; i++) {
    s->placement[i] = text->placement[i];
    s->fault = (gp_schedule_fault){"placement", s->placement[i], -1};
    if (s->placement[i] < 0 || s->placement[i] >= text->device_count)
      return gp_fail(GP_ESCHEDULE, "schedule: stage %zu is placed on device %d, 0..%d wanted", i,
                     (int)s->placement[i], text->device_count - 1);
  }
  for (size_t d = 0; d < devices; d++) s->first[d + 1] = s->first[d] + count_actions(text->rows[d]);
  GP_TRY(gp_alloc_array((size_t)s->first[devices] + 1, sizeof(gp_action), (void **)&s->actions));
  for (int32_t d = 0; d < text->device_count; d++) GP_TRY(read_row(text->rows[d], d, s));
  return GP_OK;
}

/* What is not a schedule is never returned: everybody behind may rely on it. */
gp_status gp_schedule_parse(const gp_schedule_text *text, gp_schedule **schedule,
                            gp_schedule_fault *fault) {
  gp_schedule *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->device_count = text->device_count;
  made->stage_count = text->stage_count;
  gp_status status = fill(text, made);
  if (!status) status = gp_schedule_check(made);
  if (status && fault) *fault = made->fault;
  if (status) return gp_schedule_free(made), status;
  *schedule = made;
  return GP_OK;
}

/* Also of one that was read half. */
void gp_schedule_free(gp_schedule *schedule) {
  if (!schedule) return;
  gp_free(schedule->placement);
  gp_free(schedule->actions);
  gp_free(schedule->first);
  gp_free(schedule->order);
  gp_free(schedule);
}
