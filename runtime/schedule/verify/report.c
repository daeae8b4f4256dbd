/* schedule/verify/report.c - tell a fault: one sentence, and the grid with the action marked.
 *
 * The grid has to fit into an error text, so a large one is cut to the rows and columns around the
 * fault.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "schedule/verify/verify.h"

enum { GRID_TEXT = 1400, SENTENCE_TEXT = 560, GRID_ROWS = 14, CELL_TEXT = 8 };

/* The part of the grid that is shown. */
typedef struct window {
  int32_t first_row, rows, first, columns;
} window;

/* Returns the first of `size` neighbours with `at` near their middle. */
static int32_t around(int32_t at, int32_t size, int32_t limit) {
  int32_t first = at - size / 2;
  if (first > limit - size) first = limit - size;
  return first < 0 ? 0 : first;
}

/* Choose the devices and actions that fit into the text. */
static window window_at(const gp_schedule *s, int32_t device, int32_t position) {
  window w = {.rows = s->device_count < GRID_ROWS ? s->device_count : GRID_ROWS};
  int32_t longest = 0;
  for (int32_t d = 0; d < s->device_count; d++)
    if (s->first[d + 1] - s->first[d] > longest) longest = s->first[d + 1] - s->first[d];
  w.columns = (GRID_TEXT / (w.rows + 1) - 24) / CELL_TEXT;
  w.first = around(position, w.columns, longest);
  w.first_row = around(device, w.rows, s->device_count);
  return w;
}

/* A text under construction; what no longer fits is left out. */
typedef struct page {
  char *text;
  size_t used;
} page;

static void put(page *p, const char *format, ...) GP_PRINTF(2, 3);
static void put(page *p, const char *format, ...) {
  char piece[GP_ACTION_TEXT + 32];
  va_list args;
  va_start(args, format);
  vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  size_t length = strlen(piece);
  if (p->used + length >= GRID_TEXT) return;
  memcpy(p->text + p->used, piece, length + 1);
  p->used += length;
}

/* Put one cell: pairs in parentheses, the fault in >brackets<. Returns where the fault's letters
 * begin. */
static size_t put_cell(const gp_schedule *s, page *p, int32_t a, bool inside, bool fault) {
  char one[GP_ACTION_TEXT];
  const gp_action *x = &s->actions[a];
  put(p, "%s%s", inside ? ";" : " ", x->joined && !inside ? "(" : "");
  size_t at = p->used + 1;
  put(p, fault ? ">%s<" : "%s", x->op == GP_ACT_IDLE ? "." : gp_action_print(x, one));
  if (inside && !x->joined) put(p, ")");
  return at;
}

/* Put one row, and below it an arrow to the fault. */
static void put_row(const gp_schedule *s, page *p, int32_t device, const window *w, int32_t fault) {
  int32_t row = s->first[device], end = s->first[device + 1], last = row + w->first + w->columns;
  size_t mark = 0;
  put(p, "\n");
  size_t begin = p->used;
  put(p, "  device %d:%s", (int)device, w->first && w->first < end - row ? " ..." : "");
  for (int32_t a = row + w->first; a < end && a < last; a++) {
    bool inside = a > row + w->first && s->actions[a - 1].joined;
    size_t at = put_cell(s, p, a, inside, a == fault);
    if (a == fault) mark = at - begin;
  }
  if (last < end) put(p, " ...");
  if (!mark) return;
  put(p, "\n");
  for (size_t i = 0; i < mark; i++) put(p, " ");
  put(p, "^");
}

/* Fail with the sentence and the part of the grid around the fault. */
static gp_status show(const gp_verify *v, int32_t fault, const char *sentence) {
  char grid[GRID_TEXT] = "";
  page p = {grid, 0};
  const gp_schedule *s = v->s;
  window w = window_at(s, v->fault->device, v->fault->position < 0 ? 0 : v->fault->position);
  for (int32_t d = w.first_row; d < w.first_row + w.rows; d++) put_row(s, &p, d, &w, fault);
  return gp_fail(GP_ESCHEDULE, "schedule: %s%s", sentence, grid);
}

/* Returns the device in whose row the position is. Its stage may belong to another device, if that
 * is the fault. */
static int32_t row_of(const gp_schedule *s, int32_t position) {
  int32_t low = 0, high = s->device_count;
  while (high - low > 1) {
    int32_t middle = (low + high) / 2;
    *(s->first[middle] <= position ? &low : &high) = middle;
  }
  return low;
}

const char *gp_verify_name(const gp_verify *v, int32_t position, char text[GP_ACTION_TEXT]) {
  return gp_action_print(&v->s->actions[position], text);
}

gp_status gp_verify_fail(const gp_verify *v, int32_t position, const char *check,
                         const char *format, ...) {
  char sentence[SENTENCE_TEXT];
  int32_t device = row_of(v->s, position);
  va_list args;
  gp_verify_name(v, position, sentence);
  strcat(*sentence ? sentence : strcpy(sentence, "an empty cell"), " ");
  size_t used = strlen(sentence);
  va_start(args, format);
  vsnprintf(sentence + used, sizeof sentence - used, format, args);
  va_end(args);
  *v->fault = (gp_schedule_fault){check, device, position - v->s->first[device]};
  return show(v, position, sentence);
}

gp_status gp_verify_fail_device(const gp_verify *v, int32_t device, const char *check,
                                const char *format, ...) {
  char sentence[SENTENCE_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  *v->fault = (gp_schedule_fault){check, device, -1};
  return show(v, -1, sentence);
}
