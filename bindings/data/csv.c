/* bindings/data/csv.c - tables of numbers and words. */
#include "binding.h"
#include "data/archive.h"

#define TABLE "gpipe.CsvTable"

/* A table's data besides its tensors, until Lua has it. The arrays are [columns]. */
typedef struct table_box {
  size_t columns;
  gp_csv_column *column;
  char ***words;
  size_t *word_count;
} table_box;

static int table_clear(lua_State *L) {
  table_box *box = luaL_checkudata(L, 1, TABLE);
  for (size_t i = 0; i < box->columns; i++) {
    gp_file_list_free(box->words[i], box->word_count[i]);
    box->words[i] = NULL;
    box->word_count[i] = 0;
  }
  return 0;
}

/* Push a box with room for the columns, in user values that live as long as the box. */
static table_box *push_table(lua_State *L, size_t columns) {
  table_box *box = lua_newuserdatauv(L, sizeof *box, 3);
  *box = (table_box){0};
  int at = lua_gettop(L);
  box->column = lua_newuserdatauv(L, columns * sizeof *box->column, 0);
  lua_setiuservalue(L, at, 1);
  box->words = lua_newuserdatauv(L, columns * sizeof *box->words, 0);
  lua_setiuservalue(L, at, 2);
  box->word_count = lua_newuserdatauv(L, columns * sizeof *box->word_count, 0);
  lua_setiuservalue(L, at, 3);
  for (size_t i = 0; i < columns; i++) {
    box->words[i] = NULL;
    box->word_count[i] = 0;
  }
  box->columns = columns;
  luaL_setmetatable(L, TABLE);
  return box;
}

static lua_Integer element(lua_State *L, int list, lua_Integer at) {
  lua_rawgeti(L, list, at);
  lua_Integer value = luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return value;
}

/* Read three integers per column: its part (0 none, 1 input, 2 target), its place there, and 1 for
 * words. */
static void check_columns(lua_State *L, int list, table_box *box) {
  for (size_t i = 0; i < box->columns; i++) {
    lua_Integer part = element(L, list, (lua_Integer)(3 * i) + 1);
    box->column[i] = (gp_csv_column){.part = part == 1   ? GP_CSV_INPUT
                                             : part == 2 ? GP_CSV_TARGET
                                                         : GP_CSV_SKIP,
                                     .place = element(L, list, (lua_Integer)(3 * i) + 2),
                                     .words = element(L, list, (lua_Integer)(3 * i) + 3) == 1};
  }
}

/* Push {[column] = {word, ...}}. */
static void push_words(lua_State *L, table_box *box) {
  lua_newtable(L);
  for (size_t i = 0; i < box->columns; i++) {
    if (!box->words[i]) continue;
    char **words = box->words[i];
    size_t count = box->word_count[i];
    box->words[i] = NULL;
    box->word_count[i] = 0;
    gp_lua_push_names(L, words, count);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* core.csv_head(path, separator) -> fields of the first line, fields of the second | nil, message,
 * code. The separator is one character, which gpipe.data.csv has checked. */
static int csv_head(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "csv: the path");
  const char *separator = gp_lua_check_string(L, 2, "csv: the separator");
  table_box *box = push_table(L, 2);
  gp_status status = gp_csv_head(path, separator[0], &box->words[0], &box->word_count[0],
                                 &box->words[1], &box->word_count[1]);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  push_words(L, box);
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  return 2;
}

/* core.csv_read(path, header, separator, missing or nil, columns, ids) -> f32 [rows, inputs],
 * [rows, targets] (i64 if ids are wanted and all are whole, else f32), {[column] = {word, ...}}
 * | nil, message, code */
static int csv_read(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "csv: the path");
  const char *separator = gp_lua_check_string(L, 3, "csv: the separator");
  luaL_checktype(L, 5, LUA_TTABLE);
  gp_csv_options options = {.header = lua_toboolean(L, 2),
                            .separator = separator[0],
                            .fills = !lua_isnoneornil(L, 4),
                            .missing = lua_tonumber(L, 4)};
  table_box *box = push_table(L, (size_t)(lua_rawlen(L, 5) / 3));
  check_columns(L, 5, box);
  gp_box *x = gp_lua_new_box(L), *y = gp_lua_new_box(L);
  gp_csv_table table = {.words = box->words, .word_count = box->word_count};
  gp_status status =
      gp_csv_read(path, &options, box->column, box->columns, lua_toboolean(L, 6), &table);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  x->tensor = table.x;
  y->tensor = table.y;
  push_words(L, box);
  return 3;
}

static const luaL_Reg functions[] = {{"csv_head", csv_head}, {"csv_read", csv_read}, {NULL, NULL}};

int gp_open_csv(lua_State *L) {
  gp_lua_push_type(L, TABLE, table_clear);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
