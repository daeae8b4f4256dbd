/* bindings/cli/warning.c - prints Lua's warnings on stderr.
 *
 * Lua turns an error in a finalizer into a warning, and shows no warnings by default: a checkpoint
 * that could not be written would go unnoticed. So those are always shown; a script's own warn()
 * follows Lua's rule (-W, warn("@on")). */
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "cli.h"

/* Registry key of the state, which must live as long as the Lua state, because closing that may
 * warn. */
static const char state_key;

typedef struct warning_state {
  bool on;      /* the script's warnings are shown */
  bool inside;  /* a message continues in the next call */
  bool showing; /* and the message is printed */
} warning_state;

/* Lua's text for an error in __gc (lstate.c, luaE_warnerror). */
static bool is_finalizer_error(const char *message) { return strcmp(message, "error in ") == 0; }

static void show(void *context, const char *message, int to_be_continued) {
  warning_state *w = context;
  if (!w->inside && !to_be_continued && message[0] == '@') {
    if (strcmp(message, "@on") == 0) w->on = true;
    if (strcmp(message, "@off") == 0) w->on = false;
    return;
  }
  if (!w->inside) {
    w->showing = w->on || (to_be_continued && is_finalizer_error(message));
    if (w->showing) fputs("Lua warning: ", stderr);
  }
  if (w->showing) fprintf(stderr, to_be_continued ? "%s" : "%s\n", message);
  w->inside = to_be_continued;
}

void gp_warning_install(lua_State *L) {
  warning_state *w = lua_newuserdatauv(L, sizeof *w, 0);
  *w = (warning_state){0};
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  lua_setwarnf(L, show, w);
}
