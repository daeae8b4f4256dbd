/* bindings/cli/traceback.c - what a person reads when a script fails.
 *
 * The first line names the script's own file and line, the frames below are the script's own too:
 * C functions and the Lua inside the program say nothing about the script. GPIPE_TRACEBACK=full in
 * the environment shows everything, for those who work on gpipe itself. */
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "cli.h"
#include "embed.h"
#include "interrupt.h"

/* Registry key: whether the last error was the interrupt. */
static const char interrupted_key;

/* Long recursions: so many frames from the top and from the bottom. */
enum { HEAD = 12, TAIL = 10 };

static bool show_all(void) {
  const char *wish = getenv("GPIPE_TRACEBACK");
  return wish && strcmp(wish, "full") == 0;
}

static bool is_users(const lua_Debug *ar) {
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

static int count_frames(lua_State *L, int level, bool all) {
  lua_Debug ar;
  int count = 0;
  for (; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "S", &ar);
    if (all || is_users(&ar)) count++;
  }
  return count;
}

/* Push the traceback from level on; an empty string where no frame is worth showing. */
static void push_frames(lua_State *L, int level) {
  bool all = show_all();
  int count = count_frames(L, level, all), number = 0;
  lua_Debug ar;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  if (count > 0) luaL_addstring(&b, "\nstack traceback:");
  for (; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Slnt", &ar);
    if (!all && !is_users(&ar)) continue;
    number++;
    if (number <= HEAD || number > count - TAIL) {
      add_frame(L, &b, &ar);
    } else if (number == HEAD + 1) {
      lua_pushfstring(L, "\n\t...\t(skipping %d levels)", count - HEAD - TAIL);
      luaL_addvalue(&b);
    }
  }
  luaL_pushresult(&b);
}

/* ---- the message ---------------------------------------------------------------------------- */

/* Push "train.lua:12: " of the script's innermost frame; false (nothing pushed) if it has none. */
static bool push_user_position(lua_State *L, int level) {
  lua_Debug ar;
  for (; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    if (!is_users(&ar) || ar.currentline <= 0) continue;
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    return true;
  }
  return false;
}

/* The message behind a position inside the program ("gpipe/nn/linear.lua:33: "), else NULL. */
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

/* Push the text of the error object at index 1. */
static void push_text(lua_State *L, int level) {
  if (lua_isstring(L, 1)) {
    const char *message = lua_tostring(L, 1), *plain = behind_our_position(message);
    if (plain && !show_all() && push_user_position(L, level)) {
      lua_pushstring(L, plain);
      lua_concat(L, 2);
    } else {
      lua_pushvalue(L, 1);
    }
  } else if (!luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1)) {
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
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
