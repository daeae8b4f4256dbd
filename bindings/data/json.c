/* bindings/data/json.c - a JSON text as Lua values, for small files such as a model's config.json.
 *
 * The text is not trusted: the runtime's strict reader checks every byte, and a duplicate key is an
 * error. Decoding writes into a copy of the text that Lua owns, so raising leaks nothing. */
#include <string.h>

#include "binding.h"

/* The open containers are on the stack, outermost first; above an object is its current key. */
typedef struct reader {
  lua_State *L;
  int base;          /* the stack's height before the first value */
  const char *fault; /* the duplicate key, in the copy of the text, or NULL */
} reader;

static bool is_in_object(const reader *r) {
  return lua_gettop(r->L) > r->base + 1 && lua_type(r->L, -2) == LUA_TSTRING;
}

/* Store the value on top in its container. A field that is null is left out; an element that is
 * null becomes false, so that a list has no holes. */
static gp_status store(const reader *r) {
  lua_State *L = r->L;
  if (is_in_object(r)) {
    lua_rawset(L, -3);
    return GP_OK;
  }
  if (lua_gettop(L) == r->base + 1) return GP_OK;
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_pushboolean(L, 0);
  }
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return GP_OK;
}

static gp_status push_key(reader *r, const char *key) {
  lua_State *L = r->L;
  lua_pushstring(L, key);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, -3) != LUA_TNIL) r->fault = key;
  lua_pop(L, 1);
  return r->fault ? GP_EFORMAT : GP_OK;
}

/* Integers that fit 64 bits stay integers, as in Lua. */
static void push_number(lua_State *L, const char *text, size_t bytes) {
  lua_pushlstring(L, text, bytes);
  if (lua_stringtonumber(L, lua_tostring(L, -1))) lua_remove(L, -2);
}

static gp_status see(void *context, gp_json_event event, const char *text, size_t bytes) {
  reader *r = context;
  lua_State *L = r->L;
  luaL_checkstack(L, 4, "JSON");
  switch (event) {
  case GP_JSON_OBJECT:
  case GP_JSON_ARRAY: lua_newtable(L); return GP_OK;
  case GP_JSON_KEY: return push_key(r, text);
  case GP_JSON_CLOSE: return store(r);
  case GP_JSON_STRING: lua_pushstring(L, text); break;
  case GP_JSON_NUMBER: push_number(L, text, bytes); break;
  case GP_JSON_TRUE: lua_pushboolean(L, 1); break;
  case GP_JSON_FALSE: lua_pushboolean(L, 0); break;
  case GP_JSON_NULL: lua_pushnil(L); break;
  }
  return store(r);
}

/* core.json_decode(text) -> value | nil, message, code */
static int json_decode(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  char *copy = lua_newuserdatauv(L, size + 1, 0);
  memcpy(copy, text, size);
  copy[size] = '\0';
  reader r = {.L = L, .base = lua_gettop(L)};
  gp_status status = gp_json_walk(copy, size, see, &r);
  if (r.fault) {
    lua_pushnil(L);
    lua_pushfstring(L, "JSON: the key '%s' is there twice", r.fault);
    lua_pushliteral(L, "format");
    return 3;
  }
  return status == GP_OK ? 1 : gp_lua_return_failure(L, status);
}

static const luaL_Reg functions[] = {{"json_decode", json_decode}, {NULL, NULL}};

int gp_open_json(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
