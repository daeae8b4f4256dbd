/* bindings/data/folder.c - the folders and files that a run keeps, and its lock. */
#include <string.h>

#include "binding.h"
#include "data/archive.h"

#define LOCK "gpipe.Lock"
#define TEXT "gpipe.Text"

enum { LONGEST_HOLDER = 256 };

typedef struct lock_box {
  gp_lock *lock;
} lock_box;

typedef struct text_box {
  char *bytes;
} text_box;

static int text_clear(lua_State *L) {
  text_box *box = luaL_checkudata(L, 1, TEXT);
  gp_file_text_free(box->bytes);
  box->bytes = NULL;
  return 0;
}

static int lock_clear(lua_State *L) {
  lock_box *box = luaL_checkudata(L, 1, LOCK);
  gp_lock_free(box->lock);
  box->lock = NULL;
  return 0;
}

static int answer(lua_State *L, gp_status status) {
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

/* core.lock_take(path, text, seconds) -> lock | false, holder's text | nil, message, code */
static int lock_take(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "lock: the path");
  const char *text = gp_lua_check_string(L, 2, "lock: the text");
  char holder[LONGEST_HOLDER] = "";
  lock_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (lock_box){0};
  luaL_setmetatable(L, LOCK);
  gp_status status =
      gp_lock_take(path, text, luaL_checknumber(L, 3), &box->lock, holder, sizeof holder);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  if (box->lock) return 1;
  lua_pushboolean(L, 0);
  lua_pushstring(L, holder);
  return 2;
}

/* core.folder_make(path) -> true | nil, message, code */
static int folder_make(lua_State *L) {
  return answer(L, gp_folder_make(gp_lua_check_string(L, 1, "folder: the path")));
}

/* core.folder_names(path) -> {name, ...} | nil, message, code */
static int folder_names(lua_State *L) {
  char **names;
  size_t count;
  gp_status status = gp_folder_names(gp_lua_check_string(L, 1, "folder: the path"), &names, &count);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  gp_lua_push_names(L, names, count);
  return 1;
}

/* core.folder_remove(path) -> true | nil, message, code */
static int folder_remove(lua_State *L) {
  return answer(L, gp_folder_remove(gp_lua_check_string(L, 1, "folder: the path")));
}

/* core.file_cut(path, bytes) -> bytes left | nil, message, code */
static int file_cut(lua_State *L) {
  uint64_t left = 0;
  const char *path = gp_lua_check_string(L, 1, "file: the path");
  uint64_t bytes = (uint64_t)gp_lua_check_int(L, 2, "file: bytes", 0, INT64_MAX);
  gp_status status = gp_file_cut(path, bytes, &left);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushinteger(L, (lua_Integer)left);
  return 1;
}

/* core.file_sync(path) -> true | nil, message, code */
static int file_sync(lua_State *L) {
  return answer(L, gp_file_sync(gp_lua_check_string(L, 1, "file: the path")));
}

/* core.file_text(path, most) -> text | nil (there is no file) | nil, message, code */
static int file_text(lua_State *L) {
  char *bytes = NULL;
  size_t size = 0;
  bool there;
  const char *path = gp_lua_check_string(L, 1, "file: the path");
  const size_t most = (size_t)gp_lua_check_int(L, 2, "file: the most bytes", 0, INT64_MAX);
  text_box *box = lua_newuserdatauv(L, sizeof *box, 0); /* freed even if something below raises */
  *box = (text_box){0};
  luaL_setmetatable(L, TEXT);
  gp_status status = gp_file_text(path, most, &there, &bytes, &size);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  if (!there) return lua_pushnil(L), 1;
  box->bytes = bytes;
  lua_pushlstring(L, bytes, size);
  gp_file_text_free(bytes);
  box->bytes = NULL;
  return 1;
}

/* core.folder_is_own(path) -> is there a folder with this name that is not a link? */
static int folder_is_own(lua_State *L) {
  lua_pushboolean(L, gp_folder_is_own(gp_lua_check_string(L, 1, "folder: the path")));
  return 1;
}

static const luaL_Reg functions[] = {{"lock_take", lock_take},
                                     {"folder_make", folder_make},
                                     {"folder_names", folder_names},
                                     {"folder_remove", folder_remove},
                                     {"file_cut", file_cut},
                                     {"file_sync", file_sync},
                                     {"file_text", file_text},
                                     {"folder_is_own", folder_is_own},
                                     {NULL, NULL}};

static const luaL_Reg lock_methods[] = {{"free", lock_clear}, {NULL, NULL}};

int gp_open_folder(lua_State *L) {
  gp_lua_push_type(L, TEXT, text_clear);
  lua_pop(L, 1);
  gp_lua_push_type(L, LOCK, lock_clear);
  luaL_newlib(L, lock_methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
