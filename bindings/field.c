/* bindings/field.c - fields of an options table, and lists as arrays; see field.h.
 *
 * Memory for arrays is userdata and not ours: a check that raises half way leaks nothing. */
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

/* ---- lists ---------------------------------------------------------------------------------- */

/* Push memory for the list at `index`: one element more than it has, since 0 bytes are no memory. */
static void *push_array(lua_State *L, int index, size_t item, int *count) {
  luaL_checktype(L, index, LUA_TTABLE);
  size_t n = lua_rawlen(L, index);
  luaL_argcheck(L, n < INT32_MAX, index, "the list is too long");
  *count = (int)n;
  return lua_newuserdatauv(L, (n + 1) * item, 0);
}

int32_t *gp_lua_push_ints(lua_State *L, int index, const char *who, int *count) {
  int32_t *values = push_array(L, index, sizeof *values, count);
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

gp_param **gp_lua_push_params(lua_State *L, int index, const char *who, int *count) {
  gp_param **params = push_array(L, index, sizeof *params, count);
  for (int i = 0; i < *count; i++) {
    lua_rawgeti(L, index, i + 1);
    params[i] = gp_lua_check_param(L, lua_gettop(L), who);
    lua_pop(L, 1);
  }
  return params;
}
