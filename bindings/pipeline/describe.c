/* bindings/pipeline/describe.c - what a plan runs and holds, as tables for
 * lua/gpipe/pipeline/describe.lua. */
#include "pipeline/pipeline.h"

#include "field.h"

/* The numbers of the object at 1: a pipeline, or a plan without one. */
static const gp_lua_pipeline *numbers_of(lua_State *L) {
  const gp_lua_pipeline *apart = luaL_testudata(L, 1, GP_LUA_PLAN);
  return apart ? apart : gp_lua_pipeline_box(L);
}

/* p:row(plan, device) -> the lowered schedule of a device as text */
static int plan_row(lua_State *L) {
  int device = (int)gp_lua_check_int(L, 3, "row: the device", 0, numbers_of(L)->devices - 1);
  luaL_Buffer buffer;
  size_t length = gp_plan_print(gp_lua_check_plan(L, 2), device, NULL, 0);
  char *text = luaL_buffinitsize(L, &buffer, length + 1);
  gp_plan_print(gp_lua_check_plan(L, 2), device, text, length + 1);
  luaL_pushresultsize(&buffer, length);
  return 1;
}

/* p:tasks(plan, device) -> how many tasks the device has */
static int plan_tasks(lua_State *L) {
  int device = (int)gp_lua_check_int(L, 3, "tasks: the device", 0, numbers_of(L)->devices - 1);
  lua_pushinteger(L, gp_plan_task_count(gp_lua_check_plan(L, 2), device));
  return 1;
}

/* p:page(plan, device) -> what each task of the device touches, as text: a line per task */
static int plan_page(lua_State *L) {
  int device = (int)gp_lua_check_int(L, 3, "page: the device", 0, numbers_of(L)->devices - 1);
  luaL_Buffer buffer;
  size_t length;
  gp_status status = gp_plan_page(gp_lua_check_plan(L, 2), device, NULL, 0, &length);
  if (status) return gp_lua_fail(L, status);
  char *text = luaL_buffinitsize(L, &buffer, length + 1);
  status = gp_plan_page(gp_lua_check_plan(L, 2), device, text, length + 1, &length);
  if (status) return gp_lua_fail(L, status);
  luaL_pushresultsize(&buffer, length);
  return 1;
}

/* p:transfers(plan) -> what GPUs of two ranks send each other, as text: a line per pair */
static int plan_transfers(lua_State *L) {
  luaL_Buffer buffer;
  size_t length;
  gp_status status = gp_plan_transfers(gp_lua_check_plan(L, 2), NULL, 0, &length);
  if (status) return gp_lua_fail(L, status);
  char *text = luaL_buffinitsize(L, &buffer, length + 1);
  status = gp_plan_transfers(gp_lua_check_plan(L, 2), text, length + 1, &length);
  if (status) return gp_lua_fail(L, status);
  luaL_pushresultsize(&buffer, length);
  return 1;
}

/* Push the table of an edge. The plan's own memory is read after the tables are made, the label
 * last. */
static void push_edge(lua_State *L, int e) {
  gp_edge_info info;
  lua_createtable(L, 0, 6);
  lua_newtable(L);
  gp_plan_edge_info(gp_lua_check_plan(L, 2), e, &info);
  for (int r = 0; r < info.to_count; r++) {
    lua_pushinteger(L, info.to[r]);
    lua_rawseti(L, -2, r + 1);
  }
  lua_setfield(L, -2, "to");
  lua_pushboolean(L, info.backward);
  lua_setfield(L, -2, "backward");
  gp_lua_set_int(L, "from", info.from);
  gp_lua_set_int(L, "slots", info.slots);
  gp_lua_set_int(L, "bytes", (int64_t)info.bytes);
  lua_pushstring(L, info.label);
  lua_setfield(L, -2, "label");
}

/* p:edges(plan) -> {{label, from, to = {...}, backward, slots, bytes}, ...}; stages from 0 */
static int plan_edges(lua_State *L) {
  int count = gp_plan_edge_count(gp_lua_check_plan(L, 2));
  lua_createtable(L, count, 0);
  for (int e = 0; e < count; e++) {
    push_edge(L, e);
    lua_rawseti(L, -2, e + 1);
  }
  return 1;
}

/* p:stage(plan, stage, copy) -> {versions, kept, recomputed, held, carried, kept_bytes,
 * recomputed_bytes, held_bytes, carried_bytes, away_bytes, partials, owned_bytes,
 * gradient_bytes} */
static int plan_stage(lua_State *L) {
  gp_stage_info info;
  const gp_lua_pipeline *box = numbers_of(L);
  int stage = (int)gp_lua_check_int(L, 3, "stage: the stage", 0, box->stages - 1);
  int copy = (int)gp_lua_check_int(L, 4, "stage: the copy", 0, box->copies - 1);
  gp_plan_stage_info(gp_lua_check_plan(L, 2), stage, copy, &info);
  lua_createtable(L, 0, 13);
  gp_lua_set_int(L, "versions", info.versions);
  gp_lua_set_int(L, "kept", info.kept);
  gp_lua_set_int(L, "recomputed", info.recomputed);
  gp_lua_set_int(L, "held", info.held);
  gp_lua_set_int(L, "carried", info.carried);
  gp_lua_set_int(L, "kept_bytes", (int64_t)info.kept_bytes);
  gp_lua_set_int(L, "recomputed_bytes", (int64_t)info.recomputed_bytes);
  gp_lua_set_int(L, "held_bytes", (int64_t)info.held_bytes);
  gp_lua_set_int(L, "carried_bytes", (int64_t)info.carried_bytes);
  gp_lua_set_int(L, "away_bytes", (int64_t)info.away_bytes);
  gp_lua_set_int(L, "partials", info.partials);
  gp_lua_set_int(L, "owned_bytes", (int64_t)info.owned_bytes);
  gp_lua_set_int(L, "gradient_bytes", (int64_t)info.gradient_bytes);
  return 1;
}

/* p:on_host(plan, device) -> bytes of the host's memory for what the device saves */
static int plan_on_host(lua_State *L) {
  const gp_plan *plan = gp_lua_check_plan(L, 2);
  const int device =
      (int)gp_lua_check_int(L, 3, "on_host: the device", 0, gp_plan_devices(plan) - 1);
  lua_pushinteger(L, (lua_Integer)gp_plan_host_bytes(plan, device));
  return 1;
}

/* p:step_time(plan) -> seconds of a step by the cost model */
static int plan_step_time(lua_State *L) {
  double seconds = 0;
  gp_status status = gp_plan_step_time(gp_lua_check_plan(L, 2), &seconds);
  if (status) return gp_lua_fail(L, status);
  lua_pushnumber(L, seconds);
  return 1;
}

/* p:areas(plan, device) -> {saved, ..., shared}: bytes of each part of a device's memory */
static int plan_areas(lua_State *L) {
#define TEXT(name, text) text,
  static const char *const names[] = {GP_PLAN_AREA_LIST(TEXT)};
#undef TEXT
  size_t bytes[GP_PLAN_AREA_COUNT], shared;
  const gp_plan *plan = gp_lua_check_plan(L, 2);
  const int device = (int)gp_lua_check_int(L, 3, "areas: the device", 0, gp_plan_devices(plan) - 1);
  gp_plan_areas(plan, device, bytes, &shared);
  lua_createtable(L, 0, GP_PLAN_AREA_COUNT + 1);
  for (int k = 0; k < GP_PLAN_AREA_COUNT; k++) gp_lua_set_int(L, names[k], (int64_t)bytes[k]);
  gp_lua_set_int(L, "shared", (int64_t)shared);
  return 1;
}

/* p:alive(plan, device) -> {{saved, recomputed, carried, transient}, ...}: bytes during each of the
 * device's tasks */
static int plan_alive(lua_State *L) {
  const gp_plan *plan = gp_lua_check_plan(L, 2);
  const int device = (int)gp_lua_check_int(L, 3, "alive: the device", 0, gp_plan_devices(plan) - 1);
  const int tasks = gp_plan_task_count(plan, device);
  size_t(*moments)[4] = lua_newuserdatauv(L, ((size_t)tasks + 1) * sizeof *moments, 0);
  gp_status status = gp_plan_alive(plan, device, moments);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, tasks, 0);
  for (int t = 0; t < tasks; t++) {
    lua_createtable(L, 4, 0);
    for (int k = 0; k < 4; k++) {
      lua_pushinteger(L, (lua_Integer)moments[t][k]);
      lua_rawseti(L, -2, k + 1);
    }
    lua_rawseti(L, -2, t + 1);
  }
  return 1;
}

/* Push a value that a task leaves into the list at the top of the stack. */
static void push_left(void *context, const gp_saved_info *info) {
  lua_State *L = context;
  lua_createtable(L, 0, 12);
  gp_lua_set_int(L, "stage", info->stage);
  gp_lua_set_int(L, "layer", info->layer + 1);
  gp_lua_set_int(L, "bytes", (int64_t)info->bytes);
  gp_lua_set_text(L, "name", info->label);
  gp_lua_set_text(L, "op", info->op);
  gp_lua_set_text(L, "maker", gp_act_name(info->maker));
  gp_lua_set_text(L, "last", gp_act_name(info->last));
  if (info->reader) gp_lua_set_text(L, "reader", info->reader);
  if (info->reader) gp_lua_set_text(L, "reader_name", info->reader_label);
  gp_lua_set_text(L, "shape", info->shape);
  lua_pushboolean(L, info->away);
  lua_setfield(L, -2, "away");
  lua_rawseti(L, -2, luaL_len(L, -2) + 1);
}

/* p:left(plan) -> {{stage, layer, name, op, shape, bytes, maker, last, away, reader, reader_name},
 * ...}: what the tasks of a micro-batch leave for later ones; maker, last: "F"; layers from 1 */
static int plan_left(lua_State *L) {
  const gp_plan *plan = gp_lua_check_plan(L, 2);
  lua_newtable(L);
  gp_status status = gp_plan_each_left(plan, push_left, L);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

static const char *const letters[] = {"F", "B", "I", "W", "R", "U", "C", "P", NULL};

/* p:cost(plan, stage, "F") -> FLOP, bytes of that action, and how often it gathers from replicas;
 * zeros if the plan does not run it */
static int plan_cost(lua_State *L) {
  double flop, bytes;
  const gp_plan *plan = gp_lua_check_plan(L, 2);
  const int stage = (int)luaL_checkinteger(L, 3);
  const gp_act act = (gp_act)luaL_checkoption(L, 4, NULL, letters);
  gp_plan_cost(plan, stage, act, &flop, &bytes);
  lua_pushnumber(L, flop);
  lua_pushnumber(L, bytes);
  lua_pushinteger(L, gp_plan_gathers(plan, stage, act));
  return 3;
}

/* Add a number to a field of the table at the top of the stack. */
static void add_field(lua_State *L, const char *name, double x) {
  lua_getfield(L, -1, name);
  const double sum = lua_tonumber(L, -1) + x;
  lua_pop(L, 1);
  gp_lua_set_number(L, name, sum);
}

/* Add an op to the table of ops at the top of the stack. */
static void add_op(void *context, const char *op, double flop, double bytes) {
  lua_State *L = context;
  if (lua_getfield(L, -1, op) == LUA_TNIL) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, op);
    lua_remove(L, -2);
  }
  add_field(L, "count", 1);
  add_field(L, "flop", flop);
  add_field(L, "bytes", bytes);
  lua_pop(L, 1);
}

/* p:ops(plan, stage, "F") -> {[op] = {count, flop, bytes}, ...} of that action */
static int plan_ops(lua_State *L) {
  const gp_plan *plan = gp_lua_check_plan(L, 2);
  const int stage = (int)luaL_checkinteger(L, 3);
  const gp_act act = (gp_act)luaL_checkoption(L, 4, NULL, letters);
  lua_newtable(L);
  gp_plan_each_op(plan, stage, act, add_op, L);
  return 1;
}

/* Push the table of a layer. */
static void push_layer(lua_State *L, const gp_layer_info *info) {
  lua_createtable(L, 0, 5);
  gp_lua_set_int(L, "kept_bytes", (int64_t)info->kept_bytes);
  gp_lua_set_int(L, "carried_bytes", (int64_t)info->carried_bytes);
  gp_lua_set_number(L, "flop", info->flop);
  gp_lua_set_number(L, "bytes", info->bytes);
  lua_pushboolean(L, info->reads_input);
  lua_setfield(L, -2, "reads_input");
}

enum { MOST_LAYERS = 1 << 24 };

/* p:layers(plan, count) -> {{kept_bytes, carried_bytes, flop, bytes, reads_input}, ...} of the
 * first layers; the loss is one more */
static int plan_layers(lua_State *L) {
  int count = (int)gp_lua_check_int(L, 3, "layers: the number", 0, MOST_LAYERS);
  gp_layer_info *infos = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *infos, 0);
  gp_status status = gp_plan_layers(gp_lua_check_plan(L, 2), infos, count);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    push_layer(L, &infos[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

const luaL_Reg gp_lua_describe_methods[] = {{"row", plan_row},
                                            {"tasks", plan_tasks},
                                            {"page", plan_page},
                                            {"transfers", plan_transfers},
                                            {"edges", plan_edges},
                                            {"stage", plan_stage},
                                            {"areas", plan_areas},
                                            {"on_host", plan_on_host},
                                            {"alive", plan_alive},
                                            {"left", plan_left},
                                            {"cost", plan_cost},
                                            {"ops", plan_ops},
                                            {"layers", plan_layers},
                                            {"step_time", plan_step_time},
                                            {NULL, NULL}};
