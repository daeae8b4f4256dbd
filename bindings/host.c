/* bindings/host.c - what a training script needs from the operating system and Lua lacks: the time
 * to better than a second, and whether output goes to a terminal. */
#include <locale.h>
#include <string.h>
#include <time.h>
#include <sys/ioctl.h> /* TIOCGWINSZ */
#include <unistd.h>    /* environ, isatty */

#include "binding.h"

/* core.seconds() -> wall-clock seconds since an arbitrary moment; only differences are
 * meaningful */
static int seconds(lua_State *L) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec * 1e-9);
  return 1;
}

/* core.variables(prefix) -> names of the environment variables that begin with it */
static int variables(lua_State *L) {
  size_t length;
  const char *prefix = luaL_checklstring(L, 1, &length);
  lua_newtable(L);
  for (char **at = environ; at && *at; at++) {
    if (strncmp(*at, prefix, length) != 0) continue;
    lua_pushlstring(L, *at, strcspn(*at, "="));
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
  }
  return 1;
}

/* core.plain_numbers(f) -> what f returns; meanwhile numbers print with a decimal point, whatever
 * locale the script has set: for text that goes to files */
static int plain_numbers(lua_State *L) {
  static locale_t plain; /* made once, kept */
  lua_settop(L, 1);
  if (!plain) plain = newlocale(LC_NUMERIC_MASK, "C", duplocale(LC_GLOBAL_LOCALE));
  locale_t before = plain ? uselocale(plain) : (locale_t)0;
  int status = lua_pcall(L, 0, LUA_MULTRET, 0);
  if (before) uselocale(before);
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* core.is_terminal(file) -> is the file (io.stderr) a terminal? false for a closed one */
static int is_terminal(lua_State *L) {
  luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  lua_pushboolean(L, stream->closef && isatty(fileno(stream->f)));
  return 1;
}

/* core.terminal_size(file) -> columns, rows of the terminal; nothing if it is none or does not
 * say */
static int terminal_size(lua_State *L) {
  luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  struct winsize size;
  if (!stream->closef || ioctl(fileno(stream->f), TIOCGWINSZ, &size) || !size.ws_col) return 0;
  lua_pushinteger(L, size.ws_col);
  lua_pushinteger(L, size.ws_row);
  return 2;
}

/* core.process() -> the number of this process, the name of this host ("" if it has none) */
static int process(lua_State *L) {
  char host[HOST_NAME_MAX + 1] = "";
  if (gethostname(host, sizeof host)) host[0] = '\0';
  host[HOST_NAME_MAX] = '\0';
  lua_pushinteger(L, getpid());
  lua_pushstring(L, host);
  return 2;
}

static const luaL_Reg functions[] = {{"process", process},
                                     {"seconds", seconds},
                                     {"is_terminal", is_terminal},
                                     {"plain_numbers", plain_numbers},
                                     {"variables", variables},
                                     {"terminal_size", terminal_size},
                                     {NULL, NULL}};

int gp_open_host(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
