/* bindings/data/checkpoint.c - checkpoints: written by threads in the background, and read. */
#include "binding.h"
#include "data/archive.h"

#define CHECKPOINT "gpipe.CheckpointWriter"

typedef struct writer_box {
  gp_checkpoint *checkpoint;
} writer_box;

static int writer_clear(lua_State *L) {
  writer_box *box = luaL_checkudata(L, 1, CHECKPOINT);
  gp_checkpoint_free(box->checkpoint);
  box->checkpoint = NULL;
  return 0;
}

static gp_checkpoint *check_writer(lua_State *L) {
  writer_box *box = luaL_checkudata(L, 1, CHECKPOINT);
  if (!box->checkpoint) gp_lua_error(L, "checkpoint: it is closed");
  return box->checkpoint;
}

/* writer:is_done() -> boolean */
static int writer_is_done(lua_State *L) {
  lua_pushboolean(L, gp_checkpoint_is_done(check_writer(L)));
  return 1;
}

/* writer:finish() -> true | nil, message, code; waits until it is written */
static int writer_finish(lua_State *L) {
  gp_status status = gp_checkpoint_finish(check_writer(L));
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

/* Add the file at the top of the stack: {name, names, tensors}, or {name} if another rank has it.
 * */
static void add_file(lua_State *L, gp_checkpoint *checkpoint) {
  int file = lua_gettop(L);
  luaL_checktype(L, file, LUA_TTABLE);
  for (int i = 1; i <= 3; i++) lua_rawgeti(L, file, i);
  const char *name = gp_lua_check_string(L, file + 1, "checkpoint: a file");
  gp_archive *archive = lua_isnil(L, file + 2) ? NULL : gp_lua_new_archive(L, file + 2, file + 3);
  gp_status status = gp_checkpoint_add(checkpoint, name, archive);
  if (status != GP_OK) gp_lua_fail(L, status);
  lua_settop(L, file - 1);
}

/* Let the ranks of the job write together, as the fourth argument says: true: this process leads,
 * and *shared receives the folder to write to; a text: that folder, of the rank that leads. */
static gp_status share(lua_State *L, gp_checkpoint *checkpoint, const char **shared) {
  *shared = NULL;
  if (lua_isstring(L, 4)) return gp_checkpoint_follow(checkpoint, lua_tostring(L, 4));
  return lua_toboolean(L, 4) ? gp_checkpoint_lead(checkpoint, gp_ranks_check, shared) : GP_OK;
}

/* core.checkpoint_save(folder, state, {{file, names, tensors}, ...}, how) -> writer, the folder
 * where this process leads | nil, message, code. The tensors must not change before it has
 * finished. */
static int checkpoint_save(lua_State *L) {
  const char *folder = gp_lua_check_string(L, 1, "checkpoint: the folder"), *shared;
  const char *state = gp_lua_check_string(L, 2, "checkpoint: the state");
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 4);
  writer_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (writer_box){0};
  luaL_setmetatable(L, CHECKPOINT);
  gp_status status = gp_checkpoint_new(folder, state, &box->checkpoint);
  if (status == GP_OK) status = share(L, box->checkpoint, &shared);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushstring(L, shared); /* nil for NULL */
  for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, 3); i++) {
    lua_rawgeti(L, 3, i);
    add_file(L, box->checkpoint);
  }
  status = gp_checkpoint_start(box->checkpoint);
  return status == GP_OK ? 2 : gp_lua_return_failure(L, status);
}

/* core.checkpoint_read(folder) -> state, {path, ...} | nil, message, code */
static int checkpoint_read(lua_State *L) {
  const char *folder = gp_lua_check_string(L, 1, "checkpoint: the folder");
  char **names;
  size_t count;
  char *state;
  gp_status status = gp_checkpoint_read(folder, &names, &count, &state);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  gp_lua_push_names(L, names, count); /* Lua owns them now */
  lua_pushstring(L, state);
  gp_checkpoint_free_state(state);
  lua_insert(L, -2);
  return 2;
}

static const luaL_Reg methods[] = {
    {"is_done", writer_is_done}, {"finish", writer_finish}, {NULL, NULL}};

static const luaL_Reg functions[] = {
    {"checkpoint_save", checkpoint_save}, {"checkpoint_read", checkpoint_read}, {NULL, NULL}};

int gp_open_checkpoint(lua_State *L) {
  gp_lua_push_type(L, CHECKPOINT, writer_clear);
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
