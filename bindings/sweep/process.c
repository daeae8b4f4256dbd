/* bindings/sweep/process.c - child processes that end with their parent, and an alarm for Lua code.
 *
 * A sweep runs each trial in a process. A child gets a share of the cores through its affinity
 * mask, which the runtime counts. It dies when the process that started it ends, in whatever way
 * (PR_SET_PDEATHSIG). Between fork and exec only functions that are safe there are called. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"
#include "interrupt.h"

#define PROCESS "gpipe.Process"

typedef struct process_box {
  pid_t pid; /* 0 when it has ended and was waited for */
} process_box;

/* ---- starting a child ---------------------------------------------------------------------- */

typedef struct launch {
  const char *program;             /* path of the executable */
  char **arguments, **environment; /* end with NULL */
  const char *output;              /* a file to which both streams are appended */
  cpu_set_t cores;
  bool has_cores;
} launch;

/* Push memory for `count` pointers and a NULL after them. */
static char **push_pointers(lua_State *L, size_t count) {
  char **list = lua_newuserdatauv(L, (count + 1) * sizeof *list, 0);
  memset(list, 0, (count + 1) * sizeof *list);
  return list;
}

/* The strings of the list at `index`, which keeps them alive; the pointers are on the stack. */
static char **push_strings(lua_State *L, int index) {
  size_t count = lua_rawlen(L, index);
  char **list = push_pointers(L, count);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    list[i] = (char *)(uintptr_t)gp_lua_check_string(L, -1, "spawn: an argument");
    lua_pop(L, 1);
  }
  return list;
}

/* This process's environment, with the NAME=value strings of the list at `index` added or
 * replaced. */
static char **push_environment(lua_State *L, int index) {
  size_t added = lua_rawlen(L, index), kept = 0, there = 0;
  while (environ && environ[there]) there++;
  char **list = push_pointers(L, added + there);
  for (size_t i = 0; i < added; i++) {
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    list[i] = (char *)(uintptr_t)gp_lua_check_string(L, -1, "spawn: a variable");
    lua_pop(L, 1);
  }
  for (size_t i = 0; i < there; i++) {
    size_t name = strcspn(environ[i], "=") + 1;
    bool replaced = false;
    for (size_t k = 0; k < added; k++)
      replaced = replaced || strncmp(list[k], environ[i], name) == 0;
    if (!replaced) list[added + kept++] = environ[i];
  }
  return list;
}

/* Choose share `part` (from 0) of `parts` among the cores that this process may use; at least
 * one. */
static void choose_cores(launch *l, int64_t part, int64_t parts) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all)) return;
  int64_t count = CPU_COUNT(&all), first = part * count / parts, end = (part + 1) * count / parts;
  if (count < 1) return;
  if (end <= first) first = part % count, end = first + 1;
  CPU_ZERO(&l->cores);
  int64_t seen = 0;
  for (size_t core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &all) && seen++ >= first && seen <= end) CPU_SET(core, &l->cores);
  l->has_cores = true;
}

/* Runs in the child. As in a shell, the exit code reports failures. */
static void become(const launch *l, pid_t parent) {
  static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGPIPE};
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) signal(caught[i], SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127); /* the parent died before prctl */
  setpgid(0, 0);                       /* Ctrl-C goes to the parent, which signals its children */
  if (l->has_cores) sched_setaffinity(0, sizeof l->cores, &l->cores);
  int in = open("/dev/null", O_RDONLY);
  int out = open(l->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
  execve(l->program, l->arguments, l->environment);
  _exit(127);
}

/* core.spawn(program, arguments, variables, output, part, parts) -> process | nil, message, code.
 * arguments[1] is the program's name. */
static int spawn(lua_State *L) {
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  launch l = {.program = gp_lua_check_string(L, 1, "spawn: the program"),
              .output = gp_lua_check_string(L, 4, "spawn: the output")};
  int64_t parts = gp_lua_check_int(L, 6, "spawn: parts", 1, INT32_MAX);
  choose_cores(&l, gp_lua_check_int(L, 5, "spawn: part", 0, parts - 1), parts);
  l.arguments = push_strings(L, 2);
  l.environment = push_environment(L, 3);
  process_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (process_box){0};
  luaL_setmetatable(L, PROCESS);
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(&l, parent);
  if (pid < 0) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: no process: %s", l.program, strerror(errno));
    lua_pushliteral(L, "io");
    return 3;
  }
  box->pid = pid;
  return 1;
}

/* ---- a child ------------------------------------------------------------------------------- */

static int process_clear(lua_State *L) {
  process_box *box = luaL_checkudata(L, 1, PROCESS);
  if (box->pid) {
    kill(box->pid, SIGKILL);
    while (waitpid(box->pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  box->pid = 0;
  return 0;
}

/* process:poll() -> nil while it runs | "exit", code | "signal", number; reports the end once */
static int process_poll(lua_State *L) {
  process_box *box = luaL_checkudata(L, 1, PROCESS);
  int status = 0;
  if (!box->pid || waitpid(box->pid, &status, WNOHANG) != box->pid) return 0;
  box->pid = 0;
  lua_pushstring(L, WIFSIGNALED(status) ? "signal" : "exit");
  lua_pushinteger(L, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return 2;
}

/* process:kill(number): send a signal if it still runs */
static int process_kill(lua_State *L) {
  process_box *box = luaL_checkudata(L, 1, PROCESS);
  int number = (int)gp_lua_check_int(L, 2, "process: the signal", 0, 64);
  if (box->pid) kill(box->pid, number);
  return 0;
}

/* process:pid() -> integer; 0 after it has ended */
static int process_pid(lua_State *L) {
  lua_pushinteger(L, ((process_box *)luaL_checkudata(L, 1, PROCESS))->pid);
  return 1;
}

/* ---- this process -------------------------------------------------------------------------- */

/* core.sleep(seconds): wait; a signal ends the wait early */
static int sleep_for(lua_State *L) {
  double seconds = gp_lua_check_number(L, 1, "sleep: seconds");
  if (!(seconds > 0)) return 0;
  double whole = floor(fmin(seconds, 1e9));
  struct timespec wait = {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
  nanosleep(&wait, NULL);
  return 0;
}

static volatile sig_atomic_t rang;

static void on_alarm(int number) {
  (void)number;
  rang = 1;
  gp_lua_interrupt_request();
}

/* core.alarm(seconds) -> did the previous alarm go off? After so many seconds the running code is
 * interrupted, as by Ctrl-C; 0 cancels the alarm. In the program only. */
static int set_alarm(lua_State *L) {
  double seconds = fmin(gp_lua_check_number(L, 1, "alarm: seconds"), 1e8);
  struct itimerval timer = {0};
  setitimer(ITIMER_REAL, &timer, NULL);
  if (rang) gp_lua_interrupt_calm(L);
  lua_pushboolean(L, rang);
  rang = 0;
  if (!(seconds > 0)) return 1;
  struct sigaction action = {.sa_handler = on_alarm};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
  timer.it_value.tv_sec = (time_t)floor(seconds);
  timer.it_value.tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6) + 1;
  setitimer(ITIMER_REAL, &timer, NULL);
  return 1;
}

/* core.file_system(path) -> Linux's number for the kind of file system, or nil */
static int file_system(lua_State *L) {
  struct statfs info;
  if (statfs(gp_lua_check_string(L, 1, "file_system: the path"), &info)) return 0;
  lua_pushinteger(L, (lua_Integer)info.f_type);
  return 1;
}

/* core.seconds_since_1970() -> wall-clock time, with its fraction */
static int since_1970(lua_State *L) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec * 1e-9);
  return 1;
}

static const luaL_Reg methods[] = {{"poll", process_poll},
                                   {"kill", process_kill},
                                   {"pid", process_pid},
                                   {"close", process_clear},
                                   {NULL, NULL}};

static const luaL_Reg functions[] = {{"spawn", spawn},
                                     {"sleep", sleep_for},
                                     {"alarm", set_alarm},
                                     {"file_system", file_system},
                                     {"seconds_since_1970", since_1970},
                                     {NULL, NULL}};

int gp_open_process(lua_State *L) {
  gp_lua_push_type(L, PROCESS, process_clear);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
