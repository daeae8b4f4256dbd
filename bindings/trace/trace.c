/* bindings/trace/trace.c - records a model: traces as Lua objects, one of them active at a time. */
#include "binding.h"
#include "trace/trace_binding.h"

static gp_trace **check_trace(lua_State *L, int index) {
  gp_trace **box = luaL_checkudata(L, index, GP_LUA_TRACE);
  if (!*box) gp_lua_error(L, "trace: it was freed, expected a live one");
  return box;
}

const gp_trace *gp_lua_check_trace(lua_State *L, int index) { return *check_trace(L, index); }

gp_trace *gp_lua_take_trace(lua_State *L, int index) {
  return gp_trace_retain(*check_trace(L, index));
}

/* core.trace_new(training) -> trace */
static int trace_new(lua_State *L) {
  bool training = lua_toboolean(L, 1);
  gp_trace **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, GP_LUA_TRACE);
  gp_status status = gp_trace_new(training, box);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.trace_begin(trace): record the ops that are applied from now on */
static int trace_begin(lua_State *L) {
  gp_lua_set_trace(L, *check_trace(L, 1));
  return 0;
}

/* core.trace_end() */
static int trace_end(lua_State *L) {
  gp_lua_set_trace(L, NULL);
  return 0;
}

/* core.trace_input(trace, "batch" | "target", dtype, shape) -> value */
static int trace_input(lua_State *L) {
  static const char *const kinds[] = {"batch", "target", NULL};
  gp_input_kind kind = (gp_input_kind)luaL_checkoption(L, 2, NULL, kinds);
  gp_meta meta = {.dtype = gp_lua_check_dtype(L, 3, "trace_input: dtype")};
  gp_lua_check_shape(L, 4, "trace_input: shape", 0, &meta.shape);
  gp_box *value = gp_lua_new_box(L);
  gp_trace *trace = *check_trace(L, 1);
  gp_status status = gp_trace_input(trace, kind, &meta, &value->ref);
  if (status) return gp_lua_fail(L, status);
  value->trace = gp_trace_retain(trace);
  return 1;
}

/* core.trace_layer(trace, layer): the following ops belong to it; layers count from 0 */
static int trace_layer(lua_State *L) {
  gp_trace *trace = *check_trace(L, 1);
  gp_trace_set_layer(trace, (int)gp_lua_check_int(L, 2, "trace_layer: layer", 0, INT32_MAX));
  return 0;
}

/* core.trace_half(trace, "bf16" | "f16" | "f32", scaled): read f32 parameters in this dtype from
 * now on; scaled: all gradients contain the loss scale */
static int trace_half(lua_State *L) {
  static const char *const names[] = {"bf16", "f16", "f32", NULL};
  static const gp_dtype dtypes[] = {GP_BF16, GP_F16, GP_F32};
  gp_trace *trace = *check_trace(L, 1);
  gp_trace_set_half(trace, dtypes[luaL_checkoption(L, 2, NULL, names)]);
  if (lua_toboolean(L, 3)) gp_trace_set_scaled(trace);
  return 0;
}

/* Release the trace. A pipeline that took it has its own reference. */
static int trace_free(lua_State *L) {
  gp_trace **box = luaL_checkudata(L, 1, GP_LUA_TRACE);
  gp_trace *trace = *box;
  *box = NULL;
  gp_trace_free(trace);
  return 0;
}

static const luaL_Reg functions[] = {{"trace_new", trace_new},
                                     {"trace_begin", trace_begin},
                                     {"trace_end", trace_end},
                                     {"trace_input", trace_input},
                                     {"trace_layer", trace_layer},
                                     {"trace_half", trace_half},
                                     {NULL, NULL}};

int gp_open_trace(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_TRACE, trace_free);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
