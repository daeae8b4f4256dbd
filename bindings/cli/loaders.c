/* bindings/cli/loaders.c - the program's require, dofile and loadfile, which accept source text
 * only.
 *
 * `load` stays as it is: its text comes from the script itself. */
#include <lauxlib.h>

#include "cli.h"
#include "load.h"

/* searcher(name) -> chunk, file | text why not; upvalue 1 is the table package. */
static int search_path(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_getfield(L, lua_upvalueindex(1), "searchpath");
  lua_pushvalue(L, 1);
  if (lua_getfield(L, lua_upvalueindex(1), "path") != LUA_TSTRING)
    return luaL_error(L, "'package.path' must be a string");
  lua_call(L, 2, 2);
  if (lua_isnil(L, -2)) return 1;
  return gp_load_module(L, name, lua_tostring(L, -2));
}

/* Continue dofile after the file has yielded: the stack holds only what the file returned. */
static int file_done(lua_State *L, int status, lua_KContext context) {
  (void)status, (void)context;
  return lua_gettop(L) - 1;
}

/* dofile([name]) -> what the file returns; it may yield, as with Lua's own */
static int do_file(lua_State *L) {
  const char *name = luaL_optstring(L, 1, NULL);
  lua_settop(L, 1);
  if (gp_load_file(L, name) != LUA_OK) return lua_error(L);
  lua_callk(L, 0, LUA_MULTRET, 0, file_done);
  return file_done(L, LUA_OK, 0);
}

/* loadfile([name [, mode [, env]]]): upvalue 1 is Lua's own function, for scripts that pass a
 * mode. */
static int load_file(lua_State *L) {
  const char *name = luaL_optstring(L, 1, NULL);
  bool own = lua_isnoneornil(L, 2) && lua_isnone(L, 3);
  if (own && gp_load_file(L, name) == LUA_OK) return 1;
  if (own) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  if (lua_isnil(L, 2)) {
    lua_pushliteral(L, "t");
    lua_replace(L, 2);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

void gp_loaders_install(lua_State *L) {
  enum { LUA_FILES = 2 }; /* of package.searchers */
  lua_pushcfunction(L, do_file);
  lua_setglobal(L, "dofile");
  lua_getglobal(L, "loadfile");
  lua_pushcclosure(L, load_file, 1);
  lua_setglobal(L, "loadfile");
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, search_path, 1);
  lua_rawseti(L, -2, LUA_FILES);
  lua_pop(L, 2);
}
