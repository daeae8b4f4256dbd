/* bindings/embed.c - serves the embedded Lua sources to `require`.
 *
 * The searcher comes before Lua's own search of package.path, so that a file gpipe.lua in the
 * current folder replaces nothing, and before the search for C modules, so that an installed
 * gpipe.so is not loaded into a program that already contains the runtime. Files that LUA_PATH in
 * the environment names come first: a user who sets it to a checkout's sources wants to run these.
 * Every module is loaded once per Lua state, whatever happens to package.loaded (busted empties it
 * for each spec file), so class tables stay the same.
 *
 * A script may write to globals: `table = {}` at the prompt must not take the library away from our
 * modules. So they run in an environment of their own, which holds Lua's functions and libraries as
 * they were at the start, and reads everything else from the script's globals. */
#include "embed.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h> /* LUA_VERSUFFIX */

#include "load.h"

/* Registry key of the table module name -> value. */
static const char loaded_key;

/* ---- looking up ----------------------------------------------------------------------------- */

static const gp_lua_source *find_module(const char *name) {
  for (const gp_lua_source *s = gp_lua_sources; s->module; s++)
    if (strcmp(s->module, name) == 0) return s;
  return NULL;
}

bool gp_lua_is_embedded(const char *chunk) {
  for (const gp_lua_source *s = gp_lua_sources; s->module; s++)
    if (strcmp(s->chunk, chunk) == 0) return true;
  return false;
}

/* ---- loading once --------------------------------------------------------------------------- */

/* Replace the loader on top by what it returned when it first ran in this state. */
static void load_once(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded_key);
  if (lua_getfield(L, -1, name) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_pushvalue(L, -2);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
  }
  lua_replace(L, -3);
  lua_pop(L, 1);
}

/* Registry key of the environment of embedded modules. */
static const char environment_key;

/* print(...) for our modules: if a script replaces print by another function, our output goes there
 * too. */
static int print_by_script(lua_State *L) {
  lua_pushglobaltable(L);
  lua_pushliteral(L, "print");
  if (lua_rawget(L, -2) != LUA_TFUNCTION) {
    lua_pop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
  }
  lua_replace(L, -2);
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 0);
  return 0;
}

/* Push the environment, which copies the globals of Lua's libraries when it is made. */
static void push_environment(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushglobaltable(L);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (!lua_isfunction(L, -1) && !lua_istable(L, -1)) continue;
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -6);
  }
  lua_pushnil(L); /* arg belongs to the script, and a sweep's file has its own */
  lua_setfield(L, -3, "arg");
  lua_getfield(L, -2, "print");
  lua_pushcclosure(L, print_by_script, 1);
  lua_setfield(L, -3, "print");
  lua_createtable(L, 0, 2);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "__index");
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -3);
  lua_pop(L, 1);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
}

static void load_source(lua_State *L, const gp_lua_source *s) {
  if (luaL_loadbufferx(L, (const char *)s->text, *s->size, s->chunk, "t") != LUA_OK) lua_error(L);
  push_environment(L);
  lua_setupvalue(L, -2, 1); /* _ENV of a main chunk */
  load_once(L, s->module);
}

/* loader(name) of an embedded module. */
static int load_embedded(lua_State *L) {
  load_source(L, find_module(luaL_checkstring(L, 1)));
  return 1;
}

/* loader(name) of a C module; upvalue 1 is its open function. */
static int load_builtin(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  load_once(L, name);
  return 1;
}

/* LUA_PATH as Lua reads it, or NULL; the program's -E leaves a mark in the registry. */
static const char *path_of_environment(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  bool ignored = lua_toboolean(L, -1);
  lua_pop(L, 1);
  const char *path = getenv("LUA_PATH" LUA_VERSUFFIX);
  return ignored ? NULL : path ? path : getenv("LUA_PATH");
}

/* Push the file of the module that LUA_PATH names; false (nothing pushed) if there is none. The
 * ";;" for the default path names no file here. */
static bool push_file_of_environment(lua_State *L) {
  const char *path = path_of_environment(L);
  if (!path) return false;
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushvalue(L, 1);
  lua_pushstring(L, path);
  lua_call(L, 2, 1);
  lua_insert(L, -3);
  lua_pop(L, 2);
  if (lua_isstring(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}

/* searcher(name) -> loader, chunk | text why not */
static int search(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const gp_lua_source *s = find_module(name);
  if (!s) {
    lua_pushfstring(L, "no embedded module '%s'", name);
    return 1;
  }
  if (push_file_of_environment(L)) return gp_load_module(L, name, lua_tostring(L, -1));
  lua_pushcfunction(L, load_embedded);
  lua_pushstring(L, s->chunk + 1);
  return 2;
}

/* ---- installing ----------------------------------------------------------------------------- */

static void preload(lua_State *L, const char *name, lua_CFunction open) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, open);
  lua_pushcclosure(L, load_builtin, 1);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

/* Insert the searcher as number `at` of package.searchers. */
static void add_searcher(lua_State *L, lua_Integer at) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, "package") != LUA_TTABLE ||
      lua_getfield(L, -1, "searchers") != LUA_TTABLE)
    luaL_error(L, "gpipe: package.searchers is missing, expected Lua's standard package library");
  for (lua_Integer i = luaL_len(L, -1); i >= at; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushcfunction(L, search);
  lua_rawseti(L, -2, at);
  lua_pop(L, 3);
}

/* The command line's settings, for the Lua layer: {devices = list or nil, seed = integer or
 * nil}. */
static int open_config(lua_State *L) {
  lua_newtable(L);
  return 1;
}

void gp_lua_install(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &loaded_key) == LUA_TNIL) {
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &loaded_key);
    push_environment(L); /* before a script writes to globals */
    lua_pop(L, 1);
    enum { BEFORE_PACKAGE_PATH = 2 };
    add_searcher(L, BEFORE_PACKAGE_PATH);
    preload(L, "gpipe.core", luaopen_gpipe_core);
    preload(L, "gpipe.config", open_config);
  }
  lua_pop(L, 1);
}

void gp_lua_push_embedded(lua_State *L, const char *module) {
  const gp_lua_source *s = find_module(module);
  if (!s) luaL_error(L, "gpipe: this build holds no module '%s'", module);
  load_source(L, s);
}
