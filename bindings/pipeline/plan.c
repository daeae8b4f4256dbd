/* bindings/pipeline/plan.c - a plan without a pipeline: for devices that do not exist, or for one
 * of many.
 *
 * The methods by which a pipeline describes its plans (describe.c) also describe it: one object
 * serves as pipeline and plan. It holds no device memory, and the collector frees it. */
#include "pipeline/pipeline.h"

#include "field.h"

/* core.plan_new(pipeline's fields, plan's fields, devices, device from 0, or -1 for all, or -2 for
 * those that are shown) -> plan */
static int plan_new(lua_State *L) {
  gp_pipeline_spec pipeline;
  gp_plan_spec spec;
  lua_settop(L, 4);
  gp_lua_check_pipeline_spec(L, &pipeline);
  const gp_plan_device_spec *devices = gp_lua_push_plan_devices(L, 3, pipeline.device_count);
  int device =
      (int)gp_lua_check_int(L, 4, "plan_new: the device", GP_PLAN_SHOWN, pipeline.device_count - 1);
  gp_lua_pipeline *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (gp_lua_pipeline){.devices = pipeline.device_count,
                           .stages = pipeline.stage_count,
                           .copies = pipeline.copy_count};
  luaL_setmetatable(L, GP_LUA_PLAN);
  int made = lua_gettop(L);
  gp_lua_check_plan_spec(L, false, &spec);
  gp_status status = gp_plan_new(&pipeline, devices, device, &spec, &box->plan);
  if (status) return gp_lua_fail(L, status);
  lua_pushvalue(L, made);
  return 1;
}

/* Check a plan: a finalizer may get one that the collector has already freed. */
static gp_lua_pipeline *check_box(lua_State *L) {
  gp_lua_pipeline *box = luaL_checkudata(L, 1, GP_LUA_PLAN);
  if (!box->plan) gp_lua_error(L, "plan: it is freed, expected a live one");
  return box;
}

/* p:bytes(plan, device) -> bytes of its memory; p:tasks(plan, device) -> actions; 0 if the device
 * is not planned */
static int plan_bytes(lua_State *L) {
  gp_lua_pipeline *box = check_box(L);
  int device = (int)gp_lua_check_int(L, 3, "bytes: the device", 0, box->devices - 1);
  lua_pushinteger(L, (lua_Integer)gp_plan_bytes(box->plan, device));
  return 1;
}

/* p:held(device) -> {parameters, ...}: bytes that a pipeline would hold there beside the plan */
static int plan_held(lua_State *L) {
#define TEXT(name, text) text,
  static const char *const names[] = {GP_HELD_LIST(TEXT)};
#undef TEXT
  size_t bytes[GP_HELD_COUNT];
  gp_lua_pipeline *box = check_box(L);
  int device = (int)gp_lua_check_int(L, 2, "held: the device", 0, gp_plan_devices(box->plan) - 1);
  lua_createtable(L, 0, GP_HELD_COUNT);
  gp_plan_held(check_box(L)->plan, device, bytes);
  for (int k = 0; k < GP_HELD_COUNT; k++) gp_lua_set_int(L, names[k], (int64_t)bytes[k]);
  return 1;
}

static int plan_free(lua_State *L) {
  gp_lua_pipeline *box = luaL_checkudata(L, 1, GP_LUA_PLAN);
  gp_plan *plan = box->plan;
  box->plan = NULL;
  gp_plan_free(plan);
  return 0;
}

static const luaL_Reg methods[] = {{"bytes", plan_bytes}, {"held", plan_held}, {NULL, NULL}};

void gp_lua_open_plan(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_PLAN, plan_free);
  luaL_newlib(L, methods);
  luaL_setfuncs(L, gp_lua_describe_methods, 0);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, plan_new);
  lua_setfield(L, -2, "plan_new");
}
