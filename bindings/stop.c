/* bindings/stop.c - how signals end a training run.
 *
 * A batch system sends SIGTERM before it takes a machine away (or SIGUSR1, as SLURM can be told
 * to), a lost connection sends SIGHUP, a user sends SIGINT. By default SIGTERM and SIGHUP end the
 * process at once, after a line that says so. A script that asks for it (gp.on_stop, gp.run)
 * finishes its step first: the signal is only remembered, and gpipe/stop.lua checks for it between
 * steps. A second signal then has its usual effect. `timeout` and batch systems signal a process
 * and then its group, so it may get one request twice: what comes within 50 ms is the same one. */
#include "stop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"

enum { SIGNALS = 4 };

static const int numbers[SIGNALS] = {SIGTERM, SIGHUP, SIGINT, SIGUSR1};
static const char *const names[SIGNALS + 1] = {"SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1", NULL};

/* Global, because a signal handler has no argument and can reach the requests only this way. */
static volatile sig_atomic_t caught;         /* number of the signal that was caught */
static struct timespec caught_at;            /* when; read by the handler of a later signal only */
static volatile sig_atomic_t asked[SIGNALS]; /* kept for the end of a step */
static struct sigaction before[SIGNALS];     /* the handlers before the script asked */

static int index_of(int number) {
  int i = 0;
  while (i < SIGNALS - 1 && numbers[i] != number) i++;
  return i;
}

/* Print with calls that a signal handler may use. */
static void say(const char *text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

static void tell(int number, const char *what) {
  say("gpipe: ");
  say(names[index_of(number)]);
  say(what);
}

static void die(int number) {
  signal(number, SIG_DFL);
  raise(number); /* inside a handler, it is delivered on return */
}

/* Handles SIGTERM and SIGHUP if the script has not asked for them. */
static void on_end(int number) {
  caught = number;
  tell(number, ": ended\n");
  die(number);
}

static const double SAME = 0.05; /* seconds */

static bool is_same_request(int number) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double passed =
      (double)(now.tv_sec - caught_at.tv_sec) + 1e-9 * (double)(now.tv_nsec - caught_at.tv_nsec);
  return number == caught && passed < SAME;
}

/* Handles a signal that the script asked for. A second signal goes to the earlier handler: Ctrl-C
 * to the program's own, which stops the script. */
static void on_asked(int number) {
  int i = index_of(number);
  if (!caught) {
    clock_gettime(CLOCK_MONOTONIC, &caught_at);
    caught = number;
    tell(number, number == SIGINT ? ": ends after this step (again: now)\n"
                                  : ": ends before the next step\n");
    return;
  }
  if (is_same_request(number)) return;
  if (number != SIGINT) {
    tell(number, ": ended\n");
    die(number);
    return;
  }
  sigaction(number, &before[i], NULL);
  raise(number);
}

/* Signals that the process was started to ignore (nohup) stay ignored. SA_RESTART lets the script's
 * system calls go on. */
static void catch_signal(int number, void (*handler)(int), struct sigaction *old) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  if (sigaction(number, NULL, old) == 0 && old->sa_handler != SIG_IGN)
    sigaction(number, &action, NULL);
}

void gp_stop_install(void) {
  struct sigaction old;
  catch_signal(SIGTERM, on_end, &old);
  catch_signal(SIGHUP, on_end, &old);
}

static void ask(int i, bool whether) {
  if (asked[i] == whether) return;
  asked[i] = whether;
  if (whether)
    catch_signal(numbers[i], on_asked, &before[i]);
  else if (before[i].sa_handler != SIG_IGN)
    sigaction(numbers[i], &before[i], NULL);
}

/* core.stop_ask({"SIGTERM", ...}): from now on keep the first of these signals that arrives, and no
 * other, for the end of a step. A caught signal that has had no effect yet is forgotten. */
static int stop_ask(lua_State *L) {
  bool wanted[SIGNALS] = {false};
  luaL_checktype(L, 1, LUA_TTABLE);
  for (lua_Integer n = 1; n <= (lua_Integer)lua_rawlen(L, 1); n++) {
    lua_rawgeti(L, 1, n);
    wanted[luaL_checkoption(L, -1, NULL, names)] = true;
    lua_pop(L, 1);
  }
  for (int i = 0; i < SIGNALS; i++) ask(i, wanted[i]);
  caught = 0;
  return 0;
}

/* core.stop_caught() -> "SIGTERM", ... | nil */
static int stop_caught(lua_State *L) {
  if (!caught) return 0;
  lua_pushstring(L, names[index_of(caught)]);
  return 1;
}

/* core.stop_now(): flush the output and die from the signal that was caught */
static int stop_now(lua_State *L) {
  (void)L;
  fflush(NULL);
  if (caught) die(caught);
  return 0;
}

static const luaL_Reg functions[] = {
    {"stop_ask", stop_ask}, {"stop_caught", stop_caught}, {"stop_now", stop_now}, {NULL, NULL}};

int gp_open_stop(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
