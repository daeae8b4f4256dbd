/* bindings/tensor/scope.c - which module is being called: the stack of names behind every error
 * text.
 *
 * nn.Module's call wrapper opens a scope and closes it through a to-be-closed variable, so an error
 * closes it too. The innermost label prefixes error texts, and every recorded op gets it. A
 * coroutine that died from an error closes nothing: its scopes are dropped at the next look at
 * them.
 *
 * One registry table holds everything: [2d - 1] is the key of depth d in the module around it, [2d]
 * its description, [-d] its handle, which is reused and whose user value is the coroutine. The
 * label is built on demand and kept in [0] until the innermost module changes. So calls make no
 * garbage, and nested modules need only the memory of their scopes. */
#include "binding.h"

static const char scopes_key;

typedef struct gp_scope {
  int depth; /* 1 is the outermost */
} gp_scope;

static void push_scopes(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &scopes_key); }

/* Did the coroutine that opened the scope of this depth end with an error? */
static bool is_left_behind(lua_State *L, int scopes, int depth) {
  lua_rawgeti(L, scopes, -depth);
  lua_getiuservalue(L, -1, 1);
  lua_State *opener = lua_tothread(L, -1);
  lua_pop(L, 2);
  return opener && opener != L && lua_status(opener) > LUA_YIELD;
}

/* Set the depth: the innermost module changes. */
static void set_depth(gp_lua *state, int depth) {
  state->depth = depth;
  state->labelled = false;
  state->relabel = true;
}

/* The number of open scopes; the table of scopes is on top. */
static int open_depth(lua_State *L) {
  gp_lua *state = gp_lua_state(L);
  int scopes = lua_gettop(L);
  while (state->depth > 0 && is_left_behind(L, scopes, state->depth))
    set_depth(state, state->depth - 1);
  return state->depth;
}

static bool is_empty(lua_State *L, int scopes, int at) {
  lua_rawgeti(L, scopes, at);
  bool empty = !*lua_tostring(L, -1);
  lua_pop(L, 1);
  return empty;
}

/* Push the keys of all open scopes, joined by dots. */
static void push_path(lua_State *L, int scopes, int depth) {
  luaL_Buffer path;
  bool any = false;
  luaL_buffinit(L, &path);
  for (int d = 1; d <= depth; d++) {
    if (is_empty(L, scopes, 2 * d - 1)) continue;
    if (any) luaL_addchar(&path, '.');
    lua_rawgeti(L, scopes, 2 * d - 1);
    luaL_addvalue(&path);
    any = true;
  }
  luaL_pushresult(&path);
}

/* Push "3.fc (Linear 256 -> 10)", or the part of it that is known. */
static void push_label(lua_State *L, int scopes, int depth) {
  push_path(L, scopes, depth);
  if (is_empty(L, scopes, 2 * depth)) return;
  const char *path = lua_tostring(L, -1);
  lua_rawgeti(L, scopes, 2 * depth);
  if (*path) lua_pushfstring(L, "%s (%s)", path, lua_tostring(L, -1)), lua_remove(L, -2);
  lua_remove(L, -2);
}

const char *gp_lua_label(lua_State *L) {
  gp_lua *state = gp_lua_state(L);
  push_scopes(L);
  int scopes = lua_gettop(L), depth = open_depth(L);
  if (depth == 0) return lua_pop(L, 1), "";
  if (!state->labelled) {
    push_label(L, scopes, depth);
    lua_rawseti(L, scopes, 0);
    state->labelled = true;
  }
  lua_rawgeti(L, scopes, 0);
  const char *label = lua_tostring(L, -1);
  lua_settop(L, scopes - 1);
  return label;
}

gp_status gp_lua_note_label(lua_State *L) {
  gp_lua *state = gp_lua_state(L);
  if (!state->trace || !state->relabel) return GP_OK;
  state->relabel = false;
  return gp_trace_set_label(state->trace, gp_lua_label(L));
}

/* Push the handle of a depth, made when that depth is first reached. */
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

/* core.enter(key, description) -> scope, to be closed. */
static int enter(lua_State *L) {
  luaL_optstring(L, 1, "");
  luaL_optstring(L, 2, "");
  lua_settop(L, 2);
  gp_lua *state = gp_lua_state(L);
  push_scopes(L);
  int depth = open_depth(L) + 1;
  push_handle(L, 3, depth);
  lua_pushthread(L);
  lua_setiuservalue(L, 4, 1);
  for (int i = 0; i < 2; i++) {
    if (lua_isnil(L, 1 + i))
      lua_pushliteral(L, "");
    else
      lua_pushvalue(L, 1 + i);
    lua_rawseti(L, 3, 2 * depth - 1 + i);
  }
  set_depth(state, depth);
  return 1;
}

static int leave(lua_State *L) {
  gp_scope *scope = lua_touserdata(L, 1);
  gp_lua *state = gp_lua_state(L);
  if (scope && state->depth >= scope->depth) set_depth(state, scope->depth - 1);
  return 0; /* else it was closed with an outer one */
}

/* core.whole(f, ...) -> what f returns. Inside f, coroutine.yield raises, because code that runs
 * meanwhile would see the scopes and the trace of an unfinished call. */
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
