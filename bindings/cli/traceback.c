/* bindings/cli/traceback.c - what users read when a script fails.
 *
 * The first line names the script's own file and line, and the frames below are the script's own
 * too: C functions and the Lua code inside the program say nothing about the script.
 * GPIPE_TRACEBACK=full in the environment shows everything, for developers of gpipe itself. */
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "cli.h"
#include "embed.h"
#include "interrupt.h"

/* Registry key: was the last error the interrupt? */
static const char interrupted_key;

/* A long recursion shows HEAD frames from the top and TAIL from the bottom. Only the NEAR levels at
 * each end are examined: a stack overflow has hundreds of thousands of levels, and Lua walks to
 * each level that it looks up. */
enum { HEAD = 12, TAIL = 10, NEAR = 50 };

/* The levels that are examined: first to gap - 1, and after to end - 1. */
typedef struct window {
  int first, gap, after, end;
} window;

static bool show_all(void) {
  const char *wish = getenv("GPIPE_TRACEBACK");
  return wish && strcmp(wish, "full") == 0;
}

bool gp_traceback_is_users(const lua_Debug *ar) {
  return *ar->what != 'C' && !gp_lua_is_embedded(ar->source);
}

/* ---- frames --------------------------------------------------------------------------------- */

static void add_frame(lua_State *L, luaL_Buffer *b, const lua_Debug *ar) {
  if (ar->currentline > 0)
    lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
  else
    lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
  luaL_addvalue(b);
  if (*ar->namewhat)
    lua_pushfstring(L, "%s '%s'", strcmp(ar->namewhat, "global") == 0 ? "function" : ar->namewhat,
                    ar->name);
  else if (*ar->what == 'm')
    lua_pushliteral(L, "main chunk");
  else if (*ar->what == 'C')
    lua_pushliteral(L, "?");
  else
    lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
  luaL_addvalue(b);
  if (ar->istailcall) luaL_addstring(b, "\n\t(...tail calls...)");
}

/* Count the levels in steps that double and then halve, because each look-up walks to its level. */
static int count_levels(lua_State *L) {
  lua_Debug ar;
  int below = 0, above = 1;
  while (lua_getstack(L, above, &ar)) below = above, above *= 2;
  while (above - below > 1) {
    int middle = below + (above - below) / 2;
    if (lua_getstack(L, middle, &ar))
      below = middle;
    else
      above = middle;
  }
  return above;
}

static window window_from(lua_State *L, int level) {
  int end = count_levels(L);
  bool whole = end - level <= 2 * NEAR;
  return (window){level, whole ? end : level + NEAR, whole ? end : end - NEAR, end};
}

/* The level after this one; it skips the gap. */
static int next_level(const window *w, int level) {
  return level + 1 == w->gap ? w->after : level + 1;
}

/* Fill ar for the level, and say whether its frame is to be shown. */
static bool get_frame(lua_State *L, int level, bool all, lua_Debug *ar) {
  if (!lua_getstack(L, level, ar)) return false;
  lua_getinfo(L, "Slnt", ar);
  return all || gp_traceback_is_users(ar);
}

static int count_frames(lua_State *L, const window *w, bool all) {
  lua_Debug ar;
  int count = 0;
  for (int level = w->first; level < w->end; level = next_level(w, level))
    count += get_frame(L, level, all, &ar);
  return count;
}

/* Push the traceback from `level` on; an empty string if no frame is to be shown. */
static void push_frames(lua_State *L, int level) {
  bool all = show_all(), skipping = false;
  window w = window_from(L, level);
  int count = count_frames(L, &w, all), number = 0, gap = w.after - w.gap;
  int skipped = gap + (count > HEAD + TAIL ? count - HEAD - TAIL : 0);
  lua_Debug ar;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  if (count > 0) luaL_addstring(&b, "\nstack traceback:");
  for (level = w.first; level < w.end; level = next_level(&w, level)) {
    bool shown = get_frame(L, level, all, &ar);
    number += shown;
    if (shown && (number <= HEAD || number > count - TAIL)) add_frame(L, &b, &ar);
    if (skipping || skipped == 0 || (number <= HEAD && level < w.gap - 1)) continue;
    skipping = true;
    lua_pushfstring(L, "\n\t...\t(skipping %d levels)", skipped);
    luaL_addvalue(&b);
  }
  luaL_pushresult(&b);
}

/* ---- the message ---------------------------------------------------------------------------- */

/* Push "train.lua:12: " for the script's innermost frame; false (nothing pushed) if there is
 * none. */
static bool push_user_position(lua_State *L, int level) {
  lua_Debug ar;
  window w = window_from(L, level);
  for (; level < w.end; level = next_level(&w, level)) {
    if (!get_frame(L, level, false, &ar) || ar.currentline <= 0) continue;
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    return true;
  }
  return false;
}

/* The message after a position inside the program ("gpipe/nn/layer/linear.lua:33: "), or NULL if it
 * has none. */
static const char *behind_our_position(const char *message) {
  const char *colon = strchr(message, ':');
  char chunk[128];
  size_t length = colon ? (size_t)(colon - message) : sizeof chunk;
  if (length + 2 > sizeof chunk) return NULL;
  chunk[0] = '@';
  memcpy(chunk + 1, message, length);
  chunk[length + 1] = 0;
  size_t digits = strspn(colon + 1, "0123456789");
  if (digits == 0 || strncmp(colon + 1 + digits, ": ", 2) != 0) return NULL;
  return gp_lua_is_embedded(chunk) ? colon + digits + 3 : NULL;
}

/* show(value) -> its contents, as the interactive mode prints them. */
static int show_contents(lua_State *L) {
  gp_lua_push_embedded(L, "gpipe.show");
  lua_getfield(L, -1, "value");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

/* Push a description of an error object without a text: a table with its fields. */
static void push_description(lua_State *L) {
  lua_pushcfunction(L, show_contents);
  lua_pushvalue(L, 1);
  bool shown = lua_istable(L, 1) && lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1);
  lua_pushfstring(L, "(error object is a %s value%s%s)", luaL_typename(L, 1), shown ? ": " : "",
                  shown ? lua_tostring(L, -1) : "");
}

/* Push the whole text of the error object at index 1; it may hold zeros. */
static void push_text(lua_State *L, int level) {
  if (lua_isstring(L, 1)) {
    size_t length;
    const char *message = lua_tolstring(L, 1, &length), *plain = behind_our_position(message);
    if (plain && !show_all() && push_user_position(L, level)) {
      lua_pushlstring(L, plain, length - (size_t)(plain - message));
      lua_concat(L, 2);
    } else {
      lua_pushvalue(L, 1);
    }
  } else if (!luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1)) {
    push_description(L);
  }
}

/* Append to the text on top how a script gets what only the prompt defines, if it lacks that. */
static void add_advice(lua_State *L) {
  static const char *const lines[][2] = {
      {"gp", "local gp = require \"gpipe\""},
      {"nn", "local nn = require(\"gpipe\").nn"},
      {"optim", "local optim = require(\"gpipe\").optim"},
  };
  size_t length;
  const char *text = lua_tolstring(L, -1, &length);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const char *end = lua_pushfstring(L, "a nil value (global '%s')", lines[i][0]);
    const size_t size = strlen(end);
    const bool lacks = length >= size && !memcmp(text + length - size, end, size);
    lua_pop(L, 1);
    if (!lacks) continue;
    lua_pushfstring(L, ": a script begins with %s", lines[i][1]);
    lua_concat(L, 2);
    return;
  }
}

static void set_interrupted(lua_State *L, bool interrupted) {
  lua_pushboolean(L, interrupted);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &interrupted_key);
}

int gp_traceback(lua_State *L) {
  enum { FAILED = 1 }; /* level 0 is this function */
  set_interrupted(L, gp_lua_is_interrupt(L, 1));
  push_text(L, FAILED);
  add_advice(L);
  lua_replace(L, 1);
  lua_settop(L, 1);
  push_frames(L, FAILED);
  lua_concat(L, 2);
  return 1;
}

void gp_traceback_forget(lua_State *L) { set_interrupted(L, false); }

bool gp_run_interrupted(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &interrupted_key);
  bool interrupted = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return interrupted;
}
