/* bindings/schedule/passes.c - schedules made from schedules: sends and receives added, I and W
 * merged. */
#include "field.h"
#include "schedule/schedule_binding.h"

static int push_pass(lua_State *L, gp_status (*pass)(const gp_schedule *s, gp_rows **rows)) {
  gp_rows **box = gp_lua_new_rows(L);
  gp_status status = pass(gp_lua_check_schedule(L, 1), box);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* schedule:comms() -> rows with the sends and receives */
static int schedule_comms(lua_State *L) { return push_pass(L, gp_schedule_comms); }

/* schedule:merged() -> rows with B in place of I and W that directly follow each other */
static int schedule_merged(lua_State *L) { return push_pass(L, gp_schedule_merged); }

/* schedule:compute() -> rows without what lowering adds */
static int schedule_compute(lua_State *L) { return push_pass(L, gp_schedule_compute); }

#define TEXT(name, text) text,
static const char *const checkpoints[] = {GP_REMAT_LIST(TEXT) NULL};
#undef TEXT

gp_remat gp_lua_check_remat(lua_State *L, int index) {
  return (gp_remat)luaL_checkoption(L, index, NULL, checkpoints);
}

void gp_lua_push_remats(lua_State *L) {
  lua_createtable(L, GP_REMAT_COUNT, 0);
  for (int i = 0; i < GP_REMAT_BY_LAYER; i++) { /* the last one has no name: it is a list */
    lua_pushstring(L, checkpoints[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

/* schedule:lowered(checkpoint, update, {tied, norm, clip}) -> a schedule with recomputation,
 * ascending W, reductions, norms, updates; nil: its own actions are as they would be; nil and a
 * text: it cannot be lowered */
static int schedule_lowered(lua_State *L) {
  static const char *const updates[] = {"none", "barrier", "free", NULL};
  gp_lower_options options = {.remat = gp_lua_check_remat(L, 2),
                              .update = (gp_update_mode)luaL_checkoption(L, 3, "none", updates)};
  luaL_checktype(L, 4, LUA_TTABLE);
  options.tied = gp_lua_flag_field(L, 4, "tied");
  options.norm = gp_lua_flag_field(L, 4, "norm");
  options.clip = gp_lua_flag_field(L, 4, "clip");
  gp_schedule **box = gp_lua_new_schedule(L);
  gp_status status = gp_schedule_lowered(gp_lua_check_schedule(L, 1), &options, box);
  if (status != GP_OK && status != GP_ESCHEDULE) return gp_lua_fail(L, status);
  if (!*box) lua_pushnil(L);
  if (status == GP_OK) return 1;
  lua_pushstring(L, gp_error_text());
  return 2;
}

/* schedule:steps() -> the number of steps, in which each device runs one action */
static int schedule_steps(lua_State *L) {
  int steps;
  gp_status status = gp_schedule_steps(gp_lua_check_schedule(L, 1), NULL, &steps);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_pushinteger(L, steps);
  return 1;
}

const luaL_Reg gp_lua_schedule_passes[] = {
    {"comms", schedule_comms},     {"merged", schedule_merged}, {"compute", schedule_compute},
    {"lowered", schedule_lowered}, {"steps", schedule_steps},   {NULL, NULL}};
