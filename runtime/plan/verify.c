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

enum { GRID_TEXT = 1500, GRID_ROWS = 16, CELL_TEXT = 8 }; /* fits into an error text */

typedef struct checker {
  gp_schedule *s;
  int32_t *at[GP_ACT_COUNT]; /* per op: index + 1 of the action (stage, micro); 0: missing */
  bool forward_only;
} checker;

/* Index of (stage, micro-batch) in the tables. */
static int32_t cell(const checker *c, int32_t stage, int32_t micro) {
  return stage * c->s->micro_count + micro;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* What of the grid is shown: the rows and columns around a device and a position. */
typedef struct window {
  int32_t first_row, rows, first, columns;
} window;

static int32_t around(int32_t at, int32_t size, int32_t limit) {
  int32_t first = at - size / 2;
  if (first > limit - size) first = limit - size;
  return first < 0 ? 0 : first;
}

static window window_at(const gp_schedule *s, int32_t device, int32_t position) {
  window w = {.rows = s->device_count < GRID_ROWS ? s->device_count : GRID_ROWS};
  int32_t longest = 0;
  for (int32_t d = 0; d < s->device_count; d++)
    if (s->first[d + 1] - s->first[d] > longest) longest = s->first[d + 1] - s->first[d];
  w.columns = (GRID_TEXT / w.rows - 24) / CELL_TEXT;
  w.first = around(position, w.columns, longest);
  w.first_row = around(device, w.rows, s->device_count);
  return w;
}

/* Append one row, the faulty action in >brackets<. */
static void print_row(const gp_schedule *s, int32_t device, const window *w, int32_t fault,
                      char *text) {
  size_t used = strlen(text);
  int32_t begin = s->first[device] + w->first, end = begin + w->columns;
  used += (size_t)snprintf(text + used, GRID_TEXT - used, "\n  device %d:%s", (int)device,
                           w->first ? " ..." : "");
  for (int32_t a = begin; a < end && a < s->first[device + 1] && used + 24 < GRID_TEXT; a++) {
    char one[GP_ACTION_TEXT];
    const char *format = a == fault ? " >%s<" : " %s";
    used += (size_t)snprintf(text + used, GRID_TEXT - used, format,
                             gp_action_print(&s->actions[a], one));
  }
  if (end < s->first[device + 1] && used + 5 < GRID_TEXT)
    snprintf(text + used, GRID_TEXT - used, " ...");
}

/* Fail with "schedule: what" and the grid around the position; fault: the marked action, or -1. */
static gp_status show(const gp_schedule *s, int32_t fault, const char *what) {
  char grid[GRID_TEXT] = "";
  window w = window_at(s, s->fault.device, s->fault.position < 0 ? 0 : s->fault.position);
  for (int32_t d = w.first_row; d < w.first_row + w.rows; d++) print_row(s, d, &w, fault, grid);
  return gp_fail(GP_ESCHEDULE, "schedule: %s%s", what, grid);
}

static gp_status fault_at(const checker *c, int32_t fault, const char *check, const char *what) {
  const gp_action *x = &c->s->actions[fault];
  int32_t device = 0;
  char text[480], one[GP_ACTION_TEXT];
  while (c->s->first[device + 1] <= fault) device++;
  c->s->fault = (gp_schedule_fault){check, device, fault - c->s->first[device]};
  snprintf(text, sizeof text, "%s %s", gp_action_print(x, one), what);
  return show(c->s, fault, text);
}

/* ---- checks -------------------------------------------------------------------------------- */

/* Unique, and on the device that its stage is placed on. */
static gp_status collect(checker *c) {
  gp_schedule *s = c->s;
  for (int32_t d = 0; d < s->device_count; d++) {
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) {
      const gp_action *x = &s->actions[a];
      if (x->op == GP_ACT_IDLE) continue;
      if (!gp_schedule_holds(s, d, x->stage))
        return fault_at(c, a, "placement", "is not on the device of its stage");
      if (x->op > GP_ACT_W)
        return fault_at(c, a, "op", "is not a compute action: F, B, I or W wanted");
      int32_t *seen = &c->at[x->op][cell(c, x->stage, x->micro)];
      if (*seen) return fault_at(c, a, "unique", "appears twice");
      *seen = a + 1;
      c->forward_only &= x->op == GP_ACT_F;
    }
  }
  return GP_OK;
}

/* What (stage, micro-batch) lacks, or NULL. */
static const char *lacking(const checker *c, int32_t i) {
  bool b = c->at[GP_ACT_B][i], in = c->at[GP_ACT_I][i], w = c->at[GP_ACT_W][i];
  if (!c->at[GP_ACT_F][i]) return "F is missing";
  if (c->forward_only || (b && !in && !w) || (!b && in && w)) return NULL;
  if (!b && !in && !w) return "its backward pass is missing";
  return b ? "its backward pass is both B and I or W" : "its backward pass is I or W alone";
}

/* Every stage runs every micro-batch, forward and (B, or I and W) backward. */
static gp_status complete(const checker *c) {
  gp_schedule *s = c->s;
  for (int32_t stage = 0; stage < s->stage_count; stage++)
    for (int32_t micro = 0; micro < s->micro_count; micro++) {
      const char *what = lacking(c, cell(c, stage, micro));
      char text[160];
      if (!what) continue;
      s->fault = (gp_schedule_fault){"complete", s->placement[stage * s->copy_count], -1};
      snprintf(text, sizeof text, "stage %d, micro-batch %d: %s", (int)stage, (int)micro, what);
      return show(s, -1, text);
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
  if (x->op == GP_ACT_IDLE) return 0;
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

/* All that it needs stands in the order already. */
static bool ready(const checker *c, int32_t a) {
  int32_t need[2];
  for (int n = needs(c, a, need), i = 0; i < n; i++)
    if (c->s->order[need[i]] < 0) return false;
  return true;
}

/* ---- order --------------------------------------------------------------------------------- */

static int32_t device_of(const checker *c, int32_t a) {
  int32_t low = 0, high = c->s->device_count;
  while (high - low > 1) {
    int32_t middle = (low + high) / 2;
    *(c->s->first[middle] <= a ? &low : &high) = middle;
  }
  return low;
}

/* What a stuck action waits for. */
static int32_t unmet(const checker *c, int32_t a) {
  int32_t need[2] = {a, a};
  int n = needs(c, a, need);
  return n > 1 && c->s->order[need[0]] >= 0 ? need[1] : need[0];
}

static const char *name_of(const checker *c, int32_t a, char text[GP_ACTION_TEXT]) {
  return gp_action_print(&c->s->actions[a], text);
}

/* Every device that is left is stuck at an action that waits for one of a stuck device: follow that
 * into the circle and print it once around. */
static gp_status report_cycle(checker *c, const int32_t *next, int32_t a) {
  char text[400] = "waits for ", one[GP_ACTION_TEXT], two[GP_ACTION_TEXT];
  for (int32_t d = 0; d < c->s->device_count; d++) a = next[device_of(c, unmet(c, a))];
  int32_t at = a, wanted = unmet(c, a);
  if (device_of(c, a) == device_of(c, wanted)) {
    snprintf(text, sizeof text, "waits for %s, which comes after it", name_of(c, wanted, one));
    return fault_at(c, a, "order", text);
  }
  do {
    size_t used = strlen(text);
    wanted = unmet(c, at);
    at = next[device_of(c, wanted)];
    snprintf(text + used, sizeof text - used, at == wanted ? "%s" : "%s behind %s",
             name_of(c, wanted, one), name_of(c, at, two));
    used = strlen(text);
    if (at != a) snprintf(text + used, sizeof text - used, ", which waits for ");
  } while (at != a && strlen(text) + 80 < sizeof text);
  return fault_at(c, a, "cycle", strcat(text, at == a ? ": a cycle" : "...: a cycle"));
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
    if (next[d] < s->first[d + 1]) return report_cycle(c, next, next[d]);
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

/* Cost: linear in the number of actions, but for the rounds over devices that wait. */
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
