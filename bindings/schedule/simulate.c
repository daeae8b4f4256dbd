/* bindings/schedule/simulate.c - computes when everything runs, from a verified schedule and costs.
 *
 * Results stay in C: a thousand devices have millions of actions, and a script looks at a few. */
#include "field.h"
#include "schedule/schedule_binding.h"

static gp_simulation *check_simulation(lua_State *L, int index) {
  gp_simulation **box = luaL_checkudata(L, index, GP_LUA_SIMULATION);
  if (!*box) gp_lua_error(L, "simulation: it was freed, expected a live one");
  return *box;
}

/* The simulation at 1 and its schedule; *device receives its device at 2. */
static gp_simulation *check_device(lua_State *L, int *device, const gp_schedule **schedule) {
  gp_simulation *simulation = check_simulation(L, 1);
  lua_getiuservalue(L, 1, 1);
  *schedule = gp_lua_check_schedule(L, lua_gettop(L));
  lua_pop(L, 1);
  *device = (int)gp_lua_check_int(L, 2, "simulation: the device", 0,
                                  gp_schedule_device_count(*schedule) - 1);
  return simulation;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* The list in a field as an array, which stays on the stack; NULL if it is missing. */
static const double *push_numbers(lua_State *L, int index, const char *name, size_t count) {
  luaL_checkstack(L, 4, "costs");
  if (lua_getfield(L, index, name) == LUA_TNIL) return lua_pop(L, 1), NULL;
  luaL_checktype(L, -1, LUA_TTABLE);
  if (lua_rawlen(L, -1) != count)
    gp_lua_error(L, "simulate: %s has %d numbers, expected %d", name, (int)lua_rawlen(L, -1),
                 (int)count);
  double *values = lua_newuserdatauv(L, (count + 1) * sizeof *values, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, -2, (lua_Integer)i + 1);
    values[i] = gp_lua_check_number(L, lua_gettop(L), name);
    lua_pop(L, 1);
  }
  lua_remove(L, -2);
  return values;
}

/* Read the field `gathers` of the costs: {F = {...}, ...}, how often actions gather from the other
 * replicas. The arrays stay on the stack. */
static void push_gathers(lua_State *L, int index, const char *const *ops, gp_costs *costs) {
  luaL_checkstack(L, 4, "costs");
  if (lua_getfield(L, index, "gathers") == LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  luaL_checktype(L, -1, LUA_TTABLE);
  const int at = lua_gettop(L);
  for (int op = 0; op < GP_ACT_IDLE; op++)
    costs->gathers[op] = push_numbers(L, at, ops[op], (size_t)costs->stage_count);
}

/* The arrays are pushed, so they live until the caller returns. */
static gp_costs push_costs(lua_State *L, int index) {
#define TEXT(name, text) text,
  static const char *const ops[] = {GP_ACT_LIST(TEXT)};
#undef TEXT
  gp_costs costs = {.stage_count = (int)gp_lua_int_field(L, index, "stages", 0),
                    .joined = gp_lua_number_field(L, index, "joined"),
                    .exchange = gp_lua_number_field(L, index, "exchange"),
                    .blocking = gp_lua_flag_field(L, index, "blocking"),
                    .barrier = gp_lua_flag_field(L, index, "barrier"),
                    .times_only = gp_lua_flag_field(L, index, "times_only"),
                    .capacity = (int)gp_lua_int_field(L, index, "capacity", -1)};
  luaL_argcheck(L, costs.stage_count > 0, index, "costs.stages is missing");
  size_t stages = (size_t)costs.stage_count;
  for (int op = 0; op < GP_ACT_IDLE; op++) costs.act[op] = push_numbers(L, index, ops[op], stages);
  costs.hop[0] = push_numbers(L, index, "hop_forward", stages - 1);
  costs.hop[1] = push_numbers(L, index, "hop_backward", stages - 1);
  costs.busy[0] = push_numbers(L, index, "busy_forward", stages - 1);
  costs.busy[1] = push_numbers(L, index, "busy_backward", stages - 1);
  costs.credit[0] = push_numbers(L, index, "credit_forward", stages - 1);
  costs.credit[1] = push_numbers(L, index, "credit_backward", stages - 1);
  costs.away = push_numbers(L, index, "away", stages);
  costs.sums = push_numbers(L, index, "sums", stages);
  costs.values = push_numbers(L, index, "values", stages);
  costs.activation = push_numbers(L, index, "activation", stages);
  costs.after_input = push_numbers(L, index, "after_input", stages);
  costs.resident = push_numbers(L, index, "resident", stages);
  costs.version = push_numbers(L, index, "version", stages);
  push_gathers(L, index, ops, &costs);
  return costs;
}

/* Read the field `noise` of the costs: {action, travel, stragglers, slowdown, seed, draw, slow}.
 * Returns whether there is one; the list `slow` stays on the stack. */
static bool push_noise(lua_State *L, int index, int devices, gp_noise *noise) {
  if (lua_getfield(L, index, "noise") == LUA_TNIL) return lua_pop(L, 1), false;
  luaL_checktype(L, -1, LUA_TTABLE);
  const int at = lua_gettop(L);
  *noise = (gp_noise){.action = gp_lua_number_field(L, at, "action"),
                      .travel = gp_lua_number_field(L, at, "travel"),
                      .stragglers = gp_lua_number_field(L, at, "stragglers"),
                      .slowdown = gp_lua_number_field(L, at, "slowdown"),
                      .seed = (uint64_t)gp_lua_int_field(L, at, "seed", 0),
                      .draw = (uint32_t)gp_lua_int_field(L, at, "draw", 0),
                      .device_count = devices};
  noise->slow = push_numbers(L, at, "slow", (size_t)devices);
  return true;
}

/* core.simulate(schedule, costs) -> simulation; costs: {stages =, F = {...}, hop_forward = {...},
 * ...}, lists with one number per stage, for edges one less.
 *
 * The simulation keeps the schedule as its user value, because it reads its actions. */
static int simulate(lua_State *L) {
  gp_lua_check_schedule(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  gp_lua_collect_when_due(L);
  gp_simulation **box = lua_newuserdatauv(L, sizeof *box, 1);
  *box = NULL;
  luaL_setmetatable(L, GP_LUA_SIMULATION);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 3, 1);
  gp_costs costs = push_costs(L, 2);
  gp_noise noise;
  const int devices = gp_schedule_device_count(gp_lua_check_schedule(L, 1));
  if (push_noise(L, 2, devices, &noise)) costs.noise = &noise;
  gp_status status = gp_simulation_new(gp_lua_check_schedule(L, 1), &costs, box);
  if (status != GP_OK) return gp_lua_fail(L, status);
  return lua_pushvalue(L, 3), 1;
}

/* core.simulate_ends(schedule, costs, count) -> the ends of `count` runs with the noise of the
 * costs, of which `costs.tails` is added behind each device's list */
static int simulate_ends(lua_State *L) {
  const int devices = gp_schedule_device_count(gp_lua_check_schedule(L, 1));
  luaL_checktype(L, 2, LUA_TTABLE);
  const int count = (int)gp_lua_check_int(L, 3, "simulate: the count", 0, INT32_MAX);
  lua_settop(L, 3);
  gp_costs costs = push_costs(L, 2);
  gp_noise noise;
  if (push_noise(L, 2, devices, &noise)) costs.noise = &noise;
  const double *tails = push_numbers(L, 2, "tails", (size_t)devices);
  double *ends = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *ends, 0);
  gp_status status = gp_simulation_sample(gp_lua_check_schedule(L, 1), &costs, tails, count, ends);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    lua_pushnumber(L, ends[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* ---- methods --------------------------------------------------------------------------------- */

/* simulation:total() -> makespan, span */
static int simulation_total(lua_State *L) {
  const gp_simulation *simulation = check_simulation(L, 1);
  lua_pushnumber(L, gp_simulation_makespan(simulation));
  lua_pushnumber(L, gp_simulation_span(simulation));
  return 2;
}

/* simulation:device(device) -> begin, end, work, peak_live, peak_bytes, versions */
static int simulation_device(lua_State *L) {
  int device;
  const gp_schedule *schedule;
  const gp_simulation *simulation = check_device(L, &device, &schedule);
  const gp_device_load *load = gp_simulation_device(simulation, device);
  lua_pushnumber(L, load->begin);
  lua_pushnumber(L, load->end);
  lua_pushnumber(L, load->work);
  lua_pushinteger(L, load->peak_live);
  lua_pushnumber(L, load->peak_bytes);
  lua_pushinteger(L, load->versions);
  return 6;
}

/* simulation:timeline(device) -> list of {op, stage, micro, version, begin, finish, joined},
 * without empty cells; joined: with the next one */
static int simulation_timeline(lua_State *L) {
  int device, count;
  const gp_schedule *schedule;
  const gp_simulation *simulation = check_device(L, &device, &schedule);
  const gp_action *actions = gp_schedule_get(schedule, device, &count);
  const double *begin, *finish;
  gp_simulation_times(simulation, device, &begin, &finish);
  if (!begin) gp_lua_error(L, "timeline: the times of a planner's simulation are not kept");
  lua_createtable(L, count, 0);
  for (int i = 0, shown = 0; i < count; i++) {
    if (actions[i].op == GP_ACT_IDLE) continue;
    gp_lua_push_timed(L, &actions[i], begin[i], finish[i]);
    if (actions[i].joined) {
      lua_pushboolean(L, true);
      lua_setfield(L, -2, "joined");
    }
    lua_rawseti(L, -2, ++shown);
  }
  return 1;
}

/* simulation:shed() forgets the times of single actions */
static int simulation_shed(lua_State *L) {
  gp_simulation **box = luaL_checkudata(L, 1, GP_LUA_SIMULATION);
  if (*box) gp_simulation_shed(*box);
  return 0;
}

/* simulation:critical(limit) -> list of {op, ..., device, after}, length of the whole critical
 * path */
static int simulation_critical(lua_State *L) {
  static const char *const reasons[] = {
      [GP_BY_START] = "start",     [GP_BY_DEVICE] = "device", [GP_BY_VALUE] = "value",
      [GP_BY_CHANNEL] = "channel", [GP_BY_COPY] = "copy",
  };
  const gp_simulation *simulation = check_simulation(L, 1);
  int length, limit = (int)gp_lua_check_int(L, 2, "simulation: the limit", 0, INT32_MAX), ignored;
  lua_getiuservalue(L, 1, 1);
  const gp_schedule *schedule = gp_lua_check_schedule(L, lua_gettop(L));
  const gp_critical *path = gp_simulation_critical(simulation, &length);
  lua_createtable(L, length < limit ? length : limit, 0);
  for (int i = 0; i < length && i < limit; i++) {
    const gp_action *actions = gp_schedule_get(schedule, path[i].device, &ignored);
    gp_lua_push_timed(L, &actions[path[i].position], path[i].begin, path[i].finish);
    gp_lua_set_int(L, "device", path[i].device);
    lua_pushstring(L, reasons[path[i].reason]);
    lua_setfield(L, -2, "after");
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushinteger(L, length);
  return 2;
}

/* Idempotent, because a finalizer may run again when the state is closed. */
static int simulation_free(lua_State *L) {
  gp_simulation **box = luaL_checkudata(L, 1, GP_LUA_SIMULATION);
  gp_simulation *simulation = *box;
  *box = NULL;
  gp_simulation_free(simulation);
  return 0;
}

static const luaL_Reg methods[] = {
    {"total", simulation_total},       {"device", simulation_device},
    {"timeline", simulation_timeline}, {"critical", simulation_critical},
    {"shed", simulation_shed},         {NULL, NULL}};

int gp_open_simulation(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_SIMULATION, simulation_free);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, simulate);
  lua_setfield(L, -2, "simulate");
  lua_pushcfunction(L, simulate_ends);
  lua_setfield(L, -2, "simulate_ends");
  return 0;
}
