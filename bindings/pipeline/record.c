/* bindings/pipeline/record.c - what ran when, and its totals.
 *
 * The pipeline is checked again after each table is made, because a finalizer may have closed
 * it. */
#include "pipeline/pipeline.h"

#include "field.h"

/* p:stats() -> {seconds, {busy, span, peak_live, peak_bytes} per device} */
static int pipeline_stats(lua_State *L) {
  int devices = gp_lua_pipeline_box(L)->devices;
  gp_lua_check_pipeline(L);
  lua_newtable(L);
  gp_lua_set_number(L, "seconds", gp_pipeline_seconds(gp_lua_check_pipeline(L)));
  for (int d = 0; d < devices; d++) {
    gp_device_stats stats;
    lua_createtable(L, 0, 4);
    gp_pipeline_stats(gp_lua_check_pipeline(L), d, &stats);
    gp_lua_set_number(L, "busy", stats.busy);
    gp_lua_set_number(L, "span", stats.span);
    gp_lua_set_int(L, "peak_live", stats.peak_live);
    gp_lua_set_int(L, "peak_bytes", (int64_t)stats.peak_bytes);
    lua_rawseti(L, -2, d + 1);
  }
  return 1;
}

/* p:held(device) -> {parameters, ..., measured, shared, host}: bytes that the pipeline holds for
 * all plans, all that it has allocated on the device, the work area that plans share, and the
 * host's memory for what the device has saved */
static int pipeline_held(lua_State *L) {
#define TEXT(name, text) text,
  static const char *const names[] = {GP_HELD_LIST(TEXT)};
#undef TEXT
  const gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  const int device =
      (int)gp_lua_check_int(L, 2, "held: the device", 0, gp_lua_pipeline_box(L)->devices - 1);
  size_t bytes[GP_HELD_COUNT], measured;
  gp_pipeline_held(pipeline, device, bytes, &measured);
  lua_createtable(L, 0, GP_HELD_COUNT + 3);
  for (int k = 0; k < GP_HELD_COUNT; k++) gp_lua_set_int(L, names[k], (int64_t)bytes[k]);
  gp_lua_set_int(L, "measured", (int64_t)measured);
  gp_lua_set_int(L, "shared", (int64_t)gp_pipeline_shared(pipeline, device));
  gp_lua_set_int(L, "host", (int64_t)gp_pipeline_on_host(pipeline, device));
  return 1;
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
    pipeline = gp_lua_check_pipeline(L); /* a finalizer may have closed it, or run a step */
    if (i >= gp_pipeline_event_count(pipeline, device)) break;
    gp_pipeline_event(pipeline, device, i, &timed);
    gp_lua_push_timed(L, &timed.action, timed.begin, timed.end);
    gp_lua_set_number(L, "wait", timed.wait);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* p:began() -> when the last run began, on the clock of core.seconds() */
static int pipeline_began(lua_State *L) {
  lua_pushnumber(L, gp_pipeline_began(gp_lua_check_pipeline(L)));
  return 1;
}

/* p:paths(device) -> {{kind, shape, path, why, count}, ...} */
static int pipeline_paths(lua_State *L) {
  gp_work_path path;
  gp_lua_check_pipeline(L);
  int device =
      (int)gp_lua_check_int(L, 2, "paths: the device", 0, gp_lua_pipeline_box(L)->devices - 1);
  lua_newtable(L);
  for (int i = 0; gp_pipeline_path(gp_lua_check_pipeline(L), device, i, &path); i++) {
    lua_createtable(L, 0, 5);
    gp_lua_set_text(L, "kind", path.kind);
    gp_lua_set_text(L, "shape", path.shape);
    gp_lua_set_text(L, "path", path.path);
    gp_lua_set_text(L, "why", path.why);
    gp_lua_set_int(L, "count", path.count);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* p:graphs(device) -> {count, tasks}: captured graphs of the plan, and the tasks in them */
static int pipeline_graphs(lua_State *L) {
  gp_lua_check_pipeline(L);
  int device =
      (int)gp_lua_check_int(L, 2, "graphs: the device", 0, gp_lua_pipeline_box(L)->devices - 1);
  gp_graph_counts counts = gp_pipeline_graphs(gp_lua_check_pipeline(L), device);
  lua_createtable(L, 0, 2);
  gp_lua_set_int(L, "count", counts.graphs);
  gp_lua_set_int(L, "tasks", counts.tasks);
  return 1;
}

const luaL_Reg gp_lua_record_methods[] = {{"stats", pipeline_stats},
                                          {"held", pipeline_held},
                                          {"events", pipeline_events},
                                          {"paths", pipeline_paths},
                                          {"began", pipeline_began},
                                          {"graphs", pipeline_graphs},
                                          {NULL, NULL}};
