/* bindings/interrupt.c - stop Lua code and the runtime on request, and raise that as a Lua error.
 *
 * Hooks belong to one coroutine, so the running one is remembered. The first press raises once; a
 * loop of pcalls would swallow that, so from the second press on the hook stays and raises again
 * and again until the program has unwound. */
#include "interrupt.h"

#include <signal.h>
#include <time.h>

#include <lauxlib.h>

#include "gpipe.h"

enum {
  STICKY = 2,
  ROW_SECONDS = 10,
  EVERYTHING = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT
};

/* Global, because a signal handler has no argument and can reach the running code only this way. */
static struct {
  lua_State *volatile current; /* the coroutine that runs */
  volatile sig_atomic_t presses, waiting;
  volatile time_t last;
  lua_Hook volatile hook; /* the script's own (debugger, coverage), restored afterwards */
  volatile int mask, count;
} interrupt;

/* Registry key of the error object. */
static const char object_key;

/* ---- the hook ------------------------------------------------------------------------------- */

static void stop(lua_State *L, lua_Debug *ar) {
  (void)ar;
  gp_lua_raise_interrupt(L);
}

/* Set our hook. The existing one is saved once: a second call must not save our own. */
static void arm(lua_State *L) {
  if (lua_gethook(L) != stop) {
    interrupt.hook = lua_gethook(L);
    interrupt.mask = lua_gethookmask(L);
    interrupt.count = lua_gethookcount(L);
  }
  lua_sethook(L, stop, EVERYTHING, 1);
}

static void disarm(lua_State *L) {
  if (lua_gethook(L) == stop) lua_sethook(L, interrupt.hook, interrupt.mask, interrupt.count);
}

/* ---- asking --------------------------------------------------------------------------------- */

lua_State *gp_lua_interrupt_watch(lua_State *L) {
  lua_State *before = interrupt.current;
  interrupt.current = L;
  return before;
}

lua_State *gp_lua_interrupt_current(void) { return interrupt.current; }

/* The signal handler calls this: it uses only lua_sethook, stores and time, which are safe
 * there. */
int gp_lua_interrupt_request(void) {
  time_t now = time(NULL);
  if (!interrupt.waiting && now - interrupt.last > ROW_SECONDS) interrupt.presses = 0;
  interrupt.last = now;
  interrupt.presses = interrupt.presses + 1;
  interrupt.waiting = 1;
  gp_interrupt_request();
  lua_State *L = interrupt.current;
  if (L) arm(L);
  return interrupt.presses;
}

bool gp_lua_interrupt_waiting(void) { return interrupt.waiting != 0; }

void gp_lua_interrupt_hand_over(lua_State *from, lua_State *to) {
  disarm(from);
  arm(to);
}

void gp_lua_interrupt_calm(lua_State *L) {
  interrupt.presses = interrupt.waiting = 0;
  disarm(L);
  gp_interrupt_clear();
}

void gp_lua_interrupt_reset(lua_State *L) {
  interrupt.current = NULL;
  gp_lua_interrupt_calm(L);
}

/* ---- raising -------------------------------------------------------------------------------- */

/* tostring(object) */
static int object_text(lua_State *L) {
  lua_getfield(L, 1, "message");
  return 1;
}

static void make_object(lua_State *L) {
  lua_createtable(L, 0, 2);
  lua_pushliteral(L, "interrupt");
  lua_setfield(L, -2, "code");
  lua_pushliteral(L, "interrupted!");
  lua_setfield(L, -2, "message");
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, object_text);
  lua_setfield(L, -2, "__tostring");
  lua_pushliteral(L, "gpipe.interrupt");
  lua_setfield(L, -2, "__name");
  lua_setmetatable(L, -2);
}

/* Push the error object, made on first use and kept, so that it is recognised by identity. */
static void push_object(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &object_key) != LUA_TNIL) return;
  lua_pop(L, 1);
  make_object(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &object_key);
}

int gp_lua_raise_interrupt(lua_State *L) {
  interrupt.waiting = 0;
  if (interrupt.presses < STICKY) {
    disarm(L);
    gp_interrupt_clear();
  }
  luaL_checkstack(L, 4, "to raise an interrupt");
  push_object(L);
  return lua_error(L);
}

bool gp_lua_is_interrupt(lua_State *L, int index) {
  index = lua_absindex(L, index);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &object_key);
  bool same = !lua_isnil(L, -1) && lua_rawequal(L, -1, index);
  lua_pop(L, 1);
  return same;
}
