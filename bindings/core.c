/* bindings/core.c - the C module gpipe.core: one table of functions, made once per Lua state.
 *
 * The table, the state and the class tables live in the registry: test runners reset package.loaded
 * between files, and objects of one copy of a class would be foreign to another copy. */
#include "binding.h"

static const char core_key, state_key, hooks_key;

/* ---- state --------------------------------------------------------------------------------- */

static int state_free(lua_State *L) {
  gp_lua *state = lua_touserdata(L, 1);
  gp_trace_free(state->trace);
  state->trace = NULL;
  gp_gpus_close();
  return 0;
}

/* Make the state first: finalizers run in reverse order, so it outlives every box. */
static void state_new(lua_State *L) {
  gp_lua *state = lua_newuserdatauv(L, sizeof *state, 0);
  *state = (gp_lua){0};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, state_free);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &hooks_key);
}

gp_lua *gp_lua_state(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
  gp_lua *state = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return state;
}

void gp_lua_set_trace(lua_State *L, gp_trace *trace) {
  gp_lua *state = gp_lua_state(L);
  gp_trace *before = state->trace;
  state->trace = trace ? gp_trace_retain(trace) : NULL;
  state->relabel = false;
  gp_trace_free(before);
}

gp_trace *gp_lua_trace(lua_State *L) { return gp_lua_state(L)->trace; }

/* ---- hooks: what the Lua side does for C ---------------------------------------------------- */

int gp_lua_push_hook(lua_State *L, const char *name) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &hooks_key) != LUA_TTABLE) return LUA_TNIL; /* no core */
  int type = lua_getfield(L, -1, name);
  lua_remove(L, -2);
  return type;
}

/* core.hook(name, value) registers: "tostring" (t -> text), "missing" (key, names -> hint), "dtype"
 * (word -> our dtype for another library's name), "option" (word, "a, b" -> one of them),
 * "own_prefix" (of the sources whose lines errors do not name), "post_mortem" (text), "failed"
 * (text: the error that ends a script). */
static int hook(lua_State *L) {
  luaL_checkstring(L, 1);
  luaL_checkany(L, 2);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hooks_key);
  lua_insert(L, 1);
  lua_settop(L, 3);
  lua_rawset(L, 1);
  return 0;
}

/* ---- types of userdata --------------------------------------------------------------------- */

void gp_lua_push_type(lua_State *L, const char *name, lua_CFunction clear) {
  luaL_newmetatable(L, name);
  lua_pushcfunction(L, clear);
  lua_setfield(L, -2, "__gc");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
}

/* ---- opening ------------------------------------------------------------------------------- */

static void core_new(lua_State *L) {
  state_new(L);
  lua_newtable(L);
  lua_pushcfunction(L, hook);
  lua_setfield(L, -2, "hook");
  lua_pushcfunction(L, gp_lua_failure);
  lua_setfield(L, -2, "failure");
  lua_pushliteral(L, GP_VERSION);
  lua_setfield(L, -2, "version");
#define GP_LUA_PART(name) gp_open_##name(L);
  GP_LUA_PARTS(GP_LUA_PART)
#undef GP_LUA_PART
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &core_key);
}

LUAMOD_API int luaopen_gpipe_core(lua_State *L) {
  luaL_checkversion(L);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &core_key) == LUA_TTABLE) return 1;
  lua_pop(L, 1);
  core_new(L);
  return 1;
}
