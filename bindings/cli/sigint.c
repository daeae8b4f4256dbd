/* bindings/cli/sigint.c - Ctrl-C in the program.
 *
 * The first press stops the running code with a Lua error, the second breaks out of loops that
 * catch errors, the third ends the process. Lua's hooks belong to one coroutine, so
 * coroutine.resume, wrap and close are replaced by versions that note which coroutine runs (stock
 * lua cannot stop a loop in a coroutine). */
#include <signal.h>
#include <stddef.h>

#include <lauxlib.h>

#include "cli.h"
#include "interrupt.h"

enum { KILL = 3 };

static void on_signal(int number) {
  if (gp_lua_interrupt_request() >= KILL) {
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns */
  }
}

/* Catch SIGINT without SA_RESTART, so that it wakes a script that waits for input. A process that
 * was started with SIGINT ignored (a shell's background job) keeps ignoring it. */
static void catch_signal(void) {
  struct sigaction action = {.sa_handler = on_signal}, old;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler == SIG_IGN) return;
  sigaction(SIGINT, &action, NULL);
}

/* ---- coroutines ----------------------------------------------------------------------------- */

static lua_State *check_thread(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  luaL_argexpected(L, co, 1, "thread");
  return co;
}

/* Run co until it yields, ends or fails, and pass on an interrupt that it did not notice. */
static int resume_watched(lua_State *L, lua_State *co, int arguments, int *results) {
  lua_State *before = gp_lua_interrupt_watch(co);
  int status = lua_resume(co, L, arguments, results);
  gp_lua_interrupt_watch(before);
  if (gp_lua_interrupt_waiting()) gp_lua_interrupt_hand_over(co, L);
  return status;
}

/* Give up a resume that cannot start, with the reason on L. */
static int refuse(lua_State *L, const char *reason) {
  lua_pushstring(L, reason);
  return -1;
}

/* Move the arguments on top of L into co, run it and move its results back. Returns their number,
 * or -1 with the error object on top of L. An interrupt also becomes an error in L. */
static int resume_across(lua_State *L, lua_State *co, int arguments) {
  if (!lua_checkstack(co, arguments)) return refuse(L, "too many arguments to resume");
  lua_xmove(L, co, arguments);
  int results = 0, status = resume_watched(L, co, arguments, &results);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    if (gp_lua_is_interrupt(L, -1)) gp_lua_raise_interrupt(L);
    return -1;
  }
  if (!lua_checkstack(L, results + 1)) {
    lua_pop(co, results);
    return refuse(L, "too many results to resume");
  }
  lua_xmove(co, L, results);
  return results;
}

/* coroutine.resume(co, ...) -> true, ... | false, error */
static int resume(lua_State *L) {
  lua_State *co = check_thread(L);
  int count = resume_across(L, co, lua_gettop(L) - 1);
  lua_pushboolean(L, count >= 0);
  int below = count >= 0 ? count : 1;
  lua_insert(L, -(below + 1));
  return below + 1;
}

/* Raise the error of a wrapped coroutine. As in lua, its variables are closed first, and a text
 * gets the caller's position. */
static int raise_wrapped(lua_State *L, lua_State *co) {
  int status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD && lua_resetthread(co) != LUA_OK) {
    lua_pop(L, 1);
    lua_xmove(co, L, 1);
  }
  if (lua_type(L, -1) == LUA_TSTRING && status != LUA_ERRMEM) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

static int call_wrapped(lua_State *L) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  int count = resume_across(L, co, lua_gettop(L));
  return count >= 0 ? count : raise_wrapped(L, co);
}

/* coroutine.wrap(f) -> function */
static int wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, call_wrapped, 1);
  return 1;
}

/* coroutine.close(co): upvalue 1 is Lua's own function; closing runs the script's __close
 * functions. */
static int close_watched(lua_State *L) {
  lua_State *co = check_thread(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_State *before = gp_lua_interrupt_watch(co);
  int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  gp_lua_interrupt_watch(before);
  if (gp_lua_interrupt_waiting()) gp_lua_interrupt_hand_over(co, L);
  if (gp_lua_is_interrupt(L, -1)) gp_lua_raise_interrupt(L); /* close() would return it instead */
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

static void replace_coroutine_functions(lua_State *L) {
  static const luaL_Reg functions[] = {{"resume", resume}, {"wrap", wrap}, {NULL, NULL}};
  lua_getglobal(L, "coroutine");
  luaL_setfuncs(L, functions, 0);
  lua_getfield(L, -1, "close");
  lua_pushcclosure(L, close_watched, 1);
  lua_setfield(L, -2, "close");
  lua_pop(L, 1);
}

void gp_sigint_install(lua_State *L) {
  replace_coroutine_functions(L);
  catch_signal();
}
