/* bindings/cli/version.c - describes the program and what it found: -v, --version, --list-devices.
 *
 * The lines of --version are those that a bug report needs: they name what may change bits. */
#include <stdio.h>

#include <lauxlib.h>

#include "cli.h"
#include "gpipe.h"
#include "isa.h"

void gp_banner_print(void) { printf(GP_PROGRAM " " GP_VERSION ", " LUA_COPYRIGHT "\n"); }

/* Do not ask the GPUs, which would take seconds: --list-devices does. */
static void print_cuda(void) {
  char path[512];
  gp_status status = gp_gpus_find(path, sizeof path);
  if (!*path)
    printf("CUDA: not built (scripts/build --cuda makes libgpipe_cuda.so)\n");
  else
    printf("CUDA: %s%s\n", path, status ? ", but no NVIDIA driver is installed" : "");
}

static void print_mpi(void) {
  char path[512];
  printf("MPI: %s\n", gp_ranks_find_mpi(path, sizeof path)
                          ? path
                          : "not built (libopenmpi-dev or MPICH, then build again)");
}

/* Load oneDNN to get its version: the one that would be used, not just one that is installed. */
void gp_version_print(void) {
  const char *why = "", *gemm = gp_gemm_library(&why);
  gp_machine machine = gp_machine_info();
  printf(GP_PROGRAM " " GP_VERSION "\n%s\n", LUA_RELEASE);
  if (*gemm)
    printf("%s\n", gemm);
  else
    printf("oneDNN: none, plain kernels are used (%s)\n", why ? why : "not found");
  printf("built for -march=%s:%s\n", gp_isa_march(), gp_isa_built());
  printf("this machine: %s, %s, %d core%s\n", machine.model, machine.isa, machine.cores,
         machine.cores == 1 ? "" : "s");
  print_cuda();
  print_mpi();
}

/* list(): Lua makes the table, from gp.devices{why = true}. */
static int list(lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "gpipe.shell.command");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "list_devices");
  lua_call(L, 0, 0);
  return 0;
}

int gp_devices_print(lua_State *L) {
  lua_pushcfunction(L, list);
  return gp_run_report(L, gp_run_call(L, 0, 0));
}
