/* bindings/tensor/box.c - the Lua tensor's box, and the account of what the collector cannot see.
 *
 * Lua's collector sees some 50 bytes for a tensor of 64 MB and would never run in time. So whenever
 * a box is made and the runtime holds more than an adaptive limit (twice what was alive after the
 * last collection), everything is collected at once; a step of the collector is not enough in
 * generational mode. */
#include "binding.h"

#define GP_GC_FLOOR ((size_t)256 << 20) /* bytes of garbage that are always tolerated */

/* ---- accounting ---------------------------------------------------------------------------- */

/* live + max(floor, live), at most 9/10 of the machine, but always some room above live: a limit
 * below it would collect for every box. */
static size_t next_limit(size_t live) {
  size_t cap = gp_machine_info().memory / 10 * 9;
  size_t limit = live + (live > GP_GC_FLOOR ? live : GP_GC_FLOOR);
  size_t least = live + GP_GC_FLOOR / 4;
  if (limit > cap) limit = cap;
  return limit > least ? limit : least;
}

void gp_lua_collect_when_due(lua_State *L) {
  gp_lua *state = gp_lua_state(L);
  if (state->limit == 0) state->limit = GP_GC_FLOOR;
  if (gp_memory().live <= state->limit) return;
  lua_gc(L, LUA_GCCOLLECT);
  state->collects++;
  state->limit = next_limit(gp_memory().live);
}

/* ---- making -------------------------------------------------------------------------------- */

/* The address is the key of the boxes' metatable in the registry, and the first field of every
 * box. */
static const char class_key = 0;
static const gp_box empty = {.kind = &class_key, .ref = GP_NONE};

/* The address is the key of the list of boxes that are made while gp.scope is open. */
static const char made_key = 0;

static void list_box(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &made_key);
  lua_pushvalue(L, -2);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* core.list_made(list or nil) -> the list before; from now on, new boxes become keys of the list */
static int list_made(lua_State *L) {
  lua_settop(L, 1);
  gp_lua_state(L)->listing = lua_istable(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &made_key);
  lua_insert(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &made_key);
  return 1;
}

/* core.is_plain(t) -> is it a real tensor, not a parameter or a value of a trace? */
static int is_plain(lua_State *L) {
  const gp_box *box = gp_lua_to_box(L, 1);
  lua_pushboolean(L, box && box->tensor != NULL);
  return 1;
}

void gp_lua_open_boxes(lua_State *L) {
  lua_pushcfunction(L, is_plain);
  lua_setfield(L, -2, "is_plain");
  lua_pushcfunction(L, list_made);
  lua_setfield(L, -2, "list_made");
}

void gp_lua_new_class(lua_State *L) {
  luaL_newmetatable(L, GP_LUA_TENSOR);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &class_key);
}

gp_box *gp_lua_new_box(lua_State *L) {
  luaL_checkstack(L, 5, "too many tensors");
  gp_lua_collect_when_due(L);
  gp_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = empty;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &class_key);
  lua_setmetatable(L, -2);
  if (gp_lua_state(L)->listing) list_box(L);
  return box;
}

void gp_lua_push_tensor(lua_State *L, gp_tensor *tensor) {
  gp_lua_new_box(L)->tensor = gp_tensor_retain(tensor);
}

void gp_box_clear(gp_box *box) {
  gp_box held = *box;
  *box = empty;
  gp_tensor_free(held.tensor);
  gp_param_free(held.param);
  gp_trace_free(held.trace);
  gp_history_free(held.history);
  gp_param_free(held.leaf);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Recognise a box. luaL_testudata, which makes a string of the class's name, took a quarter of the
 * time of `t + t`. A userdata of this size that begins with our address is a box, whatever its
 * metatable. */
gp_box *gp_lua_to_box(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA || lua_rawlen(L, index) != sizeof(gp_box)) return NULL;
  gp_box *box = lua_touserdata(L, index);
  return box->kind == &class_key ? box : NULL;
}

const gp_meta *gp_box_meta(const gp_box *box) {
  if (box->tensor) return gp_tensor_meta(box->tensor);
  if (box->param) return gp_param_meta(box->param);
  return gp_trace_meta(box->trace, box->ref);
}

gp_dtype gp_lua_dtype(lua_State *L, const gp_box *box) {
  gp_trace *trace = box->param ? gp_lua_trace(L) : NULL;
  return trace ? gp_trace_reads(trace, box->param) : gp_box_meta(box)->dtype;
}

bool gp_meta_is_dense(const gp_meta *meta) {
  int64_t expected = 1;
  for (int d = meta->shape.rank - 1; d >= 0; d--) {
    if (meta->shape.dim[d] != 1 && meta->stride[d] != expected) return false;
    expected *= meta->shape.dim[d];
  }
  return true;
}
