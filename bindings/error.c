/* bindings/error.c - raises errors at the user's line, prefixed by the module that was called.
 *
 * Otherwise an error from a layer deep in our own Lua code would point into it. lua/gpipe/init.lua
 * gives core.hook the prefix by which our own sources are recognised. */
#include <stdarg.h>
#include <string.h>

#include "binding.h"
#include "interrupt.h"

/* Registry key of the last message that a failed runtime call raised. */
static const char failed_key;

enum { QUOTED = 40 }; /* characters of a string value that an error text shows */

/* Push "file:line: " of the nearest function of the user's code, or "". */
static void push_where(lua_State *L) {
  gp_lua_push_hook(L, "own_prefix");
  const char *own = lua_tostring(L, -1);
  lua_Debug ar;
  for (int level = 1; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    bool ours = own && strncmp(ar.source, own, strlen(own)) == 0;
    if (ar.currentline > 0 && !ours) {
      lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
      lua_remove(L, -2);
      return;
    }
  }
  lua_pop(L, 1);
  lua_pushliteral(L, "");
}

/* Replace the text on top of the stack by the whole message: where, which layer, what. */
static void push_located(lua_State *L) {
  push_where(L);
  const char *label = gp_lua_label(L);
  const char *text = lua_tostring(L, -2);
  lua_pushfstring(L, "%s%s%s%s", lua_tostring(L, -1), label, *label ? ": " : "", text);
}

static int raise(lua_State *L) {
  push_located(L);
  return lua_error(L);
}

int gp_lua_fail(lua_State *L, gp_status status) {
  if (status == GP_EINTERRUPT) return gp_lua_raise_interrupt(L);
  gp_lua_state(L)->failed = status;
  lua_pushstring(L, gp_error_text());
  push_located(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &failed_key);
  return lua_error(L);
}

int gp_lua_failure(lua_State *L) {
  lua_settop(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &failed_key);
  bool known = lua_isstring(L, 1) && lua_rawequal(L, 1, 2);
  lua_pushstring(L, known ? gp_status_code(gp_lua_state(L)->failed) : NULL);
  return 1;
}

/* A refusal of the operating system is not the script's mistake, so it is returned and not
 * raised. */
int gp_lua_return_failure(lua_State *L, gp_status status) {
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  lua_pushstring(L, gp_status_code(status));
  return 3;
}

/* The format is that of lua_pushfstring: %I takes a LUAI_UACINT. */
int gp_lua_error(lua_State *L, const char *format, ...) {
  va_list args;
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  return raise(L);
}

/* Push a text with its zero bytes made visible. */
static void push_printable(lua_State *L, const char *text, size_t length) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (size_t i = 0; i < length; i++) {
    if (text[i])
      luaL_addchar(&b, text[i]);
    else
      luaL_addstring(&b, "\\0");
  }
  luaL_pushresult(&b);
}

/* Push the value at `index` as an error text shows it: "same" (string), 2.5 (float), a table. */
static void push_shown(lua_State *L, int index) {
  switch (lua_type(L, index)) {
  case LUA_TNONE:
  case LUA_TNIL: lua_pushliteral(L, "nil"); return;
  case LUA_TBOOLEAN: lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false"); return;
  case LUA_TNUMBER:
    if (lua_isinteger(L, index))
      lua_pushfstring(L, "%I", lua_tointeger(L, index));
    else
      lua_pushfstring(L, "%f (float)", lua_tonumber(L, index));
    return;
  case LUA_TSTRING: {
    size_t length;
    const char *text = lua_tolstring(L, index, &length);
    push_printable(L, text, length < QUOTED ? length : QUOTED);
    lua_pushfstring(L, "\"%s%s\" (string)", lua_tostring(L, -1), length > QUOTED ? "..." : "");
    lua_remove(L, -2);
    return;
  }
  default:
    if (gp_lua_to_box(L, index))
      lua_pushliteral(L, "a tensor");
    else
      lua_pushfstring(L, "a %s", luaL_typename(L, index));
  }
}

int gp_lua_bad_value(lua_State *L, int index, const char *who, const char *wanted) {
  index = lua_absindex(L, index);
  push_shown(L, index);
  return gp_lua_error(L, "%s is %s, expected %s", who, lua_tostring(L, -1), wanted);
}
