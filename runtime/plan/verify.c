/* plan/verify.c - is this list of actions a pipeline step? Checked before anything runs.
 *
 * The dependencies are the canonical ones: F needs the F of the stage before, B (or I) needs its own F
 * and the B (or I) of the stage after, W needs its I. A skip connection or a frozen stage needs no more
 * than these, so the topological order found here serves every model.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "plan/schedule.h"

enum { GRID_TEXT = 2000 };

typedef struct checker {
  gp_schedule *s;
  int32_t *at[GP_ACT_COUNT]; /* per op: index + 1 of the action (stage, micro); 0: missing */
  bool forward_only;
} checker;

static int32_t cell(const checker *c, int32_t stage, int32_t micro) {
  return stage * c->s->micro_count + micro;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Append one row of the grid, the faulty action in >brackets<, as far as it fits. */
static void print_row(const gp_schedule *s, int32_t device, int32_t fault, char *text) {
  size_t used = strlen(text);
  used += (size_t)snprintf(text + used, GRID_TEXT - used, "\n  device %d:", (int)device);
  for (int32_t a = s->first[device]; a < s->first[device + 1] && used + 24 < GRID_TEXT; a++) {
    const gp_action *x = &s->actions[a];
    const char *format = a == fault ? " >%d%c%d<" : " %d%c%d";
    used += (size_t)snprintf(text + used, GRID_TEXT - used, format, (int)x->stage,
                             gp_act_letter(x->op), (int)x->micro);
  }
}

/* Fail with "schedule: what" and the grid around the action `fault`. */
static gp_status fault_at(const checker *c, int32_t fault, const char *what) {
  char grid[GRID_TEXT] = "";
  const gp_action *x = &c->s->actions[fault];
  for (int32_t d = 0; d < c->s->device_count && d < 16; d++) print_row(c->s, d, fault, grid);
  return gp_fail(GP_ESCHEDULE, "schedule: %d%c%d %s%s", (int)x->stage, gp_act_letter(x->op),
                 (int)x->micro, what, grid);
}

/* ---- checks -------------------------------------------------------------------------------- */

/* Unique, and on the device that its stage is placed on. */
static gp_status collect(checker *c) {
  gp_schedule *s = c->s;
  for (int32_t d = 0; d < s->device_count; d++) {
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) {
      const gp_action *x = &s->actions[a];
      if (s->placement[x->stage] != d) return fault_at(c, a, "is not on the device of its stage");
      if (x->op > GP_ACT_W) return fault_at(c, a, "is not a compute action: F, B, I or W wanted");
      int32_t *seen = &c->at[x->op][cell(c, x->stage, x->micro)];
      if (*seen) return fault_at(c, a, "appears twice");
      *seen = a + 1;
      c->forward_only &= x->op == GP_ACT_F;
    }
  }
  return GP_OK;
}

/* Every stage runs every micro-batch, forward and (B, or I and W) backward. */
static gp_status complete(const checker *c) {
  const gp_schedule *s = c->s;
  for (int32_t stage = 0; stage < s->stage_count; stage++)
    for (int32_t micro = 0; micro < s->micro_count; micro++) {
      int32_t i = cell(c, stage, micro);
      bool split = c->at[GP_ACT_I][i] && c->at[GP_ACT_W][i] && !c->at[GP_ACT_B][i];
      bool whole = c->at[GP_ACT_B][i] && !c->at[GP_ACT_I][i] && !c->at[GP_ACT_W][i];
      if (!c->at[GP_ACT_F][i])
        return gp_fail(GP_ESCHEDULE, "schedule: %dF%d is missing", (int)stage, (int)micro);
      if (!c->forward_only && !split && !whole)
        return gp_fail(
            GP_ESCHEDULE,
            "schedule: the backward pass of stage %d, micro-batch %d is not B or I and W",
            (int)stage, (int)micro);
    }
  return GP_OK;
}

/* Index + 1 of the action that makes the input gradient of (stage, micro). */
static int32_t backward_of(const checker *c, int32_t stage, int32_t micro) {
  int32_t i = cell(c, stage, micro);
  return c->at[GP_ACT_B][i] ? c->at[GP_ACT_B][i] : c->at[GP_ACT_I][i];
}

/* Actions that must be done before action a: at most two of them; returns how many. */
static int needs(const checker *c, int32_t a, int32_t need[2]) {
  const gp_action *x = &c->s->actions[a];
  int n = 0;
  if (x->op == GP_ACT_F) {
    if (x->stage > 0) need[n++] = c->at[GP_ACT_F][cell(c, x->stage - 1, x->micro)] - 1;
  } else if (x->op == GP_ACT_W) {
    need[n++] = c->at[GP_ACT_I][cell(c, x->stage, x->micro)] - 1;
  } else {
    need[n++] = c->at[GP_ACT_F][cell(c, x->stage, x->micro)] - 1;
    if (x->stage + 1 < c->s->stage_count) need[n++] = backward_of(c, x->stage + 1, x->micro) - 1;
  }
  return n;
}

static bool ready(const checker *c, int32_t a) {
  int32_t need[2];
  for (int n = needs(c, a, need), i = 0; i < n; i++)
    if (c->s->order[need[i]] < 0) return false;
  return true;
}

/* Take ready actions, device by device in rounds; whoever is left waits in a circle. */
static gp_status sort(checker *c, int32_t *next) {
  gp_schedule *s = c->s;
  int32_t done = 0, total = s->first[s->device_count];
  for (int32_t a = 0; a < total; a++) s->order[a] = -1;
  for (int32_t d = 0; d < s->device_count; d++) next[d] = s->first[d];
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t d = 0; d < s->device_count; d++)
      if (next[d] < s->first[d + 1] && ready(c, next[d])) {
        s->order[next[d]++] = done++;
        moved = true;
      }
  }
  for (int32_t d = 0; done < total && d < s->device_count; d++)
    if (next[d] < s->first[d + 1])
      return fault_at(c, next[d], "waits for an action that can never run before it (a cycle)");
  return GP_OK;
}

static gp_status check(checker *c) {
  gp_schedule *s = c->s;
  int32_t *next;
  size_t cells = (size_t)s->stage_count * (size_t)s->micro_count + 1;
  for (int a = 0; a < GP_ACT_COUNT; a++)
    GP_TRY(gp_alloc_array(cells, sizeof(int32_t), (void **)&c->at[a]));
  GP_TRY(collect(c));
  GP_TRY(complete(c));
  GP_TRY(
      gp_alloc_array((size_t)s->first[s->device_count] + 1, sizeof(int32_t), (void **)&s->order));
  GP_TRY(gp_alloc_array((size_t)s->device_count, sizeof(int32_t), (void **)&next));
  gp_status status = sort(c, next);
  gp_free(next);
  return status;
}

gp_status gp_schedule_check(gp_schedule *schedule) {
  checker c = {.s = schedule, .forward_only = true};
  if (schedule->stage_count < 1 || schedule->micro_count < 1)
    return gp_fail(GP_ESCHEDULE,
                   "schedule: %d stages and %d micro-batches, at least one of each wanted",
                   (int)schedule->stage_count, (int)schedule->micro_count);
  gp_status status = check(&c);
  for (int a = 0; a < GP_ACT_COUNT; a++) gp_free(c.at[a]);
  return status;
}
