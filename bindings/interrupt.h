/* bindings/interrupt.h - Ctrl-C as a Lua error.
 *
 * A binding that gets GP_EINTERRUPT from the runtime releases what it holds and returns
 * gp_lua_raise_interrupt(L). Everything else here is for the program, which has a signal handler;
 * in gpipe.so the host's own handler stays in charge. */
#ifndef GP_BINDINGS_INTERRUPT_H
#define GP_BINDINGS_INTERRUPT_H

#include <stdbool.h>

#include <lua.h>

/* Raise the interrupt: one error object per Lua state, a table {code = "interrupt", message =
 * "interrupted!"} with __tostring. Does not return. */
int gp_lua_raise_interrupt(lua_State *L);
bool gp_lua_is_interrupt(lua_State *L, int index);

/* Say which coroutine runs from now on (NULL: none); returns the one that ran before. */
lua_State *gp_lua_interrupt_watch(lua_State *L);
/* The one that runs now. Async-signal-safe on the script's thread. */
lua_State *gp_lua_interrupt_current(void);
/* Ask the running code to stop; returns how many presses there were in this row. Async-signal-safe
 * to the degree that lua_sethook is (a comment in ldebug.c). */
int gp_lua_interrupt_request(void);
/* Is there a request that has not been raised yet? */
bool gp_lua_interrupt_waiting(void);
/* `from` stopped running before it noticed the request: `to` shall notice it. */
void gp_lua_interrupt_hand_over(lua_State *from, lua_State *to);
/* Withdraw a request that has not been raised, and forget the presses; the running code goes on. */
void gp_lua_interrupt_calm(lua_State *L);
/* Forget everything: no code runs. */
void gp_lua_interrupt_reset(lua_State *L);

#endif
