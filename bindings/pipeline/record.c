/* bindings/pipeline/record.c - what ran when, and what a plan runs. */
#include "pipeline/pipeline.h"

/* p:stats() -> {seconds, {busy, span, peak_live, peak_bytes} per device} */
static int pipeline_stats(lua_State *L) {
  gp_lua_pipeline *box = gp_lua_pipeline_box(L);
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  lua_newtable(L);
  lua_pushnumber(L, gp_pipeline_seconds(pipeline));
  lua_setfield(L, -2, "seconds");
  for (int d = 0; d < box->devices; d++) {
    gp_device_stats stats;
    gp_pipeline_stats(pipeline, d, &stats);
    lua_createtable(L, 0, 4);
    lua_pushnumber(L, stats.busy);
    lua_setfield(L, -2, "busy");
    lua_pushnumber(L, stats.span);
    lua_setfield(L, -2, "span");
    lua_pushinteger(L, stats.peak_live);
    lua_setfield(L, -2, "peak_live");
    lua_pushinteger(L, (lua_Integer)stats.peak_bytes);
    lua_setfield(L, -2, "peak_bytes");
    lua_rawseti(L, -2, d + 1);
  }
  return 1;
}

/* A number under a name in the table on top. */
static void set_number(lua_State *L, const char *name, double number) {
  lua_pushnumber(L, number);
  lua_setfield(L, -2, name);
}

/* {op, stage, micro, version | nil} of an action. */
static void push_action(lua_State *L, const gp_action *action) {
  lua_createtable(L, 0, 7);
  lua_pushstring(L, gp_act_name((gp_act)action->op));
  lua_setfield(L, -2, "op");
  lua_pushinteger(L, action->stage);
  lua_setfield(L, -2, "stage");
  lua_pushinteger(L, action->micro);
  lua_setfield(L, -2, "micro");
  if (action->version < 0) return;
  lua_pushinteger(L, action->version);
  lua_setfield(L, -2, "version");
}

/* p:events(device) -> {{op, stage, micro, version, wait, begin, finish}, ...}; seconds */
static int pipeline_events(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  int device =
      (int)gp_lua_check_int(L, 2, "events: the device", 0, gp_lua_pipeline_box(L)->devices - 1);
  int count = gp_pipeline_event_count(pipeline, device);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    gp_timed_action timed;
    gp_pipeline_event(pipeline, device, i, &timed);
    push_action(L, &timed.action);
    set_number(L, "wait", timed.wait);
    set_number(L, "begin", timed.begin);
    set_number(L, "finish", timed.end);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

const luaL_Reg gp_lua_record_methods[] = {
    {"stats", pipeline_stats}, {"events", pipeline_events}, {NULL, NULL}};
