/* bindings/cli/whereabouts.c - where the script is, for other ranks that wait for it.
 *
 * Only the script's own thread may look at its Lua state. So the thread of the messages sends it a
 * signal, whose handler sets a hook, as Ctrl-C does: at its next instruction the script notes its
 * line, or ends with an error. SIGURG is the signal that does nothing where it is not expected. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "cli.h"
#include "gpipe.h"
#include "interrupt.h"

enum { SIGNAL = SIGURG, EVERYTHING = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT };

/* Global, because a signal handler has no argument and can reach the running code only this way. */
static struct {
  pthread_t thread; /* the script's */
  _Atomic int stops;
  char why[512];          /* the error that it shall raise */
  volatile lua_Hook hook; /* the script's own (debugger, coverage), restored afterwards */
  volatile int mask, count;
} script;

/* ---- on the script's thread ------------------------------------------------------------------ */

/* Note the line of the innermost function that is the user's. */
static void note_line(lua_State *L) {
  lua_Debug frame;
  char line[LUA_IDSIZE + 16];
  for (int level = 0; lua_getstack(L, level, &frame); level++) {
    lua_getinfo(L, "Sl", &frame);
    if (!gp_traceback_is_users(&frame)) continue;
    const char *slash = strrchr(frame.short_src, '/');
    snprintf(line, sizeof line, "%s:%d", slash ? slash + 1 : frame.short_src, frame.currentline);
    gp_ranks_note_line(line);
    return;
  }
}

static void look(lua_State *L, lua_Debug *ar) {
  (void)ar;
  lua_sethook(L, script.hook, script.mask, script.count);
  if (!atomic_exchange(&script.stops, 0)) {
    note_line(L);
    return;
  }
  lua_pushstring(L, script.why);
  lua_error(L);
}

/* Ctrl-C has a hook of its own, and ends the script anyway. */
static void on_signal(int number) {
  (void)number;
  lua_State *L = gp_lua_interrupt_current();
  if (!L || gp_lua_interrupt_waiting()) return;
  if (lua_gethook(L) != look) {
    script.hook = lua_gethook(L);
    script.mask = lua_gethookmask(L);
    script.count = lua_gethookcount(L);
  }
  lua_sethook(L, look, EVERYTHING, 1);
}

/* restarts: SA_RESTART, which lets the script's system calls go on, or 0. */
static void catch_signal(int restarts) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = restarts};
  sigemptyset(&action.sa_mask);
  sigaction(SIGNAL, &action, NULL);
}

/* ---- on the thread of the messages ----------------------------------------------------------- */

static void locate(void) { pthread_kill(script.thread, SIGNAL); }

/* A script that waits for input gets an error from that. */
static void stop(const char *why) {
  snprintf(script.why, sizeof script.why, "%s", why);
  atomic_store(&script.stops, 1);
  catch_signal(0);
  pthread_kill(script.thread, SIGNAL);
}

/* Streams may be locked by the script's thread, so nothing is flushed. */
static void end(const char *why) {
  char text[700];
  const bool goes_on = gp_ranks_can_go_on();
  const int length =
      snprintf(text, sizeof text, GP_PROGRAM ": %s; its script did not stop%s\n", why,
               goes_on ? "; the same command goes on from the last checkpoint" : "");
  const ssize_t written = write(STDERR_FILENO, text, (size_t)length);
  (void)written;
  _exit(goes_on ? GP_EXIT_AGAIN : GP_EXIT_ERROR);
}

/* ---- installing ------------------------------------------------------------------------------ */

static const gp_rank_script hooks = {.locate = locate, .stop = stop, .end = end};

/* A process that was started with the signal ignored keeps ignoring it. */
void gp_whereabouts_install(void) {
  gp_rank_info info;
  struct sigaction old;
  if (gp_ranks_info(&info) || info.count == 1) return;
  if (sigaction(SIGNAL, NULL, &old) || old.sa_handler != SIG_DFL) return;
  script.thread = pthread_self();
  catch_signal(SA_RESTART);
  gp_ranks_set_script(&hooks);
}
