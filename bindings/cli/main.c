/* bindings/cli/main.c - the program gpipe-lua: a Lua 5.4 interpreter that holds the runtime.
 *
 * This file and isa.c are compiled for the oldest processor: they run before the program knows that
 * the machine has the instructions that the rest was built with. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "cli.h"
#include "cli/launch/said.h"
#include "embed.h"
#include "isa.h"
#include "stop.h"

#include "gpipe.h"

/* Say what the processor lacks: otherwise the program would die from an illegal instruction without
 * a reason. */
static int refuse_processor(const char *missing) {
  fprintf(stderr,
          GP_PROGRAM
          ": this processor has no %s, which this build uses (-march=%s).\n"
          "Build it on this machine, or with cmake -DGPIPE_MARCH=x86-64-v3 (or x86-64).\n",
          missing, gp_isa_march());
  return GP_EXIT_ERROR;
}

/* program(options, argv, &code): the protected part of main. */
static int program(lua_State *L) {
  const gp_options *options = lua_touserdata(L, 1);
  char **argv = lua_touserdata(L, 2);
  int *code = lua_touserdata(L, 3);
  luaL_checkversion(L);
  if (options->no_environment) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  luaL_openlibs(L);
  /* Incremental: a generational collector hardly notices tensors, which are small to Lua. */
  lua_gc(L, LUA_GCINC, 0, 0, 0);
  gp_warning_install(L);
  gp_sigint_install(L);
  gp_stop_install();
  gp_whereabouts_install();
  signal(SIGXFSZ, SIG_IGN); /* write returns an error at a file's size limit */
  gp_loaders_install(L);
  gp_lua_install(L);
  gp_terminal_install(L);
  *code = gp_run_options(L, argv, options);
  return 0;
}

/* What may raise runs in pcall; only luaL_newstate and the report are outside. */
static int run(char **argv, const gp_options *options) {
  lua_State *L = luaL_newstate();
  if (!L) {
    fputs(GP_PROGRAM ": no memory for a Lua state\n", stderr);
    return GP_EXIT_ERROR;
  }
  int code = GP_EXIT_ERROR;
  lua_pushcfunction(L, program);
  lua_pushlightuserdata(L, (void *)options);
  lua_pushlightuserdata(L, argv);
  lua_pushlightuserdata(L, &code);
  int status = lua_pcall(L, 3, 0, 0);
  if (status != LUA_OK) code = gp_run_report(L, status);
  lua_close(L);
  if (gp_ranks_leave(code)) {
    fflush(NULL);
    _exit(code);
  }
  return code;
}

/* Open standard input, output and error if a daemon's parent has closed them: otherwise a file of
 * ours would get their number, and printed text would go into it. */
static void fill_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)open("/dev/null", O_RDWR);
}

/* Rank 0 prints for all, whatever has started the ranks; errors of the others are seen. Commands
 * but `links` are no ranks: srun may start a sweep on each host. */
static void silence(char **argv, const gp_options *options) {
  gp_rank_info info;
  if (gp_run_is_command(argv, options->script) && strcmp(argv[options->script], "links"))
    setenv("GPIPE_ALONE", "1", 1);
  if (options->log_ranks || gp_ranks_info(&info) || info.rank == 0) return;
  if (!freopen("/dev/null", "w", stdout)) fputs(GP_PROGRAM ": no /dev/null\n", stderr);
}

/* --help and --version work without a Lua state, whatever may be wrong with that. */
int main(int argc, char **argv) {
  (void)argc;
  fill_descriptors();
  const char *missing = gp_isa_missing();
  if (missing) return refuse_processor(missing);
  gp_said_take();
  gp_output_install();
  gp_options options;
  int code = gp_options_parse(argv, &options);
  if (code != GP_EXIT_OK) return code;
  if (options.run == GP_SWITCH_HELP) gp_options_print_help();
  if (options.run == GP_SWITCH_VERSION) gp_version_print();
  if (options.run == GP_SWITCH_HELP || options.run == GP_SWITCH_VERSION) return GP_EXIT_OK;
  /* a dry run of a job is one process */
  if (options.ranks && !options.dry_run && options.run == GP_SWITCH_END)
    return gp_launch(argv, &options);
  silence(argv, &options);
  return run(argv, &options);
}
