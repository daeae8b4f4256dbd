/* bindings/trace/trace_cost.c - what Lua code makes and costs on given shapes, from a trace of it.
 *
 * Tracing ends whatever happens: a to-be-closed guard below the call ends it, rather than a
 * protected call, so that the traceback of an error stays complete. */
#include "tensor/tensor.h"

/* ---- calling ------------------------------------------------------------------------------- */

static int guard_close(lua_State *L) {
  gp_lua_set_trace(L, NULL);
  return 0;
}

/* Insert the guard below the function and its arguments; returns its position. */
static int insert_guard(lua_State *L, int n_args) {
  luaL_checkstack(L, 6, "tracing");
  int position = lua_gettop(L) - n_args;
  lua_newuserdatauv(L, 0, 0);
  if (luaL_newmetatable(L, "gpipe.TraceGuard")) {
    lua_pushcfunction(L, guard_close);
    lua_setfield(L, -2, "__close");
  }
  lua_setmetatable(L, -2);
  lua_insert(L, position);
  return position;
}

/* Call the function below its n_args arguments, with all of its results, while `trace` records. */
static void call_traced(lua_State *L, gp_trace *trace, int n_args) {
  if (gp_lua_trace(L)) gp_lua_error(L, "trace: a layer is being traced already");
  int guard = insert_guard(L, n_args);
  lua_toclose(L, guard);
  gp_lua_set_trace(L, trace);
  lua_call(L, n_args, LUA_MULTRET);
  lua_closeslot(L, guard);
  lua_remove(L, guard);
}

/* ---- core.trace_cost ------------------------------------------------------------------------ */

/* Push a box that owns a new trace. */
static gp_trace *push_trace(lua_State *L, bool training) {
  gp_box *box = gp_lua_new_box(L); /* keeps the trace while it is recorded */
  gp_status status = gp_trace_new(training, &box->trace);
  if (status != GP_OK) gp_lua_fail(L, status);
  return box->trace;
}

/* Replace the {shape=, dtype=} on top by a symbolic input with that description. */
static void push_input(lua_State *L, gp_trace *trace) {
  int spec = lua_gettop(L);
  gp_meta meta = {.dtype = GP_F32};
  luaL_checktype(L, spec, LUA_TTABLE);
  lua_getfield(L, spec, "shape");
  gp_lua_check_shape(L, lua_gettop(L), "trace: shape", 0, &meta.shape);
  if (lua_getfield(L, spec, "dtype") != LUA_TNIL)
    meta.dtype = gp_lua_check_dtype(L, lua_gettop(L), "trace: dtype");
  gp_box *value = gp_lua_new_box(L);
  gp_status status = gp_trace_input(trace, GP_INPUT_BATCH, &meta, &value->ref);
  if (status != GP_OK) gp_lua_fail(L, status);
  value->trace = gp_trace_retain(trace);
  lua_replace(L, spec);
  lua_settop(L, spec);
}

/* Push the list of {shape=, dtype=} of the tensors from position `first` to `last`. */
static void push_outputs(lua_State *L, int first, int last) {
  lua_createtable(L, last - first + 1, 0);
  for (int i = first; i <= last; i++) {
    gp_lua_check_box(L, i, "trace: output");
    lua_createtable(L, 0, 2);
    lua_getfield(L, i, "shape");
    lua_setfield(L, -2, "shape");
    lua_getfield(L, i, "dtype");
    lua_setfield(L, -2, "dtype");
    lua_rawseti(L, -2, i - first + 1);
  }
}

/* core.trace_cost(f, {{shape=, dtype=}, ...}, training) -> {outputs = {{shape=, dtype=}, ...},
 * flop=, bytes=}: what f(symbolic inputs) makes and costs, from shapes alone */
static int trace_cost(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 3);
  int count = (int)lua_rawlen(L, 2);
  luaL_checkstack(L, count + 8, "trace: too many inputs");
  gp_trace *trace = push_trace(L, lua_toboolean(L, 3));
  int base = lua_gettop(L);
  lua_pushvalue(L, 1);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, 2, i);
    push_input(L, trace);
  }
  call_traced(L, trace, count);
  double flop = 0, bytes = 0;
  gp_trace_cost(trace, &flop, &bytes);
  push_outputs(L, base + 1, lua_gettop(L));
  lua_createtable(L, 0, 3);
  lua_insert(L, -2);
  lua_setfield(L, -2, "outputs");
  lua_pushnumber(L, flop);
  lua_setfield(L, -2, "flop");
  lua_pushnumber(L, bytes);
  lua_setfield(L, -2, "bytes");
  return 1;
}

int gp_open_trace_cost(lua_State *L) {
  lua_pushcfunction(L, trace_cost);
  lua_setfield(L, -2, "trace_cost");
  return 0;
}
