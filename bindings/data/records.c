/* bindings/data/records.c - the records of a run as lists and tensors of numbers. */
#include <string.h>

#include "binding.h"

#define RECORDS "gpipe.Records"

enum { MOST_POINTS = 100000 };

typedef struct records_box {
  gp_records *records;
} records_box;

static int records_clear(lua_State *L) {
  records_box *box = luaL_checkudata(L, 1, RECORDS);
  gp_records_free(box->records);
  box->records = NULL;
  return 0;
}

static gp_records *check_records(lua_State *L, int index) {
  records_box *box = luaL_checkudata(L, index, RECORDS);
  if (!box->records) gp_lua_error(L, "records: they were closed");
  return box->records;
}

/* The column with the name at `index`; false if there is none. */
static bool check_column(lua_State *L, int index, const gp_records *records, size_t *column) {
  return gp_records_find(records, gp_lua_check_string(L, index, "records: the name"), column);
}

/* core.records_open(path) -> records, of which nothing has been read yet */
static int records_open(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "records: the path");
  records_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (records_box){0};
  luaL_setmetatable(L, RECORDS);
  gp_status status = gp_records_new(path, &box->records);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.records_update(records) -> number of records, were all read again? | nil, message, code */
static int records_update(lua_State *L) {
  gp_records *records = check_records(L, 1);
  bool anew;
  gp_status status = gp_records_update(records, &anew);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushinteger(L, (lua_Integer)gp_records_count(records));
  lua_pushboolean(L, anew);
  return 2;
}

/* core.records_damage(records) -> number of skipped lines, the first one's error */
static int records_damage(lua_State *L) {
  const char *text;
  lua_pushinteger(L, (lua_Integer)gp_records_damage(check_records(L, 1), &text));
  lua_pushstring(L, text);
  return 2;
}

/* core.records_names(records) -> {name, ...} of the columns that have values */
static int records_names(lua_State *L) {
  const gp_records *records = check_records(L, 1);
  const double *steps, *values;
  lua_newtable(L);
  lua_Integer count = 0;
  for (size_t i = 0; i < gp_records_columns(records); i++) {
    if (!gp_records_column(records, i, &steps, &values)) continue;
    lua_pushstring(L, gp_records_name(records, i));
    lua_rawseti(L, -2, ++count);
  }
  return 1;
}

/* core.records_last(records, name) -> the last value and its step, or nothing */
static int records_last(lua_State *L) {
  const gp_records *records = check_records(L, 1);
  const double *steps, *values;
  size_t column;
  if (!check_column(L, 2, records, &column)) return 0;
  size_t count = gp_records_column(records, column, &steps, &values);
  if (!count) return 0;
  lua_pushnumber(L, values[count - 1]);
  lua_pushnumber(L, steps[count - 1]);
  return 2;
}

/* core.records_column(records, name) -> steps, values as f64 tensors, or nothing */
static int records_column(lua_State *L) {
  size_t column;
  if (!check_column(L, 2, check_records(L, 1), &column)) return 0;
  gp_box *box[2] = {gp_lua_new_box(L), gp_lua_new_box(L)};
  const gp_records *records = check_records(L, 1);
  const double *from[2];
  size_t count = gp_records_column(records, column, &from[0], &from[1]);
  gp_shape shape = {.rank = 1, .dim = {(int64_t)count}};
  for (int i = 0; i < 2; i++) {
    gp_status status = gp_tensor_new(GP_F64, &shape, &box[i]->tensor);
    if (status != GP_OK) return gp_lua_fail(L, status);
    if (count) memcpy(gp_tensor_data(box[i]->tensor), from[i], count * sizeof(double));
  }
  return 2;
}

/* Push one field of all points as a list. */
static void push_list(lua_State *L, const gp_curve_point *points, size_t count, size_t offset) {
  lua_createtable(L, (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    double value;
    memcpy(&value, (const char *)&points[i] + offset, sizeof value);
    lua_pushnumber(L, value);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* core.records_curve(records, name, most, smoothing, clock or nil, positive) -> x, low, high, mean,
 * smooth (lists), number of values left out; nothing without that column | nil, message, code */
static int records_curve(lua_State *L) {
  lua_settop(L, 6);
  gp_curve_rule rule = {.most = (size_t)gp_lua_check_int(L, 3, "curve: most", 2, MOST_POINTS),
                        .smoothing = gp_lua_check_number(L, 4, "curve: smoothing"),
                        .positive = lua_toboolean(L, 6)};
  if (!(rule.smoothing >= 0 && rule.smoothing < 1))
    gp_lua_bad_value(L, 4, "curve: smoothing", "a number >= 0 and < 1");
  gp_curve_point *points = lua_newuserdatauv(L, rule.most * sizeof *points, 0);
  if (!lua_isnil(L, 5)) rule.clock = check_records(L, 5);
  const gp_records *records = check_records(L, 1);
  size_t column, count = 0, left_out = 0;
  if (!check_column(L, 2, records, &column)) return 0;
  gp_status status = gp_records_curve(records, column, &rule, points, &count, &left_out);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  static const size_t offsets[] = {offsetof(gp_curve_point, x), offsetof(gp_curve_point, low),
                                   offsetof(gp_curve_point, high), offsetof(gp_curve_point, mean),
                                   offsetof(gp_curve_point, smooth)};
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
    push_list(L, points, count, offsets[i]);
  lua_pushinteger(L, (lua_Integer)left_out);
  return 6;
}

static const luaL_Reg functions[] = {
    {"records_open", records_open},     {"records_update", records_update},
    {"records_damage", records_damage}, {"records_names", records_names},
    {"records_last", records_last},     {"records_column", records_column},
    {"records_curve", records_curve},   {NULL, NULL}};

int gp_open_records(lua_State *L) {
  gp_lua_push_type(L, RECORDS, records_clear);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
