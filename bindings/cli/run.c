/* bindings/cli/run.c - runs what the command line names, in the order and with the rules of lua
 * 5.4: LUA_INIT, then -e, -l and -W in their order, then the script, then the interactive mode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h> /* access, isatty */

#include <lauxlib.h>
#include <lualib.h> /* LUA_VERSUFFIX */

#include "binding.h"
#include "cli.h"
#include "cli/launch/said.h"
#include "interrupt.h"
#include "load.h"
#include "nearest.h"

/* ---- calling and reporting ------------------------------------------------------------------ */

int gp_run_call(lua_State *L, int arguments, int results) {
  int base = lua_gettop(L) - arguments; /* position of the function, later of the handler */
  lua_pushcfunction(L, gp_traceback);
  lua_insert(L, base);
  gp_traceback_forget(L);
  lua_State *before = gp_lua_interrupt_watch(L);
  int status = lua_pcall(L, arguments, results, base);
  if (status != LUA_OK) gp_lua_interrupt_reset(L);
  gp_lua_interrupt_watch(before);
  lua_remove(L, base);
  return status;
}

/* Let gp.run note in its records how the script ended; the error object stays on top. Returns the
 * exit code that it wants: where a rank was lost, a run may go on from its checkpoint. */
static int tell_failure(lua_State *L) {
  int code = GP_EXIT_ERROR;
  if (gp_lua_push_hook(L, "failed") == LUA_TFUNCTION) {
    lua_pushvalue(L, -2);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isinteger(L, -1)) code = (int)lua_tointeger(L, -1);
  }
  lua_pop(L, 1); /* the code, a value that is no hook, or its error */
  return code;
}

/* Errors of several ranks meet on one screen, and a launcher other than ours may not say whose line
 * is whose. */
static void put_rank(void) {
  gp_rank_info info;
  if (gp_ranks_info(&info) || info.count == 1 || getenv("GPIPE_RANKS_LABELLED")) return;
  fprintf(stderr, "rank %d%s%s: ", info.rank, info.one_host ? "" : " on ",
          info.one_host ? "" : info.host);
}

int gp_run_report(lua_State *L, int status) {
  if (status == LUA_OK) return GP_EXIT_OK;
  const int code = tell_failure(L);
  size_t length = 0;
  const char *text = lua_tolstring(L, -1, &length);
  fflush(stdout); /* show the script's output before its error */
  fputs(GP_PROGRAM ": ", stderr);
  put_rank();
  fwrite(text ? text : "", 1, length, stderr); /* whole: it may hold zeros */
  fputs(text ? "\n" : "(error object is not a string)\n", stderr);
  gp_said_note(text ? text : "(error object is not a string)");
  gp_ranks_note_failure(text ? text : "an error object that is not a string");
  lua_pop(L, 1);
  return gp_run_interrupted(L) ? GP_EXIT_INTERRUPT : code;
}

/* Call the chunk on top if it was loaded; `loaded` is the status of loading. */
static int run_chunk(lua_State *L, int loaded) {
  return gp_run_report(L, loaded == LUA_OK ? gp_run_call(L, 0, 0) : loaded);
}

static int run_text(lua_State *L, const char *text, const char *name) {
  return run_chunk(L, gp_load_text(L, text, name));
}

/* ---- switches that act in order ------------------------------------------------------------- */

/* Run -l mod or -l g=mod; the global for "mod-version" is "mod". */
static int run_library(lua_State *L, const char *value) {
  const char *equals = strchr(value, '='), *module = equals ? equals + 1 : value;
  size_t length = equals ? (size_t)(equals - value) : strcspn(value, "-");
  lua_pushlstring(L, value, length);
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  int status = gp_run_call(L, 1, 1);
  if (status == LUA_OK) {
    lua_pushglobaltable(L);
    lua_insert(L, -3);
    lua_rawset(L, -3);
  } else {
    lua_remove(L, -2);
  }
  int code = gp_run_report(L, status);
  lua_pop(L, 1);
  return code;
}

/* Run -e, -l and -W in the order given; the other switches were handled when the line was
 * checked. */
static int run_switches(lua_State *L, char **argv) {
  int at = argv[0] ? 1 : 0, code = GP_EXIT_OK;
  const char *value;
  gp_switch kind;
  while (code == GP_EXIT_OK && (kind = gp_switch_next(argv, &at, &value)) != GP_SWITCH_END) {
    if (kind == GP_SWITCH_EXECUTE) code = run_text(L, value, "=(command line)");
    if (kind == GP_SWITCH_LIBRARY) code = run_library(L, value);
    if (kind == GP_SWITCH_WARNINGS) lua_warning(L, "@on", 0);
  }
  return code;
}

/* Run LUA_INIT_5_4, or else LUA_INIT; "@file" names a file. */
static int run_init(lua_State *L) {
  const char *name = "=LUA_INIT" LUA_VERSUFFIX, *init = getenv(name + 1);
  if (!init) name = "=LUA_INIT", init = getenv(name + 1);
  if (!init) return GP_EXIT_OK;
  if (init[0] == '@') return run_chunk(L, gp_load_file(L, init + 1));
  return run_text(L, init, name);
}

/* ---- our switches --------------------------------------------------------------------------- */

/* Append "cpu:0,cpu:1" as a list to the table on top. Errors: raises for an empty name. */
static void push_devices(lua_State *L, const char *list) {
  lua_newtable(L);
  for (lua_Integer n = 1;; n++) {
    size_t length = strcspn(list, ",");
    if (length == 0)
      luaL_error(L, "--devices: device %d has no name, expected a list like cpu:0,cpu:1", (int)n);
    lua_pushlstring(L, list, length);
    lua_rawseti(L, -2, n);
    if (!list[length]) return;
    list += length + 1;
  }
}

/* Call math.randomseed(seed), so that the script's own random numbers follow the seed too. */
static void seed_lua(lua_State *L, lua_Integer seed) {
  lua_getglobal(L, "math");
  lua_getfield(L, -1, "randomseed");
  lua_pushinteger(L, seed);
  lua_call(L, 1, 0);
}

/* apply(options): put the defaults where the Lua layer looks for them. */
static int apply_defaults(lua_State *L) {
  const gp_options *o = lua_touserdata(L, 1);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "gpipe.config");
  lua_call(L, 1, 1);
  if (o->devices) {
    push_devices(L, o->devices);
    lua_setfield(L, -2, "devices");
  }
  lua_pushboolean(L, o->dry_run);
  lua_setfield(L, -2, "dry_run");
  lua_pushinteger(L, o->ranks);
  lua_setfield(L, -2, "ranks"); /* of a host */
  lua_pushinteger(L, o->nodes ? o->nodes : 1);
  lua_setfield(L, -2, "hosts");
  if (!o->has_seed) return 0;
  lua_pushinteger(L, o->seed);
  lua_setfield(L, -2, "seed");
  lua_getglobal(L, "require");
  lua_pushliteral(L, "gpipe");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "seed");
  lua_pushinteger(L, o->seed);
  lua_call(L, 1, 0);
  return seed_lua(L, o->seed), 0;
}

/* This runs protected like a script, so that a wrong device name is reported. */
static int run_defaults(lua_State *L, const gp_options *options) {
  bool any = options->devices || options->has_seed || options->dry_run;
  if (!any) return GP_EXIT_OK; /* no need to load gpipe */
  lua_pushcfunction(L, apply_defaults);
  lua_pushlightuserdata(L, (void *)options);
  return gp_run_report(L, gp_run_call(L, 1, 0));
}

/* ---- the script ----------------------------------------------------------------------------- */

/* Make the global arg: the script at 0, its arguments from 1, earlier words below 0. */
static void make_arg(lua_State *L, char **argv, int script) {
  int end = 0;
  while (argv[end]) end++;
  int zero = script < end ? script : 0; /* without a script the program is arg[0], as in lua */
  lua_createtable(L, end > zero ? end - zero : 0, zero + 1);
  for (int i = 0; i < end; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - zero);
  }
  lua_setglobal(L, "arg");
}

static const char *const commands[] = {"links", "plot", "runs", "sweep", "watch"};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* The command of which the word is a beginning, or which begins the word (`plots`); NULL: none. */
static const char *near_command(const char *word) {
  for (size_t i = 0; i < COMMANDS; i++) {
    const size_t length = strlen(commands[i]), given = strlen(word);
    if (given > 1 && strncmp(word, commands[i], given < length ? given : length) == 0 &&
        given <= length + 2)
      return commands[i];
  }
  return NULL;
}

/* Append to the text on top, "cannot open ...", the file or command that may be meant. */
static void suggest_script(lua_State *L, const char *name) {
  char near[1024];
  gp_nearest_file(name, near, sizeof near);
  const char *command = near_command(name);
  if (!*near && command) snprintf(near, sizeof near, GP_PROGRAM " %s", command);
  if (!*near) return;
  lua_pushfstring(L, "%s (did you mean '%s'?)", lua_tostring(L, -1), near);
  lua_remove(L, -2);
}

/* Run the script with its arguments as `...`. "-" after "--" is a file with that name. */
static int run_script(lua_State *L, char **argv, int script) {
  const char *name = argv[script];
  bool from_stdin = strcmp(name, "-") == 0 && strcmp(argv[script - 1], "--") != 0;
  int status = gp_load_file(L, from_stdin ? NULL : name);
  int count = 0;
  if (status == LUA_ERRFILE && !from_stdin && access(name, F_OK)) suggest_script(L, name);
  for (; status == LUA_OK && argv[script + 1 + count]; count++) {
    luaL_checkstack(L, 4, "too many arguments to script");
    lua_pushstring(L, argv[script + 1 + count]);
  }
  return gp_run_report(L, status == LUA_OK ? gp_run_call(L, count, 0) : status);
}

/* Run a command, a word in the script's place. Its module, gpipe/command/<word>.lua, is a function
 * that gets the words after it and returns the exit code. To run a file with that name, write
 * ./word. */
static int run_command(lua_State *L, char **argv, int at) {
  lua_getglobal(L, "require");
  lua_pushfstring(L, "gpipe.command.%s", argv[at]);
  int status = gp_run_call(L, 1, 1);
  if (status == LUA_OK) {
    lua_newtable(L);
    for (int i = at + 1; argv[i]; i++) {
      lua_pushstring(L, argv[i]);
      lua_rawseti(L, -2, i - at);
    }
    status = gp_run_call(L, 1, 1);
  }
  if (status != LUA_OK) return gp_run_report(L, status);
  int code = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return code;
}

bool gp_run_is_command(char **argv, int at) {
  if (!argv[at] || strcmp(argv[at - 1], "--") == 0) return false; /* then it is a file */
  for (size_t i = 0; i < COMMANDS; i++)
    if (strcmp(argv[at], commands[i]) == 0) return true;
  return false;
}

/* Run the interactive mode, a Lua module that catches its own errors. */
static int run_interactive(lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "gpipe.shell.repl");
  int status = gp_run_call(L, 1, 1);
  if (status == LUA_OK) {
    lua_getfield(L, -1, "run");
    lua_remove(L, -2);
    status = lua_pcall(L, 0, 0, 0);
  }
  return gp_run_report(L, status);
}

/* ---- everything ----------------------------------------------------------------------------- */

/* Do what lua does if the line names no script. */
static int run_without_script(lua_State *L, const gp_options *o) {
  if (o->execute || o->banner) return GP_EXIT_OK;
  if (isatty(STDIN_FILENO)) return run_interactive(L);
  return run_chunk(L, gp_load_file(L, NULL));
}

/* Let math.random draw the same numbers in all ranks of a job: scripts choose their batches with
 * it. Without a job Lua's own seed stays, which differs from run to run. */
static void seed_ranks(lua_State *L) {
  const uint64_t seed = gp_ranks_seed();
  if (seed) seed_lua(L, (lua_Integer)seed);
}

/* Print the plans of a script under --dry-run that ran to its end, without a pass. */
static int finish_dry(lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "gpipe.plan.script");
  int status = gp_run_call(L, 1, 1);
  if (status == LUA_OK) {
    lua_getfield(L, -1, "finish");
    lua_remove(L, -2);
    status = gp_run_call(L, 0, 0);
  }
  return gp_run_report(L, status);
}

int gp_run_options(lua_State *L, char **argv, const gp_options *options) {
  if (options->run == GP_SWITCH_LIST_DEVICES) return gp_devices_print(L);
  if (options->banner && !options->interactive) gp_banner_print();
  make_arg(L, argv, options->script);
  seed_ranks(L);
  int code = options->no_environment ? GP_EXIT_OK : run_init(L);
  if (code == GP_EXIT_OK) code = run_defaults(L, options);
  if (code == GP_EXIT_OK) code = run_switches(L, argv);
  if (code != GP_EXIT_OK) return code;
  bool script = argv[options->script] != NULL;
  if (script && gp_run_is_command(argv, options->script))
    return run_command(L, argv, options->script);
  if (script) code = run_script(L, argv, options->script);
  if (script && code == GP_EXIT_OK && options->dry_run) return finish_dry(L);
  /* As in lua, -i goes on only after a script that ended well. */
  if (options->interactive) return code == GP_EXIT_OK ? run_interactive(L) : code;
  return script ? code : run_without_script(L, options);
}
