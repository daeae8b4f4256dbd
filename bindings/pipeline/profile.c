/* bindings/pipeline/profile.c - the time of each instruction, as tables for
 * lua/gpipe/pipeline/profile/init.lua.
 *
 * The pipeline is checked again after each table is made, because a finalizer may have closed
 * it. */
#include "pipeline/pipeline.h"

#include "field.h"

/* p:profile_begin(eager) */
static int profile_begin(lua_State *L) {
  gp_status status = gp_pipeline_profile_begin(gp_lua_check_pipeline(L), lua_toboolean(L, 2));
  return status ? gp_lua_fail(L, status) : 0;
}

static void set_text(lua_State *L, const char *name, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void push_entry(lua_State *L, const gp_profile_entry *e) {
  lua_createtable(L, 0, 10);
  set_text(L, "phase", gp_profile_phase_name(e->phase));
  set_text(L, "op", e->op);
  set_text(L, "what", e->what);
  if (e->in_action || e->flop > 0) set_text(L, "dtype", gp_dtype_name(e->dtype));
  gp_lua_set_number(L, "seconds", e->seconds);
  gp_lua_set_number(L, "bytes", e->bytes);
  gp_lua_set_number(L, "flop", e->flop);
  if (!e->in_action) return;
  set_text(L, "action", gp_act_name((gp_act)e->action.op));
  gp_lua_set_int(L, "stage", e->action.stage);
  if (e->action.micro >= 0) gp_lua_set_int(L, "micro", e->action.micro);
}

/* p:profile_end() -> runs, one_plan, overhead */
static int profile_end(lua_State *L) {
  gp_profile_info info;
  gp_status status = gp_pipeline_profile_end(gp_lua_check_pipeline(L), &info);
  if (status) return gp_lua_fail(L, status);
  lua_pushinteger(L, info.runs);
  lua_pushboolean(L, info.one_plan);
  lua_pushnumber(L, info.overhead);
  return 3;
}

/* p:profile_entries(device) -> {{phase, op, what, dtype, seconds, bytes, flop, action, stage,
 * micro}, ...} in the device's order; action, stage and micro only if it is part of an action */
static int profile_entries(lua_State *L) {
  int last = gp_lua_pipeline_box(L)->devices - 1;
  int device = (int)gp_lua_check_int(L, 2, "profile: the device", 0, last);
  gp_lua_check_pipeline(L);
  lua_newtable(L);
  for (size_t i = 0; i < gp_pipeline_profile_count(gp_lua_check_pipeline(L), device); i++) {
    gp_profile_entry entry;
    gp_pipeline_profile_entry(gp_lua_check_pipeline(L), device, i, &entry);
    push_entry(L, &entry);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* p:profile_drop() */
static int profile_drop(lua_State *L) {
  gp_pipeline_profile_drop(gp_lua_check_pipeline(L));
  return 0;
}

/* p:ceiling(device, dtype) -> FLOP per second that a product in the dtype reaches; without a dtype,
 * bytes per second of a copy; nil if the device has no room to measure */
static int ceiling(lua_State *L) {
  double per_second;
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  int last = gp_lua_pipeline_box(L)->devices - 1;
  int device = (int)gp_lua_check_int(L, 2, "ceiling: the device", 0, last);
  gp_dtype dtype = lua_isnoneornil(L, 3) ? GP_U8 : gp_lua_check_dtype(L, 3, "ceiling");
  gp_status status =
      gp_pipeline_ceiling(pipeline, device, lua_isnoneornil(L, 3) ? NULL : &dtype, &per_second);
  if (status) return gp_lua_fail(L, status);
  if (per_second <= 0) return 0;
  lua_pushnumber(L, per_second);
  return 1;
}

/* p:host_link(device) -> {latency =, bandwidth =} of copies to the host's memory and back; nil if
 * the device computes there, or has no room to measure */
static int host_link(lua_State *L) {
  gp_host_link link;
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  int last = gp_lua_pipeline_box(L)->devices - 1;
  int device = (int)gp_lua_check_int(L, 2, "host_link: the device", 0, last);
  gp_status status = gp_pipeline_host_link(pipeline, device, &link);
  if (status) return gp_lua_fail(L, status);
  if (link.bandwidth <= 0) return 0;
  lua_createtable(L, 0, 2);
  gp_lua_set_number(L, "latency", link.latency);
  gp_lua_set_number(L, "bandwidth", link.bandwidth);
  return 1;
}

/* p:ran_warm() -> was the last run an ordinary one, of a plan that had run before? */
static int ran_warm(lua_State *L) {
  lua_pushboolean(L, gp_pipeline_ran_warm(gp_lua_check_pipeline(L)));
  return 1;
}

const luaL_Reg gp_lua_profile_methods[] = {{"profile_begin", profile_begin},
                                           {"profile_end", profile_end},
                                           {"profile_entries", profile_entries},
                                           {"profile_drop", profile_drop},
                                           {"ceiling", ceiling},
                                           {"host_link", host_link},
                                           {"ran_warm", ran_warm},
                                           {NULL, NULL}};
