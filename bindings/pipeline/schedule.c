/* bindings/pipeline/schedule.c - rows of text -> a verified schedule.
 *
 * A schedule that is wrong is an ordinary answer here, not an error: whoever writes one (a person,
 * a search) asks in a loop, so the fault comes back as values. */
#include "pipeline/pipeline.h"

#include "field.h"

gp_schedule *gp_lua_check_schedule(lua_State *L, int index) {
  return *(gp_schedule **)luaL_checkudata(L, index, GP_LUA_SCHEDULE);
}

/* Pointers to the strings of the list at index, which keeps them alive. */
static const char **check_rows(lua_State *L, int index, int count) {
  const char **rows = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *rows, 0);
  for (int d = 0; d < count; d++) {
    if (lua_rawgeti(L, index, d + 1) != LUA_TSTRING)
      gp_lua_bad_value(L, -1, "schedule: a row", "text such as \"0F0,0B0\"");
    rows[d] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return rows;
}

/* Push check, device and position (from 1) of a fault; nil where there is none. */
static int push_fault(lua_State *L, const gp_schedule_fault *fault) {
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  lua_pushstring(L, fault->check);
  lua_pushinteger(L, fault->device);
  if (fault->position < 0)
    lua_pushnil(L);
  else
    lua_pushinteger(L, fault->position + 1);
  return 5;
}

/* core.schedule(rows, placement) -> schedule, or nil, text, check, device, position */
static int schedule_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  gp_schedule_text text = {.device_count = (int)lua_rawlen(L, 1)};
  text.rows = check_rows(L, 1, text.device_count);
  text.placement = gp_lua_push_ints(L, 2, "schedule: placement", &text.stage_count);
  gp_schedule **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, GP_LUA_SCHEDULE);
  gp_schedule_fault fault = {0};
  gp_status status = gp_schedule_parse(&text, box, &fault);
  if (status == GP_ESCHEDULE) return push_fault(L, &fault);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* Idempotent: a finalizer may run again when the state is closed. */
static int schedule_free(lua_State *L) {
  gp_schedule **box = luaL_checkudata(L, 1, GP_LUA_SCHEDULE);
  gp_schedule *schedule = *box;
  *box = NULL;
  gp_schedule_free(schedule);
  return 0;
}

int gp_open_schedule(lua_State *L) {
  luaL_newmetatable(L, GP_LUA_SCHEDULE);
  lua_pushcfunction(L, schedule_free);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  lua_pushcfunction(L, schedule_new);
  lua_setfield(L, -2, "schedule");
  return 0;
}
