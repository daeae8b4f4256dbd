/* bindings/field.c - fields of an options table, and lists as arrays; see field.h.
 *
 * Lua owns the memory of arrays, as userdata: a check that raises half-way leaks nothing. */
#include "field.h"

/* ---- fields --------------------------------------------------------------------------------- */

double gp_lua_number_field(lua_State *L, int index, const char *name) {
  double value = 0;
  if (lua_getfield(L, index, name) != LUA_TNIL) value = gp_lua_check_number(L, lua_gettop(L), name);
  lua_pop(L, 1);
  return value;
}

int64_t gp_lua_int_field(lua_State *L, int index, const char *name, int64_t otherwise) {
  int64_t value = otherwise;
  if (lua_getfield(L, index, name) != LUA_TNIL)
    value = gp_lua_check_int(L, lua_gettop(L), name, INT64_MIN, INT64_MAX);
  lua_pop(L, 1);
  return value;
}

int gp_lua_range_field(lua_State *L, int index, const char *name, int otherwise, int low,
                       int high) {
  int value = otherwise;
  if (lua_getfield(L, index, name) != LUA_TNIL)
    value = (int)gp_lua_check_int(L, lua_gettop(L), name, low, high);
  lua_pop(L, 1);
  return value;
}

/* As everywhere in Lua, all values except nil and false are true. */
bool gp_lua_flag_field(lua_State *L, int index, const char *name) {
  lua_getfield(L, index, name);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

void gp_lua_set_number(lua_State *L, const char *name, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

void gp_lua_set_int(lua_State *L, const char *name, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

void gp_lua_set_text(lua_State *L, const char *name, const char *value) {
  if (!*value) return;
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* The length of a list; it must fit an int. */
static int check_list(lua_State *L, int index) {
  luaL_checktype(L, index, LUA_TTABLE);
  size_t n = lua_rawlen(L, index);
  luaL_argcheck(L, n < INT32_MAX, index, "the list is too long");
  return (int)n;
}

/* Allocate one element more than the list has, so that it is never empty. */
int32_t *gp_lua_push_ints(lua_State *L, int index, const char *who, int *count) {
  *count = check_list(L, index);
  int32_t *values = lua_newuserdatauv(L, ((size_t)*count + 1) * sizeof *values, 0);
  for (int i = 0; i < *count; i++) {
    lua_rawgeti(L, index, i + 1);
    values[i] = (int32_t)gp_lua_check_int(L, lua_gettop(L), who, 0, INT32_MAX);
    lua_pop(L, 1);
  }
  return values;
}

gp_param *gp_lua_check_param(lua_State *L, int index, const char *who) {
  gp_box *box = gp_lua_check_box(L, index, who);
  if (!box->param) gp_lua_bad_value(L, index, who, "a parameter");
  return box->param;
}

/* Parameters that a call holds, because a finalizer of the script may release its own
 * references. */
typedef struct held_params {
  int count; /* parameters retained so far */
  gp_param *param[];
} held_params;

/* __gc; also called earlier, when the call is done with the parameters. */
static int held_params_free(lua_State *L) {
  held_params *held = lua_touserdata(L, 1);
  while (held->count > 0) gp_param_free(held->param[--held->count]);
  return 0;
}

static held_params *push_held_params(lua_State *L, int count) {
  held_params *held = lua_newuserdatauv(L, sizeof *held + (size_t)count * sizeof(gp_param *), 0);
  held->count = 0;
  if (luaL_newmetatable(L, "gpipe.HeldParams")) {
    lua_pushcfunction(L, held_params_free);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return held;
}

gp_param **gp_lua_push_params(lua_State *L, int index, const char *who, int *count) {
  *count = check_list(L, index);
  held_params *held = push_held_params(L, *count);
  for (int i = 0; i < *count; i++) {
    lua_rawgeti(L, index, i + 1);
    held->param[i] = gp_param_retain(gp_lua_check_param(L, lua_gettop(L), who));
    held->count = i + 1;
    lua_pop(L, 1);
  }
  return held->param;
}
