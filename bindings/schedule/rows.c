/* bindings/schedule/rows.c - lists of actions to which generators append: `rows:F(device, stage,
 * micro)`.
 *
 * Building a schedule of a thousand devices takes millions of calls, so a method only checks its
 * numbers and appends. */
#include <string.h>

#include "schedule/schedule_binding.h"

#include "field.h"

gp_rows *gp_lua_check_rows(lua_State *L, int index) {
  gp_rows **box = luaL_checkudata(L, index, GP_LUA_ROWS);
  if (!*box) gp_lua_error(L, "rows: they were freed, expected live ones");
  return *box;
}

enum { MOST_NUMBER = 999999 };

/* A number from 0 on; -1 if it is missing and optional. */
static int32_t check_number(lua_State *L, int index, const char *what, bool optional) {
  int whole;
  lua_Integer n = lua_tointegerx(L, index, &whole);
  if (optional && lua_isnoneornil(L, index)) return -1;
  if (!whole || n < 0 || n > MOST_NUMBER) gp_lua_bad_value(L, index, what, "an integer, 0..999999");
  return (int32_t)n;
}

/* stage, micro, version at index, index + 1, index + 2 */
static gp_action check_action(lua_State *L, int index, int op) {
  return (gp_action){.op = (uint8_t)op,
                     .stage = check_number(L, index, "rows: the stage", false),
                     .micro = check_number(L, index + 1, "rows: the micro-batch", false),
                     .version = -1};
}

static void append(lua_State *L, gp_rows *rows, const gp_action *action) {
  gp_status status = gp_rows_add(rows, check_number(L, 2, "rows: the device", false), action);
  if (status) gp_lua_fail(L, status);
}

/* By op. */
#define NAME(name, text) #name,
static const char *const names[] = {GP_ACT_LIST(NAME) NULL};
#undef NAME

/* rows:F(device, stage, micro, version | nil) and the other letters; upvalue 1: the op */
static int rows_add(lua_State *L) {
  gp_rows *rows = gp_lua_check_rows(L, 1);
  gp_action action = check_action(L, 3, (int)lua_tointeger(L, lua_upvalueindex(1)));
  action.version = check_number(L, 5, "rows: the version", true);
  append(L, rows, &action);
  return 0;
}

/* Append the actions so many times, each time with the micro-batches behind the last ones. */
static void append_series(lua_State *L, gp_action *actions, int kinds, int32_t times) {
  gp_rows *rows = gp_lua_check_rows(L, 1);
  for (int32_t i = 0; i < times; i++)
    for (int k = 0; k < kinds; k++) {
      append(L, rows, &actions[k]);
      actions[k].micro++;
    }
}

/* rows:series(device, times, "F", stage, micro, ...): append these actions so many times, each time
 * with the micro-batches behind the last ones. One call in the place of thousands. */
static int rows_series(lua_State *L) {
  enum { MOST = 3, FIRST = 4, EACH = 3 };
  static const char *const letters[] = {"F", "B", "I", "W", NULL};
  gp_action actions[MOST];
  const int kinds = (lua_gettop(L) - FIRST + 1) / EACH;
  const int32_t times = check_number(L, 3, "rows: the times", false);
  luaL_argcheck(L, kinds >= 1 && kinds <= MOST && lua_gettop(L) == FIRST + EACH * kinds - 1, FIRST,
                "expected one to three actions: an op, a stage and a micro-batch each");
  for (int k = 0; k < kinds; k++) {
    const int at = FIRST + EACH * k;
    actions[k] = check_action(L, at + 1, luaL_checkoption(L, at, NULL, letters));
    if (actions[k].micro > MOST_NUMBER + 1 - times)
      gp_lua_bad_value(L, at + 2, "rows: the micro-batch", "the last one to be at most 999999");
  }
  append_series(L, actions, kinds, times);
  return 0;
}

void gp_lua_push_count(lua_State *L, int index, const gp_action *actions, int count) {
  const gp_act op = (gp_act)luaL_checkoption(L, index, NULL, names);
  int found = 0;
  for (int i = 0; i < count; i++) found += actions[i].op == op;
  lua_pushinteger(L, found);
}

/* rows:count(device, "R") -> how many actions of the device have this op */
static int rows_count(lua_State *L) {
  const gp_rows *rows = gp_lua_check_rows(L, 1);
  int count,
      device = (int)gp_lua_check_int(L, 2, "rows: the device", 0, gp_rows_device_count(rows) - 1);
  const gp_action *actions = gp_rows_get(rows, device, &count);
  gp_lua_push_count(L, 3, actions, count);
  return 1;
}

/* rows:idle(device): an empty cell */
static int rows_idle(lua_State *L) {
  gp_action action = {.op = GP_ACT_IDLE, .stage = -1, .micro = -1, .version = -1};
  append(L, gp_lua_check_rows(L, 1), &action);
  return 0;
}

/* rows:join(device, "F", stage, micro, "B", stage, micro): join two actions into one */
static int rows_join(lua_State *L) {
  static const char *const letters[] = {"F", "B", "I", "W", NULL};
  gp_rows *rows = gp_lua_check_rows(L, 1);
  gp_action one = check_action(L, 4, luaL_checkoption(L, 3, NULL, letters));
  gp_action two = check_action(L, 7, luaL_checkoption(L, 6, NULL, letters));
  one.joined = true;
  append(L, rows, &one);
  append(L, rows, &two);
  return 0;
}

/* rows:read(device, text) -> true, or nil, text, position (from 1) of the first text that is no
 * action */
static int rows_read(lua_State *L) {
  int position = 0, device = check_number(L, 2, "rows: the device", false);
  size_t length;
  const char *text = luaL_checklstring(L, 3, &length);
  if (strlen(text) < length) {
    lua_pushnil(L);
    lua_pushfstring(L, "a NUL behind %d characters", (int)strlen(text));
    lua_pushinteger(L, (lua_Integer)strlen(text) + 1);
    return 3;
  }
  gp_status status = gp_rows_read(gp_lua_check_rows(L, 1), device, text, &position);
  if (status != GP_OK && status != GP_ESCHEDULE) return gp_lua_fail(L, status);
  if (status == GP_OK) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  lua_pushinteger(L, position + 1);
  return 3;
}

/* rows:take(other, device, micros, own, all): append the lists of `other`, the first one to that
 * device, with micro-batches counted from `micros` on. Updates keep their numbers. own: micro-
 * batches of `other` in a mini-batch of `all`; both are 0 where there is one mini-batch. */
static int rows_take(lua_State *L) {
  gp_rows *rows = gp_lua_check_rows(L, 1);
  const gp_rows *other = gp_lua_check_rows(L, 2);
  const int32_t first = check_number(L, 3, "rows: the device", false);
  const int32_t micros = check_number(L, 4, "rows: the micro-batch", false);
  const int32_t own = check_number(L, 5, "rows: the micro-batches of a replica", false);
  const int32_t all = check_number(L, 6, "rows: the micro-batches of all", false);
  luaL_argcheck(L, other != rows, 2, "the same rows");
  for (int d = 0; d < gp_rows_device_count(other); d++) {
    int count;
    const gp_action *actions = gp_rows_get(other, d, &count);
    for (int i = 0; i < count; i++) {
      gp_action moved = actions[i];
      const bool counts = moved.micro >= 0 && moved.op != GP_ACT_U;
      if (counts && own) moved.micro = moved.micro / own * all + moved.micro % own;
      if (counts) moved.micro += micros;
      gp_status status = gp_rows_add(rows, first + d, &moved);
      if (status) gp_lua_fail(L, status);
    }
  }
  return 0;
}

/* rows:take_updates(other, device): append the updates of `other` alone, those of the first list to
 * that device. */
static int rows_take_updates(lua_State *L) {
  gp_rows *rows = gp_lua_check_rows(L, 1);
  const gp_rows *other = gp_lua_check_rows(L, 2);
  const int32_t first = check_number(L, 3, "rows: the device", false);
  luaL_argcheck(L, other != rows, 2, "the same rows");
  for (int d = 0; d < gp_rows_device_count(other); d++) {
    int count;
    const gp_action *actions = gp_rows_get(other, d, &count);
    for (int i = 0; i < count; i++) {
      gp_status status = GP_OK;
      if (actions[i].op == GP_ACT_U) status = gp_rows_add(rows, first + d, &actions[i]);
      if (status) gp_lua_fail(L, status);
    }
  }
  return 0;
}

/* rows:repeated(other, micros, steps): append the lists of `other`, those of a mini-batch of as
 * many micro-batches, once for each of `steps` mini-batches of a stream, with updates. */
static int rows_repeated(lua_State *L) {
  gp_rows *rows = gp_lua_check_rows(L, 1);
  const gp_rows *other = gp_lua_check_rows(L, 2);
  const int32_t micros = check_number(L, 3, "rows: the micro-batches of a mini-batch", false);
  const int32_t steps = check_number(L, 4, "rows: the mini-batches", false);
  luaL_argcheck(L, other != rows, 2, "the same rows");
  luaL_argcheck(L, gp_rows_device_count(other) == gp_rows_device_count(rows), 2, "other devices");
  const gp_status status = gp_rows_repeat(rows, other, micros, steps);
  return status ? gp_lua_fail(L, status) : 0;
}

/* #rows: the number of devices */
static int rows_length(lua_State *L) {
  lua_pushinteger(L, gp_rows_device_count(gp_lua_check_rows(L, 1)));
  return 1;
}

void gp_lua_push_actions(lua_State *L, const gp_action *actions, int count) {
  luaL_Buffer buffer;
  size_t length = gp_rows_print(actions, count, NULL, 0);
  gp_rows_print(actions, count, luaL_buffinitsize(L, &buffer, length + 1), length + 1);
  luaL_pushresultsize(&buffer, length);
}

void gp_lua_push_timed(lua_State *L, const gp_action *action, double begin, double finish) {
  lua_createtable(L, 0, 7);
  lua_pushstring(L, gp_act_name((gp_act)action->op));
  lua_setfield(L, -2, "op");
  if (action->stage >= 0) gp_lua_set_int(L, "stage", action->stage);
  if (action->micro >= 0) gp_lua_set_int(L, "micro", action->micro);
  if (action->version >= 0) gp_lua_set_int(L, "version", action->version);
  gp_lua_set_number(L, "begin", begin);
  gp_lua_set_number(L, "finish", finish);
}

/* rows:text(device) -> "0F0,0F1,..." */
static int rows_text(lua_State *L) {
  gp_rows *rows = gp_lua_check_rows(L, 1);
  int count, device = check_number(L, 2, "rows: the device", false);
  luaL_argcheck(L, device < gp_rows_device_count(rows), 2, "no such device");
  const gp_action *actions = gp_rows_get(rows, device, &count);
  gp_lua_push_actions(L, actions, count);
  return 1;
}

gp_rows **gp_lua_new_rows(lua_State *L) {
  gp_rows **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, GP_LUA_ROWS);
  return box;
}

/* core.rows(devices) -> rows */
static int rows_new(lua_State *L) {
  int devices = (int)gp_lua_check_int(L, 1, "rows: devices", 1, 999999);
  gp_rows **box = gp_lua_new_rows(L);
  gp_status status = gp_rows_new(devices, box);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* Idempotent, because a finalizer may run again when the state is closed. */
static int rows_free(lua_State *L) {
  gp_rows **box = luaL_checkudata(L, 1, GP_LUA_ROWS);
  gp_rows *rows = *box;
  *box = NULL;
  gp_rows_free(rows);
  return 0;
}

static const luaL_Reg methods[] = {
    {"count", rows_count}, {"idle", rows_idle},         {"join", rows_join},
    {"read", rows_read},   {"repeated", rows_repeated}, {"series", rows_series},
    {"take", rows_take},   {"text", rows_text},         {"take_updates", rows_take_updates},
    {NULL, NULL}};

int gp_open_rows(lua_State *L) {
  static const gp_act named[] = {GP_ACT_F,      GP_ACT_B,     GP_ACT_I,      GP_ACT_W,
                                 GP_ACT_R,      GP_ACT_U,     GP_ACT_SEND_F, GP_ACT_RECV_F,
                                 GP_ACT_SEND_B, GP_ACT_RECV_B};
  gp_lua_push_type(L, GP_LUA_ROWS, rows_free);
  lua_pushcfunction(L, rows_length);
  lua_setfield(L, -2, "__len");
  luaL_newlib(L, methods);
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
    lua_pushinteger(L, named[i]);
    lua_pushcclosure(L, rows_add, 1);
    lua_setfield(L, -2, names[named[i]]);
  }
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, rows_new);
  lua_setfield(L, -2, "rows");
  return 0;
}
