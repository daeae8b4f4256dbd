/* bindings/schedule/checks.c - questions to a verified schedule: limits, capacity, memory,
 * versions.
 *
 * Tables count devices and stages from 1, like Lua lists; schedule/verify.lua gives them their
 * names. */
#include "schedule/schedule_binding.h"

#include "field.h"

/* Push memory for `count` numbers, zeroed; it lives as long as it is on the stack. */
static int32_t *push_memory(lua_State *L, size_t count) {
  int32_t *memory = lua_newuserdatauv(L, (count + 1) * sizeof *memory, 0);
  for (size_t i = 0; i < count; i++) memory[i] = 0;
  return memory;
}

static size_t holder_count(const gp_schedule *s) {
  return (size_t)gp_schedule_stage_count(s) * (size_t)gp_schedule_copy_count(s);
}

static void push_list(lua_State *L, const int32_t *numbers, size_t count) {
  lua_createtable(L, (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    lua_pushinteger(L, numbers[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* schedule:limit{capacity, versions, buffers, peak_live = {per device}} -> true, or nil, text,
 * check, device, position */
static int schedule_limit(lua_State *L) {
  luaL_checktype(L, 2, LUA_TTABLE);
  gp_schedule_limits limits = {.capacity = (int)gp_lua_int_field(L, 2, "capacity", -1),
                               .versions = (int)gp_lua_int_field(L, 2, "versions", -1),
                               .buffers = (int)gp_lua_int_field(L, 2, "buffers", -1)};
  if (lua_getfield(L, 2, "peak_live") != LUA_TNIL) {
    int count;
    limits.peak_live = gp_lua_push_ints(L, lua_gettop(L), "verify: peak_live", &count);
    luaL_argcheck(L, count == gp_schedule_device_count(gp_lua_check_schedule(L, 1)), 2,
                  "one peak_live for each device");
  }
  gp_schedule_fault fault = {0};
  gp_status status = gp_schedule_limit(gp_lua_check_schedule(L, 1), &limits, &fault);
  if (status == GP_ESCHEDULE) return gp_lua_push_fault(L, &fault);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

/* schedule:capacity() -> the smallest that finishes, the smallest at full speed */
static int schedule_capacity(lua_State *L) {
  int works, full_speed;
  gp_status status = gp_schedule_capacity(gp_lua_check_schedule(L, 1), &works, &full_speed);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_pushinteger(L, works);
  lua_pushinteger(L, full_speed);
  return 2;
}

typedef gp_status (*peak_finder)(const gp_schedule *, int32_t *, int32_t *);

static int push_peaks(lua_State *L, peak_finder find) {
  const gp_schedule *s = gp_lua_check_schedule(L, 1);
  size_t devices = (size_t)gp_schedule_device_count(s), holders = holder_count(s);
  int32_t *device = push_memory(L, devices), *stage = push_memory(L, holders);
  gp_status status = find(s, device, stage);
  if (status != GP_OK) return gp_lua_fail(L, status);
  push_list(L, device, devices);
  push_list(L, stage, holders);
  return 2;
}

/* schedule:peaks() -> {per device}, {stage after stage, copy after copy} */
static int schedule_peaks(lua_State *L) { return push_peaks(L, gp_schedule_peaks); }

/* schedule:carried() -> the same of what I leaves for W */
static int schedule_carried(lua_State *L) { return push_peaks(L, gp_schedule_carried); }

/* schedule:moments(device, away) -> {{numbers stage after stage}, ...}: see gp_schedule_moments */
static int schedule_moments(lua_State *L) {
  const gp_schedule *s = gp_lua_check_schedule(L, 1);
  const int device =
      (int)gp_lua_check_int(L, 2, "moments: the device", 0, gp_schedule_device_count(s) - 1);
  gp_held_moments held;
  gp_status status = gp_schedule_moments(s, device, lua_toboolean(L, 3), &held);
  if (status != GP_OK) {
    gp_held_moments_free(&held);
    return gp_lua_fail(L, status);
  }
  lua_createtable(L, held.count, 0);
  for (int32_t r = 0; r < held.count; r++) {
    push_list(L, &held.rows[r * held.width], (size_t)held.width);
    lua_rawseti(L, -2, r + 1);
  }
  gp_held_moments_free(&held);
  return 1;
}

/* schedule:versions() -> {stage after stage, copy after copy} */
static int schedule_versions(lua_State *L) {
  size_t holders = holder_count(gp_lua_check_schedule(L, 1));
  int32_t *live = push_memory(L, holders);
  gp_status status = gp_schedule_versions(gp_lua_check_schedule(L, 1), live);
  if (status != GP_OK) return gp_lua_fail(L, status);
  push_list(L, live, holders);
  return 1;
}

/* schedule:slots() -> {stage after stage, micro-batch after micro-batch}, {slots per stage and
 * copy} */
static int schedule_slots(lua_State *L) {
  const gp_schedule *s = gp_lua_check_schedule(L, 1);
  size_t cells = (size_t)gp_schedule_stage_count(s) * (size_t)gp_schedule_micro_count(s);
  size_t holders = holder_count(s);
  int32_t *slot = push_memory(L, cells), *count = push_memory(L, holders);
  gp_status status = gp_schedule_slots(gp_lua_check_schedule(L, 1), slot, count);
  if (status != GP_OK) return gp_lua_fail(L, status);
  push_list(L, slot, cells);
  push_list(L, count, holders);
  return 2;
}

/* schedule:micros() -> how many micro-batches its lists have, those of all mini-batches */
static int schedule_micros(lua_State *L) {
  lua_pushinteger(L, gp_schedule_micro_count(gp_lua_check_schedule(L, 1)));
  return 1;
}

const luaL_Reg gp_lua_schedule_checks[] = {
    {"limit", schedule_limit},     {"capacity", schedule_capacity}, {"peaks", schedule_peaks},
    {"carried", schedule_carried}, {"moments", schedule_moments},   {"versions", schedule_versions},
    {"slots", schedule_slots},     {"micros", schedule_micros},     {NULL, NULL}};
