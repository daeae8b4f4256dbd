/* bindings/data/archive.c - files: archives of tensors, whole files, lists of files.
 *
 * Failures outside the script come back as nil, message, code; wrong arguments raise. An archive or
 * a list of names lives in a box while Lua functions that may raise are called. */
#include <stdlib.h> /* qsort */
#include <string.h>

#include "data/archive.h"

#define ARCHIVE "gpipe.Archive"
#define NAMES   "gpipe.Names"

typedef struct archive_box {
  gp_archive *archive;
} archive_box;

typedef struct names_box {
  char **names;
  size_t count;
} names_box;

/* ---- boxes --------------------------------------------------------------------------------- */

static int archive_clear(lua_State *L) {
  archive_box *box = luaL_checkudata(L, 1, ARCHIVE);
  gp_archive_free(box->archive);
  box->archive = NULL;
  return 0;
}

static int names_clear(lua_State *L) {
  names_box *box = luaL_checkudata(L, 1, NAMES);
  gp_file_list_free(box->names, box->count);
  *box = (names_box){0};
  return 0;
}

static archive_box *push_archive(lua_State *L) {
  archive_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (archive_box){0};
  luaL_setmetatable(L, ARCHIVE);
  return box;
}

static names_box *push_names(lua_State *L) {
  names_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (names_box){0};
  luaL_setmetatable(L, NAMES);
  return box;
}

/* ---- archives ------------------------------------------------------------------------------ */

/* Add tensors[i] under the name names[i]; parameters are added with their current values. */
static void add_tensors(lua_State *L, gp_archive *archive, int names, int tensors) {
  int top = lua_gettop(L);
  for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, names); i++) {
    lua_rawgeti(L, names, i);
    lua_rawgeti(L, tensors, i);
    const char *name = gp_lua_check_string(L, top + 1, "save: a name");
    gp_tensor *tensor = gp_lua_check_tensor(L, top + 2, name);
    gp_status status = gp_archive_add(archive, name, tensor);
    if (status != GP_OK) gp_lua_fail(L, status);
    lua_settop(L, top);
  }
}

/* Add the pairs of a flat list: key, value, key, value. */
static void add_texts(lua_State *L, gp_archive *archive, int pairs) {
  int top = lua_gettop(L);
  for (lua_Integer i = 1; i < (lua_Integer)lua_rawlen(L, pairs); i += 2) {
    lua_rawgeti(L, pairs, i);
    lua_rawgeti(L, pairs, i + 1);
    const char *key = gp_lua_check_string(L, top + 1, "save: a metadata key");
    const char *value = gp_lua_check_string(L, top + 2, "save: a metadata value");
    gp_status status = gp_archive_add_text(archive, key, value);
    if (status != GP_OK) gp_lua_fail(L, status);
    lua_settop(L, top);
  }
}

/* The archive is in a box while anything may raise, and leaves it at the end. */
gp_archive *gp_lua_new_archive(lua_State *L, int names, int tensors) {
  luaL_checktype(L, names, LUA_TTABLE);
  luaL_checktype(L, tensors, LUA_TTABLE);
  archive_box *box = push_archive(L);
  gp_status status = gp_archive_new(&box->archive);
  if (status != GP_OK) gp_lua_fail(L, status);
  add_tensors(L, box->archive, names, tensors);
  gp_archive *archive = box->archive;
  box->archive = NULL;
  lua_pop(L, 1);
  return archive;
}

/* core.archive_save(path, names, tensors, pairs) -> true | nil, message, code
 * names and tensors are lists; pairs is a flat list of metadata keys and values */
static int archive_save(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "save: the path");
  for (int i = 2; i <= 4; i++) luaL_checktype(L, i, LUA_TTABLE);
  lua_settop(L, 4);
  archive_box *box = push_archive(L);
  gp_status status = gp_archive_new(&box->archive);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  add_tensors(L, box->archive, 2, 3);
  add_texts(L, box->archive, 4);
  status = gp_archive_save(box->archive, path);
  gp_archive_free(box->archive);
  box->archive = NULL;
  if (status == GP_EINVAL) return gp_lua_fail(L, status);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

/* The tensors are shared with the archive, not copied; the archive is freed when they are all in
 * Lua. */
static void push_tensors(lua_State *L, const gp_archive *archive) {
  lua_newtable(L);
  for (size_t i = 0; i < gp_archive_count(archive); i++) {
    gp_lua_push_tensor(L, gp_archive_tensor(archive, i));
    lua_setfield(L, -2, gp_archive_name(archive, i));
  }
}

static void push_texts(lua_State *L, const gp_archive *archive) {
  lua_newtable(L);
  for (size_t i = 0; i < gp_archive_text_count(archive); i++) {
    lua_pushstring(L, gp_archive_text_value(archive, i));
    lua_setfield(L, -2, gp_archive_text_key(archive, i));
  }
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Push the texts of the list at `index` as an ascending array; they live as long as the list. */
static const char **push_sorted_names(lua_State *L, int index, size_t *count) {
  *count = lua_rawlen(L, index);
  const char **names = lua_newuserdatauv(L, (*count + 1) * sizeof *names, 0);
  for (size_t i = 0; i < *count; i++) {
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    names[i] = gp_lua_check_string(L, lua_gettop(L), "load: a name");
    lua_pop(L, 1);
  }
  qsort(names, *count, sizeof *names, compare_names);
  return names;
}

/* core.archive_load(path, names) -> {name = tensor}, {key = text} | nil, message, code
 * names: a list of the tensors to read; the others have only shape and dtype. nil: all */
static int archive_load(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "load: the path");
  size_t count = 0;
  lua_settop(L, 2);
  const char *const *names = lua_istable(L, 2) ? push_sorted_names(L, 2, &count) : NULL;
  archive_box *box = push_archive(L);
  gp_status status = gp_archive_load_some(path, names, count, &box->archive);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  push_tensors(L, box->archive);
  push_texts(L, box->archive);
  gp_archive_free(box->archive);
  box->archive = NULL;
  return 2;
}

/* ---- files --------------------------------------------------------------------------------- */

/* core.file_read(path) -> u8 tensor | nil, message, code */
static int file_read(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "read: the path");
  gp_status status = gp_file_read(path, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_return_failure(L, status);
}

/* core.file_map(path) -> u8 tensor | nil, message, code */
static int file_map(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "map: the path");
  gp_status status = gp_file_map(path, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_return_failure(L, status);
}

/* core.file_unchanged(path, bytes): raise if the file has become shorter */
static int file_unchanged(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "unchanged: the path");
  gp_status status = gp_file_unchanged(path, luaL_checkinteger(L, 2));
  return status == GP_OK ? 0 : gp_lua_fail(L, status);
}

/* core.file_write(path, text) -> true | nil, message, code */
static int file_write(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "write: the path");
  size_t bytes;
  const char *text = luaL_checklstring(L, 2, &bytes);
  gp_status status = gp_file_write(path, text, bytes);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

static void push_list(lua_State *L, const names_box *box) {
  lua_createtable(L, (int)(box->count < INT32_MAX ? box->count : 0), 0);
  for (size_t i = 0; i < box->count; i++) {
    lua_pushstring(L, box->names[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

void gp_lua_push_names(lua_State *L, char **names, size_t count) {
  names_box *box = push_names(L);
  *box = (names_box){names, count};
  push_list(L, box);
  lua_remove(L, -2);
}

/* core.file_list(path) -> {path, ...} | nil, message, code */
static int file_list(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "list: the path");
  names_box *box = push_names(L);
  gp_status status = gp_file_list(path, &box->names, &box->count);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  push_list(L, box);
  return 1;
}

static const luaL_Reg functions[] = {
    {"archive_save", archive_save},     {"archive_load", archive_load},
    {"file_read", file_read},           {"file_map", file_map},
    {"file_unchanged", file_unchanged}, {"file_write", file_write},
    {"file_list", file_list},           {NULL, NULL}};

int gp_open_archive(lua_State *L) {
  gp_lua_push_type(L, ARCHIVE, archive_clear);
  gp_lua_push_type(L, NAMES, names_clear);
  lua_pop(L, 2);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
