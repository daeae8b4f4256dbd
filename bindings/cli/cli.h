/* bindings/cli/cli.h - the parts of the program gpipe-lua: its switches, how it runs chunks, how it
 * reports. */
#ifndef GP_BINDINGS_CLI_H
#define GP_BINDINGS_CLI_H

#include <stdbool.h>

#include <lua.h>

#define GP_PROGRAM "gpipe-lua"

/* Documented exit codes; 1 is Lua's for an uncaught error, 75 that of a run that can go on. */
enum {
  GP_EXIT_OK = 0,
  GP_EXIT_ERROR = 1,
  GP_EXIT_USAGE = 2,
  GP_EXIT_AGAIN = 75,
  GP_EXIT_INTERRUPT = 130
};

/* ---- options.c ------------------------------------------------------------------------------ */

typedef enum gp_switch {
  GP_SWITCH_END, /* the script follows */
  GP_SWITCH_EXECUTE,
  GP_SWITCH_LIBRARY,
  GP_SWITCH_INTERACTIVE,
  GP_SWITCH_BANNER,
  GP_SWITCH_WARNINGS,
  GP_SWITCH_NO_ENVIRONMENT,
  GP_SWITCH_DEVICES,
  GP_SWITCH_SEED,
  GP_SWITCH_DRY_RUN,
  GP_SWITCH_RANKS,
  GP_SWITCH_LOG_RANKS,
  GP_SWITCH_NODE,
  GP_SWITCH_MASTER,
  GP_SWITCH_RESTARTS,
  GP_SWITCH_VERSION,
  GP_SWITCH_LIST_DEVICES,
  GP_SWITCH_HELP,
  GP_SWITCH_BAD /* a message has been printed */
} gp_switch;

/* Read the switch at argv[*at] and move *at past it and its argument; *value receives the argument,
 * if it takes one. If the switch is bad, print why to stderr. */
gp_switch gp_switch_next(char **argv, int *at, const char **value);

typedef struct gp_options {
  int script;    /* position in argv; the end of argv if there is none */
  gp_switch run; /* what to do instead of running a script: VERSION, LIST_DEVICES, HELP; else END */
  bool interactive, banner, execute, no_environment, has_seed, log_ranks, dry_run;
  int ranks;          /* processes to start; 0: this one runs the script itself */
  int node, nodes;    /* this host among those of the job, from 0; nodes 0: it is the only one */
  int restarts;       /* how often a job that can go on is started again */
  const char *master; /* HOST:PORT where the ranks of several hosts meet, or NULL */
  lua_Integer seed;
  const char *devices; /* borrowed from argv; NULL if not given */
} gp_options;

/* Read all switches. Returns GP_EXIT_OK or GP_EXIT_USAGE, with the reason printed. */
int gp_options_parse(char **argv, gp_options *options);
void gp_options_print_help(void);

/* ---- run.c ---------------------------------------------------------------------------------- */

/* Call the function below its n arguments, like lua_pcall, with tracebacks and Ctrl-C. After a
 * failure its text is on the stack. */
int gp_run_call(lua_State *L, int arguments, int results);
/* If status is a failure, print the text on top and pop it; returns the exit code. */
int gp_run_report(lua_State *L, int status);
/* Was the last failure an interrupt (traceback.c)? */
bool gp_run_interrupted(lua_State *L);
/* Is the word in the script's place a command, as in gpipe-lua sweep? */
bool gp_run_is_command(char **argv, int at);
/* Do what the command line says; returns the exit code. */
int gp_run_options(lua_State *L, char **argv, const gp_options *options);

/* ---- launch/ -------------------------------------------------------------------------------- */

/* Start the ranks of a job and wait for them; returns the exit code of the first that failed. */
int gp_launch(char **argv, const gp_options *options);

/* ---- the rest ------------------------------------------------------------------------------- */

/* traceback.c: the message handler, which makes the text and traceback of the error object. */
int gp_traceback(lua_State *L);
void gp_traceback_forget(lua_State *L); /* nothing has failed yet */
/* Is it a function of the user's: neither C nor gpipe's own? The frame has "S" of lua_getinfo. */
bool gp_traceback_is_users(const lua_Debug *frame);
/* loaders.c: make require, dofile and loadfile accept source text only. */
void gp_loaders_install(lua_State *L);
/* output.c: report output that cannot be written. */
void gp_output_install(void);
/* warning.c: always print errors in finalizers, and other warnings if the script asks. */
void gp_warning_install(lua_State *L);
/* sigint.c: catch Ctrl-C, and track coroutines so that it reaches the running one. */
void gp_sigint_install(lua_State *L);
/* whereabouts.c: let other ranks of the job learn where the script is. */
void gp_whereabouts_install(void);
/* terminal.c: module "gpipe.terminal" for gpipe/shell/repl.lua. */
void gp_terminal_install(lua_State *L);
/* version.c: --version, -v, --list-devices. */
void gp_version_print(void);
void gp_banner_print(void);
int gp_devices_print(lua_State *L);

#endif
