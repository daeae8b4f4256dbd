/* bindings/data/server.c - serves pages to a browser on this machine. */
#include "binding.h"

#define SERVER "gpipe.Server"

typedef struct server_box {
  gp_server *server;
} server_box;

/* core.server_close(server), and __gc */
static int server_clear(lua_State *L) {
  server_box *box = luaL_checkudata(L, 1, SERVER);
  gp_server_free(box->server);
  box->server = NULL;
  return 0;
}

static gp_server *check_server(lua_State *L) {
  server_box *box = luaL_checkudata(L, 1, SERVER);
  if (!box->server) gp_lua_error(L, "server: it was closed");
  return box->server;
}

/* core.server_open(port) -> server, port | nil, message, code */
static int server_open(lua_State *L) {
  int port = (int)gp_lua_check_int(L, 1, "server: port", 0, 65535);
  server_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (server_box){0};
  luaL_setmetatable(L, SERVER);
  gp_status status = gp_server_open(port, &box->server);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushinteger(L, gp_server_port(box->server));
  return 2;
}

/* core.server_wait(server, milliseconds) -> path, or false if no request came | nil, message,
 * code */
static int server_wait(lua_State *L) {
  gp_server *server = check_server(L);
  const char *path;
  gp_status status =
      gp_server_wait(server, (int)gp_lua_check_int(L, 2, "server: milliseconds", 0, 60000), &path);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  if (path)
    lua_pushstring(L, path);
  else
    lua_pushboolean(L, 0);
  return 1;
}

/* core.server_answer(server, code, type, body) -> true | nil, message, code */
static int server_answer(lua_State *L) {
  gp_server *server = check_server(L);
  size_t size;
  int code = (int)gp_lua_check_int(L, 2, "server: code", 200, 599);
  const char *type = gp_lua_check_string(L, 3, "server: type");
  const char *body = luaL_checklstring(L, 4, &size);
  gp_status status = gp_server_answer(server, code, type, body, size);
  if (status != GP_OK) return gp_lua_return_failure(L, status);
  lua_pushboolean(L, 1);
  return 1;
}

static const luaL_Reg functions[] = {{"server_open", server_open},
                                     {"server_wait", server_wait},
                                     {"server_answer", server_answer},
                                     {"server_close", server_clear},
                                     {NULL, NULL}};

int gp_open_server(lua_State *L) {
  gp_lua_push_type(L, SERVER, server_clear);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
