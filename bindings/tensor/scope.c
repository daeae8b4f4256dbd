/* bindings/tensor/scope.c - which module is being called: the stack of names behind every error
 * text.
 *
 * nn.Module's call wrapper opens a scope and closes it through a to-be-closed variable, so an error
 * closes it too. The innermost label prefixes error texts and goes with every op that is recorded.
 * A coroutine that died of an error closes nothing: its scopes are dropped when they are next
 * looked at. Labels are Lua strings in one registry table: [2d - 1] path, [2d] label, [-d] the
 * handle of depth d, reused, so that a call makes no garbage but its label; its user value is the
 * coroutine. */
#include "binding.h"

static const char scopes_key;

typedef struct gp_scope {
  int depth; /* 1 is the outermost */
} gp_scope;

static void push_scopes(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &scopes_key); }

/* Whether the coroutine that opened the scope of this depth ended with an error. */
static bool is_left_behind(lua_State *L, int scopes, int depth) {
  lua_rawgeti(L, scopes, -depth);
  lua_getiuservalue(L, -1, 1);
  lua_State *opener = lua_tothread(L, -1);
  lua_pop(L, 2);
  return opener && opener != L && lua_status(opener) > LUA_YIELD;
}

/* The number of open scopes; the table of scopes is on top. */
static int open_depth(lua_State *L) {
  gp_lua *state = gp_lua_state(L);
  int scopes = lua_gettop(L);
  while (state->depth > 0 && is_left_behind(L, scopes, state->depth)) state->depth--;
  return state->depth;
}

const char *gp_lua_label(lua_State *L) {
  push_scopes(L);
  int depth = open_depth(L);
  if (depth == 0) return lua_pop(L, 1), "";
  lua_rawgeti(L, -1, 2 * depth);
  const char *label = lua_tostring(L, -1);
  lua_pop(L, 2);
  return label;
}

/* Push path and label of a scope named (key, description) inside the open one. */
static void push_names(lua_State *L, int scopes, int depth) {
  const char *key = luaL_optstring(L, 1, "");
  const char *description = luaL_optstring(L, 2, "");
  const char *outer = "";
  if (depth > 0) {
    lua_rawgeti(L, scopes, 2 * depth - 1);
    outer = lua_tostring(L, -1); /* stays in the table: the pointer lives on */
    lua_pop(L, 1);
  }
  lua_pushfstring(L, "%s%s%s", outer, *outer && *key ? "." : "", key);
  const char *path = lua_tostring(L, -1);
  if (!*path)
    lua_pushvalue(L, 2);
  else if (!*description)
    lua_pushvalue(L, -1);
  else
    lua_pushfstring(L, "%s (%s)", path, description);
  if (lua_isnil(L, -1)) lua_pushliteral(L, ""), lua_replace(L, -2);
}

/* The handle of a depth, made when that depth is first reached. */
static void push_handle(lua_State *L, int scopes, int depth) {
  if (lua_rawgeti(L, scopes, -depth) == LUA_TUSERDATA) return;
  lua_pop(L, 1);
  gp_scope *scope = lua_newuserdatauv(L, sizeof *scope, 1);
  scope->depth = depth;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_rawseti(L, scopes, -depth);
}

/* core.enter(key, description) -> scope, to be closed. The label is given to the trace first: what
 * raises leaves the depth as it was. */
static int enter(lua_State *L) {
  lua_settop(L, 2);
  gp_lua *state = gp_lua_state(L);
  push_scopes(L);
  open_depth(L);
  push_handle(L, 3, state->depth + 1);
  lua_pushthread(L);
  lua_setiuservalue(L, 4, 1);
  push_names(L, 3, state->depth);
  if (state->trace) {
    gp_status status = gp_trace_set_label(state->trace, lua_tostring(L, -1));
    if (status != GP_OK) return gp_lua_fail(L, status);
  }
  int depth = state->depth + 1;
  lua_rawseti(L, 3, 2 * depth);
  lua_rawseti(L, 3, 2 * depth - 1);
  state->depth = depth;
  return 1;
}

static int leave(lua_State *L) {
  gp_scope *scope = lua_touserdata(L, 1);
  gp_lua *state = gp_lua_state(L);
  if (!scope || state->depth < scope->depth) return 0; /* closed with an outer one */
  state->depth = scope->depth - 1;
  if (!state->trace) return 0;
  gp_status status = gp_trace_set_label(state->trace, gp_lua_label(L));
  return status == GP_OK ? 0 : gp_lua_fail(L, status);
}

/* core.whole(f, ...) -> what f returns; inside, coroutine.yield raises: whoever went on meanwhile
 * would find the scopes, and the trace, of a call that has not ended. */
static int whole(lua_State *L) {
  luaL_checkany(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* core.label() -> text of the innermost open module, "" outside */
static int label(lua_State *L) {
  lua_pushstring(L, gp_lua_label(L));
  return 1;
}

/* core.tracing() -> nil | "train" | "eval" */
static int tracing(lua_State *L) {
  gp_trace *trace = gp_lua_trace(L);
  if (!trace) return lua_pushnil(L), 1;
  lua_pushstring(L, gp_trace_is_training(trace) ? "train" : "eval");
  return 1;
}

int gp_open_scope(lua_State *L) {
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &scopes_key);
  lua_createtable(L, 0, 1); /* metatable of the handles */
  lua_pushcfunction(L, leave);
  lua_setfield(L, -2, "__close");
  lua_pushcclosure(L, enter, 1);
  lua_setfield(L, -2, "enter");
  lua_pushcfunction(L, whole);
  lua_setfield(L, -2, "whole");
  lua_pushcfunction(L, label);
  lua_setfield(L, -2, "label");
  lua_pushcfunction(L, tracing);
  lua_setfield(L, -2, "tracing");
  return 0;
}
