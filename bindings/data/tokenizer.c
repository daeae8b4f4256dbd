/* bindings/data/tokenizer.c - tokenizers: texts to tensors of ids and back. lua/gpipe/tokenizer
 * sets the names and defaults. */
#include <string.h>

#include "binding.h"

#define TOKENIZER "gpipe.TokenizerCore"

enum { SPECIALS_MOST = 256 };

typedef struct tokenizer_box {
  gp_tokenizer *tokenizer;
} tokenizer_box;

static int tokenizer_clear(lua_State *L) {
  tokenizer_box *box = luaL_checkudata(L, 1, TOKENIZER);
  gp_tokenizer_free(box->tokenizer);
  box->tokenizer = NULL;
  return 0;
}

gp_tokenizer *gp_lua_check_tokenizer(lua_State *L, int index) {
  tokenizer_box *box = luaL_checkudata(L, index, TOKENIZER);
  if (!box->tokenizer) gp_lua_error(L, "tokenizer: it was not loaded");
  return box->tokenizer;
}

/* The list's strings stay on the stack, which keeps them alive. */
static size_t check_specials(lua_State *L, int index, const char **special) {
  size_t count = lua_rawlen(L, index);
  if (count > SPECIALS_MOST)
    gp_lua_error(L, "tokenizer: %I special tokens, expected at most %d", (LUAI_UACINT)count,
                 SPECIALS_MOST);
  luaL_checkstack(L, (int)count + 8, "too many special tokens");
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    special[i] = gp_lua_check_string(L, -1, "tokenizer: a special token");
  }
  return count;
}

/* core.tokenizer_load(path, add_prefix_space, {special, ...} or nil) -> tokenizer | nil, message,
 * code */
static int tokenizer_load(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "tokenizer: the path");
  const char *special[SPECIALS_MOST];
  gp_tokenizer_options options = {.add_prefix_space = lua_toboolean(L, 2)};
  lua_settop(L, 3);
  if (!lua_isnil(L, 3)) {
    luaL_checktype(L, 3, LUA_TTABLE);
    options.special = special;
    options.specials = check_specials(L, 3, special);
  }
  tokenizer_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (tokenizer_box){0};
  luaL_setmetatable(L, TOKENIZER);
  gp_status status = gp_tokenizer_load(path, &options, &box->tokenizer);
  if (status == GP_EINVAL) return gp_lua_fail(L, status);
  return status == GP_OK ? 1 : gp_lua_return_failure(L, status);
}

/* core.tokenizer_encode(tokenizer, text, specials_as_text, no_bounds) -> i64 [n] */
static int tokenizer_encode(lua_State *L) {
  gp_tokenizer *tokenizer = gp_lua_check_tokenizer(L, 1);
  size_t size;
  const char *text = luaL_checklstring(L, 2, &size);
  gp_encode_options options = {lua_toboolean(L, 3), lua_toboolean(L, 4)};
  gp_status status =
      gp_tokenizer_encode(tokenizer, text, size, &options, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.tokenizer_decode(tokenizer, ids (contiguous i64 [n]), skip_specials) -> text */
static int tokenizer_decode(lua_State *L) {
  gp_tokenizer *tokenizer = gp_lua_check_tokenizer(L, 1);
  gp_tensor *ids = gp_lua_check_host_tensor(L, 2, "decode: the ids");
  char *text;
  size_t size;
  luaL_Buffer buffer; /* made before the text, which would leak if this raised */
  gp_status status = gp_tokenizer_decode(tokenizer, ids, lua_toboolean(L, 3), &text, &size);
  if (status != GP_OK) return gp_lua_fail(L, status);
  char *to = luaL_buffinitsize(L, &buffer, size);
  if (size) memcpy(to, text, size);
  gp_tokenizer_text_free(text);
  luaL_pushresultsize(&buffer, size);
  return 1;
}

/* core.tokenizer_count(tokenizer) -> one more than the highest id */
static int tokenizer_count(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)gp_tokenizer_count(gp_lua_check_tokenizer(L, 1)));
  return 1;
}

/* core.tokenizer_token(tokenizer, id) -> its bytes, or nil */
static int tokenizer_token(lua_State *L) {
  const char *bytes;
  size_t size;
  if (gp_tokenizer_token(gp_lua_check_tokenizer(L, 1), luaL_checkinteger(L, 2), &bytes, &size))
    lua_pushlstring(L, bytes, size);
  else
    lua_pushnil(L);
  return 1;
}

/* core.tokenizer_find(tokenizer, bytes) -> their id, or nil */
static int tokenizer_find(lua_State *L) {
  int64_t id;
  size_t size;
  gp_tokenizer *tokenizer = gp_lua_check_tokenizer(L, 1);
  const char *bytes = luaL_checklstring(L, 2, &size);
  if (gp_tokenizer_find(tokenizer, bytes, size, &id))
    lua_pushinteger(L, id);
  else
    lua_pushnil(L);
  return 1;
}

/* core.tokenizer_special(tokenizer) -> {text = id} of the special tokens */
static int tokenizer_special(lua_State *L) {
  gp_tokenizer *tokenizer = gp_lua_check_tokenizer(L, 1);
  const char *text;
  int64_t id;
  bool special;
  lua_newtable(L);
  for (size_t i = 0; gp_tokenizer_added(tokenizer, i, &text, &id, &special); i++) {
    if (!special) continue;
    lua_pushinteger(L, id);
    lua_setfield(L, -2, text);
  }
  return 1;
}

static const luaL_Reg functions[] = {
    {"tokenizer_load", tokenizer_load},       {"tokenizer_encode", tokenizer_encode},
    {"tokenizer_decode", tokenizer_decode},   {"tokenizer_count", tokenizer_count},
    {"tokenizer_token", tokenizer_token},     {"tokenizer_find", tokenizer_find},
    {"tokenizer_special", tokenizer_special}, {NULL, NULL}};

int gp_open_tokenizer(lua_State *L) {
  gp_lua_push_type(L, TOKENIZER, tokenizer_clear);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
