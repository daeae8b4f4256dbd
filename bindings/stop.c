/* bindings/stop.c - how SIGTERM and SIGHUP end a training run.
 *
 * A batch system sends SIGTERM before it takes a machine away, a lost connection SIGHUP. By default
 * they end the process at once, after a line that says so. A script that asked for it (gp.on_stop)
 * finishes its step first: the signal is only remembered, and gpipe/stop.lua looks for it between
 * steps. A second signal ends the process at once. */
#include "stop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"

/* A signal handler has no argument: this is the only way it can reach what was asked. */
static volatile sig_atomic_t caught, asked;

static const char *name_of(int number) { return number == SIGHUP ? "SIGHUP" : "SIGTERM"; }

/* Only what a signal handler may call. */
static void say(const char *text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

static void die(int number) {
  signal(number, SIG_DFL);
  raise(number); /* in a handler: delivered when it returns */
}

static void on_signal(int number) {
  bool wait = asked && !caught;
  caught = number;
  say("gpipe: ");
  say(name_of(number));
  say(wait ? ": ends before the next step\n" : ": ended\n");
  if (!wait) die(number);
}

/* What the process was started to ignore (nohup) stays ignored. SA_RESTART: the script goes on. */
static void catch_signal(int number) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
  sigemptyset(&action.sa_mask);
  if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
    sigaction(number, &action, NULL);
}

void gp_stop_install(void) {
  catch_signal(SIGTERM);
  catch_signal(SIGHUP);
}

/* core.stop_ask(whether): from now on keep the first signal for the end of a step, or not */
static int stop_ask(lua_State *L) {
  asked = lua_toboolean(L, 1);
  if (asked) gp_stop_install();
  return 0;
}

/* core.stop_caught() -> "SIGTERM" | "SIGHUP" | nil */
static int stop_caught(lua_State *L) {
  if (!caught) return 0;
  lua_pushstring(L, name_of(caught));
  return 1;
}

/* core.stop_now(): die by the signal that was caught, with what was printed written out */
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
