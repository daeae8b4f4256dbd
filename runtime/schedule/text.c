/* schedule/text.c - the text form of actions: "0F0,0SEND_F0,(0F7;7B3)OVERLAP_F_B,,2F5@3".
 *
 * Source: torch.distributed.pipelining's CSV (letters, SEND and RECV named by the local stage,
 * overlapped pairs, empty cells); we added "@3", the version of the weights.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "schedule/schedule.h"

static const char overlap[] = "OVERLAP_F_B";

const char *gp_act_name(gp_act act) {
#define TEXT(name, text) text,
  static const char *const texts[] = {GP_ACT_LIST(TEXT)};
#undef TEXT
  return texts[act];
}

bool gp_act_has_micro(gp_act act) {
  return !gp_act_is_own(act) && (act < GP_ACT_REDUCE || act > GP_ACT_RESHARD);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Read digits as a number below a million; false if there are none. */
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

/* The whole word of capitals must match. */
static bool read_act(const char **text, uint8_t *op) {
  size_t length = strspn(*text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
  for (int a = 0; a < GP_ACT_IDLE; a++) {
    const char *name = gp_act_name((gp_act)a);
    if (strlen(name) != length || strncmp(*text, name, length) != 0) continue;
    *text += length;
    *op = (uint8_t)a;
    return true;
  }
  return false;
}

/* "2F0", "2F5@3", "2REDUCE_GRAD". */
static bool read_one(const char **text, gp_action *action) {
  *action = (gp_action){.micro = -1, .version = -1};
  if (!read_number(text, &action->stage) || !read_act(text, &action->op)) return false;
  if (gp_act_has_micro((gp_act)action->op) && !read_number(text, &action->micro)) return false;
  if (**text != '@') return true;
  ++*text;
  return read_number(text, &action->version);
}

/* "(0F7;7B3)", with torch's OVERLAP_F_B behind it or without. */
static bool read_joined(gp_rows *rows, int device, const char **text, gp_status *status) {
  gp_action action;
  do {
    ++*text; /* ( or ; */
    if (!read_one(text, &action) || (**text != ';' && **text != ')')) return false;
    action.joined = **text == ';';
    *status = gp_rows_add(rows, device, &action);
  } while (!*status && action.joined);
  ++*text;
  if (!strncmp(*text, overlap, sizeof overlap - 1)) *text += sizeof overlap - 1;
  return true;
}

/* Read one cell of the row. */
static bool read_cell(gp_rows *rows, int device, const char **text, gp_status *status) {
  gp_action action = {.op = GP_ACT_IDLE, .stage = -1, .micro = -1, .version = -1};
  if (**text == '(') return read_joined(rows, device, text, status);
  if (**text && **text != ',' && !read_one(text, &action)) return false;
  *status = gp_rows_add(rows, device, &action);
  return true;
}

/* Cells lie between commas; an empty text has none. */
gp_status gp_rows_read(gp_rows *rows, int device, const char *text, int *position) {
  gp_status status = GP_OK;
  for (bool more = *text != 0; more; text += more) {
    const char *at = text;
    int count;
    gp_rows_get(rows, device, &count);
    if (position) *position = count;
    bool good = read_cell(rows, device, &text, &status) && (*text == ',' || *text == 0);
    GP_TRY(status);
    size_t length = strcspn(at, ","), shown = length < 40 ? length : 40;
    if (!good)
      return gp_fail(GP_ESCHEDULE, "schedule, device %d: '%.*s' is not an action, expected \"2F0\"",
                     device, (int)shown, at);
    more = *text == ',';
  }
  return GP_OK;
}

/* ---- printing ------------------------------------------------------------------------------ */

char *gp_action_print(const gp_action *a, char text[GP_ACTION_TEXT]) {
  int used = 0;
  text[0] = 0;
  if (a->op == GP_ACT_IDLE) return text;
  used = snprintf(text, GP_ACTION_TEXT, "%d%s", (int)a->stage, gp_act_name((gp_act)a->op));
  if (a->micro >= 0)
    used += snprintf(text + used, GP_ACTION_TEXT - (size_t)used, "%d", (int)a->micro);
  if (a->version >= 0) snprintf(text + used, GP_ACTION_TEXT - (size_t)used, "@%d", (int)a->version);
  return text;
}

size_t gp_rows_print(const gp_action *actions, int count, char *text, size_t size) {
  gp_text p = gp_text_begin(text, size);
  char one[GP_ACTION_TEXT];
  for (int i = 0; i < count; i++) {
    bool inside = i > 0 && actions[i - 1].joined;
    if (i > 0) gp_text_put(&p, inside ? ";" : ",");
    gp_text_put(&p, "%s%s", actions[i].joined && !inside ? "(" : "",
                gp_action_print(&actions[i], one));
    if (inside && !actions[i].joined) gp_text_put(&p, ")%s", overlap);
  }
  return p.length;
}
