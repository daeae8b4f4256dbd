/* bindings/sweep/database.c - an SQLite file: statements with bound values, rows as Lua tables.
 *
 * A statement is prepared once for each text and kept with the connection, in its user value, so
 * that the collector finalizes both, in any order (sqlite3_close_v2 waits for the last statement).
 * A statement is reset before its call returns, whatever happens meanwhile, because one that is
 * half read would hold the file's lock. */
#include <string.h>

#include <sqlite3.h>

#include "binding.h"

#define DATABASE  "gpipe.Database"
#define STATEMENT "gpipe.Statement"

/* How long a process waits for another one that is writing, which takes milliseconds. */
enum { BUSY_MILLISECONDS = 30000 };

typedef struct database_box {
  sqlite3 *db; /* NULL when closed */
} database_box;

typedef struct statement_box {
  sqlite3_stmt *statement;
} statement_box;

/* ---- failures ------------------------------------------------------------------------------ */

static const char *code_of(int result) {
  switch (result & 0xff) {
  case SQLITE_NOMEM: return "memory";
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT: return "format";
  default: return "io";
  }
}

/* Push nil, "path: why", code and return 3. */
static int push_failure(lua_State *L, sqlite3 *db, int result, const char *path) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path ? path : "database", sqlite3_errmsg(db));
  lua_pushstring(L, code_of(result));
  return 3;
}

/* ---- the connection ------------------------------------------------------------------------ */

static int database_clear(lua_State *L) {
  database_box *box = luaL_checkudata(L, 1, DATABASE);
  sqlite3_close_v2(box->db);
  box->db = NULL;
  return 0;
}

static int statement_clear(lua_State *L) {
  statement_box *box = luaL_checkudata(L, 1, STATEMENT);
  sqlite3_finalize(box->statement);
  box->statement = NULL;
  return 0;
}

static sqlite3 *check_database(lua_State *L) {
  database_box *box = luaL_checkudata(L, 1, DATABASE);
  if (!box->db) gp_lua_error(L, "database: it is closed");
  return box->db;
}

/* core.database(path) -> database | nil, message, code; makes the file if it is missing */
static int database_open(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "database: the path");
  database_box *box = lua_newuserdatauv(L, sizeof *box, 1);
  *box = (database_box){0};
  luaL_setmetatable(L, DATABASE);
  lua_newtable(L); /* prepared statements by text */
  lua_setiuservalue(L, -2, 1);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  int result = sqlite3_open_v2(path, &box->db, flags, NULL);
  if (result != SQLITE_OK) return push_failure(L, box->db, result, path);
  sqlite3_extended_result_codes(box->db, 1);
  sqlite3_busy_timeout(box->db, BUSY_MILLISECONDS);
  return 1;
}

/* ---- statements ---------------------------------------------------------------------------- */

/* Push the prepared statement of the text at stack position 2; false: *result says why not. */
static bool push_statement(lua_State *L, sqlite3 *db, int *result) {
  size_t bytes;
  const char *text = lua_tolstring(L, 2, &bytes);
  lua_getiuservalue(L, 1, 1);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) == LUA_TUSERDATA) {
    lua_remove(L, -2);
    return true;
  }
  lua_pop(L, 1);
  statement_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (statement_box){0};
  luaL_setmetatable(L, STATEMENT);
  *result = sqlite3_prepare_v3(db, text, (int)bytes + 1, SQLITE_PREPARE_PERSISTENT, &box->statement,
                               NULL);
  if (*result != SQLITE_OK) return false;
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_rawset(L, -4);
  lua_remove(L, -2);
  return true;
}

/* Bind the Lua value at `index`; the text is copied. */
static int bind(lua_State *L, sqlite3_stmt *statement, int at, int index) {
  size_t bytes;
  const char *text;
  switch (lua_type(L, index)) {
  case LUA_TNIL: return sqlite3_bind_null(statement, at);
  case LUA_TBOOLEAN: return sqlite3_bind_int(statement, at, lua_toboolean(L, index));
  case LUA_TNUMBER:
    if (lua_isinteger(L, index)) return sqlite3_bind_int64(statement, at, lua_tointeger(L, index));
    return sqlite3_bind_double(statement, at, lua_tonumber(L, index));
  case LUA_TSTRING:
    text = lua_tolstring(L, index, &bytes);
    return sqlite3_bind_text64(statement, at, text, bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
  default: return gp_lua_bad_value(L, index, "database: a value", "nil, a number or a string");
  }
}

static void push_column(lua_State *L, sqlite3_stmt *statement, int i) {
  const char *text;
  switch (sqlite3_column_type(statement, i)) {
  case SQLITE_INTEGER: lua_pushinteger(L, sqlite3_column_int64(statement, i)); break;
  case SQLITE_FLOAT: lua_pushnumber(L, sqlite3_column_double(statement, i)); break;
  case SQLITE_NULL: lua_pushnil(L); break;
  default:
    text = (const char *)sqlite3_column_text(statement, i);
    lua_pushlstring(L, text ? text : "", (size_t)sqlite3_column_bytes(statement, i));
  }
}

/* read(statement, &result) -> list of rows, each a table keyed by column names. Runs protected,
 * because making tables may fail. */
static int read_rows(lua_State *L) {
  sqlite3_stmt *statement = lua_touserdata(L, 1);
  int *result = lua_touserdata(L, 2), columns = sqlite3_column_count(statement);
  lua_newtable(L);
  for (lua_Integer n = 1; (*result = sqlite3_step(statement)) == SQLITE_ROW; n++) {
    lua_createtable(L, 0, columns);
    for (int i = 0; i < columns; i++) {
      push_column(L, statement, i);
      lua_setfield(L, -2, sqlite3_column_name(statement, i));
    }
    lua_rawseti(L, -2, n);
  }
  return 1;
}

/* db:run(sql, ...) -> rows | nil, message, code: run one statement with ... bound to its ? in
 * order */
static int database_run(lua_State *L) {
  sqlite3 *db = check_database(L);
  luaL_checktype(L, 2, LUA_TSTRING);
  int values = lua_gettop(L) - 2, result = SQLITE_OK;
  if (!push_statement(L, db, &result))
    return push_failure(L, db, result, sqlite3_db_filename(db, "main"));
  sqlite3_stmt *statement = ((statement_box *)lua_touserdata(L, -1))->statement;
  sqlite3_clear_bindings(statement);
  for (int i = 1; i <= values && result == SQLITE_OK; i++) result = bind(L, statement, i, 2 + i);
  if (result != SQLITE_OK) return push_failure(L, db, result, sqlite3_db_filename(db, "main"));
  lua_pushcfunction(L, read_rows);
  lua_pushlightuserdata(L, statement);
  lua_pushlightuserdata(L, &result);
  int status = lua_pcall(L, 2, 1, 0);
  /* sqlite3_errmsg is valid until the next call */
  int count = result == SQLITE_DONE || status != LUA_OK
                  ? 1
                  : push_failure(L, db, result, sqlite3_db_filename(db, "main"));
  sqlite3_reset(statement);
  return status == LUA_OK ? count : lua_error(L);
}

/* db:changes() -> number of rows that the last statement wrote */
static int database_changes(lua_State *L) {
  lua_pushinteger(L, sqlite3_changes(check_database(L)));
  return 1;
}

/* db:is_busy() -> is a transaction open? */
static int database_is_busy(lua_State *L) {
  lua_pushboolean(L, !sqlite3_get_autocommit(check_database(L)));
  return 1;
}

static const luaL_Reg methods[] = {{"run", database_run},
                                   {"changes", database_changes},
                                   {"is_busy", database_is_busy},
                                   {"close", database_clear},
                                   {NULL, NULL}};

static const luaL_Reg functions[] = {{"database", database_open}, {NULL, NULL}};

int gp_open_database(lua_State *L) {
  gp_lua_push_type(L, STATEMENT, statement_clear);
  lua_pop(L, 1);
  gp_lua_push_type(L, DATABASE, database_clear);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
