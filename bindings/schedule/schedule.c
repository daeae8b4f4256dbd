/* bindings/schedule/schedule.c - makes a verified schedule from lists of actions and a placement.
 *
 * A wrong schedule is an ordinary answer here, not an error: a user or a search tries schedules in
 * a loop, so the fault is returned as values. */
#include "schedule/schedule_binding.h"

#include "field.h"

gp_schedule *gp_lua_check_schedule(lua_State *L, int index) {
  gp_schedule **box = luaL_checkudata(L, index, GP_LUA_SCHEDULE);
  if (!*box) gp_lua_error(L, "schedule: it was freed, expected a live one");
  return *box;
}

gp_schedule **gp_lua_new_schedule(lua_State *L) {
  gp_lua_collect_when_due(L);
  gp_schedule **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, GP_LUA_SCHEDULE);
  return box;
}

int gp_lua_push_fault(lua_State *L, const gp_schedule_fault *fault) {
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

/* core.schedule(rows, placement, {copies, batch, micros, replicas, replica_micros}) -> schedule, or
 * nil, text, check, device, position.
 *
 * placement: stage after stage, `copies` devices each; batch: micro-batches per update, 0:
 * synchronous; micros: how many micro-batches there must be, 0: any number; replicas of
 * replica_micros micro-batches each */
static int schedule_new(lua_State *L) {
  gp_schedule_spec spec = {.rows = gp_lua_check_rows(L, 1)};
  int entries;
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  spec.copy_count = gp_lua_range_field(L, 3, "copies", 1, 1, 2 * GP_MOST_REPLICAS);
  spec.replicas = gp_lua_range_field(L, 3, "replicas", 1, 1, GP_MOST_REPLICAS);
  spec.replica_micros = gp_lua_range_field(L, 3, "replica_micros", 0, 0, INT32_MAX);
  spec.batch = gp_lua_range_field(L, 3, "batch", 0, 0, INT32_MAX);
  spec.micro_count = gp_lua_range_field(L, 3, "micros", 0, 0, INT32_MAX);
  spec.placement = gp_lua_push_ints(L, 2, "schedule: placement", &entries);
  spec.stage_count = entries / spec.copy_count;
  gp_schedule **box = gp_lua_new_schedule(L);
  gp_schedule_fault fault = {0};
  gp_status status = gp_schedule_new(&spec, box, &fault);
  if (status == GP_ESCHEDULE) return gp_lua_push_fault(L, &fault);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* Idempotent, because a finalizer may run again when the state is closed. */
static int schedule_free(lua_State *L) {
  gp_schedule **box = luaL_checkudata(L, 1, GP_LUA_SCHEDULE);
  gp_schedule *schedule = *box;
  *box = NULL;
  gp_schedule_free(schedule);
  return 0;
}

/* schedule:part(backward) -> a schedule of its forward passes alone, or of these first and then its
 * backward passes */
static int schedule_part(lua_State *L) {
  lua_settop(L, 2);
  gp_schedule **box = gp_lua_new_schedule(L);
  gp_status status = gp_schedule_part(gp_lua_check_schedule(L, 1), lua_toboolean(L, 2), box);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* The list of the device at index 2. */
static const gp_action *check_list(lua_State *L, int *count) {
  const gp_schedule *s = gp_lua_check_schedule(L, 1);
  const int most = gp_schedule_device_count(s) - 1;
  return gp_schedule_get(s, (int)gp_lua_check_int(L, 2, "schedule: the device", 0, most), count);
}

/* schedule:text(device) -> "0F0,0F1,...", as rows have it */
static int schedule_text(lua_State *L) {
  int count;
  const gp_action *actions = check_list(L, &count);
  gp_lua_push_actions(L, actions, count);
  return 1;
}

/* schedule:count(device, "R") -> how many actions of the device have this op, likewise */
static int schedule_count(lua_State *L) {
  int count;
  const gp_action *actions = check_list(L, &count);
  gp_lua_push_count(L, 3, actions, count);
  return 1;
}

/* schedule:rows() -> its lists as core.rows, to append to */
static int schedule_rows(lua_State *L) {
  const gp_schedule *s = gp_lua_check_schedule(L, 1);
  gp_rows **box = gp_lua_new_rows(L);
  gp_status status = gp_rows_new(gp_schedule_device_count(s), box);
  for (int d = 0; !status && d < gp_schedule_device_count(s); d++) {
    int count;
    const gp_action *actions = gp_schedule_get(s, d, &count);
    for (int i = 0; !status && i < count; i++) status = gp_rows_add(*box, d, &actions[i]);
  }
  return status ? gp_lua_fail(L, status) : 1;
}

/* #schedule: the number of devices */
static int schedule_length(lua_State *L) {
  lua_pushinteger(L, gp_schedule_device_count(gp_lua_check_schedule(L, 1)));
  return 1;
}

static const luaL_Reg methods[] = {{"part", schedule_part},
                                   {"text", schedule_text},
                                   {"rows", schedule_rows},
                                   {"count", schedule_count},
                                   {NULL, NULL}};

int gp_open_schedule(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_SCHEDULE, schedule_free);
  lua_pushcfunction(L, schedule_length);
  lua_setfield(L, -2, "__len");
  luaL_newlib(L, methods);
  luaL_setfuncs(L, gp_lua_schedule_checks, 0);
  luaL_setfuncs(L, gp_lua_schedule_passes, 0);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, schedule_new);
  lua_setfield(L, -2, "schedule");
  gp_lua_push_remats(L); /* core.checkpoints */
  lua_setfield(L, -2, "checkpoints");
  return 0;
}
