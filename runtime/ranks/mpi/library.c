/* ranks/mpi/library.c - finds and opens libgpipe_mpi.so, which lies beside the program. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks/mpi/mpi.h"

/* The folder of the running code: of the program, or of the module that a stock Lua has loaded. */
static void folder_of_code(char *folder, size_t size) {
  Dl_info info = {0};
  *folder = 0;
  if (!dladdr((const void *)(uintptr_t)gp_mpi_find, &info) || !info.dli_fname) return;
  char *real = realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", NULL);
  char *slash = real ? strrchr(real, '/') : NULL;
  if (slash) snprintf(folder, size, "%.*s", (int)(slash - real), real);
  free(real);
}

/* The file that GPIPE_MPI_PLUGIN names comes first, then the places beside the program. */
bool gp_ranks_find_mpi(char *path, size_t size) {
  static const char *const places[] = {"%s/libgpipe_mpi.so", "%s/../lib/gpipe/libgpipe_mpi.so"};
  const char *named = getenv("GPIPE_MPI_PLUGIN");
  char folder[300];
  if (named && *named) return snprintf(path, size, "%s", named) < (int)size;
  folder_of_code(folder, sizeof folder);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(path, size, places[i], folder);
    if (!access(path, R_OK)) return true;
  }
  return false;
}

/* Open MPI loads parts of itself, which look for the symbols of its libraries: so these are global.
 * Nothing is ever closed. */
static gp_status open_library(const char *path, const gp_mpi_api **api) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!handle) return gp_fail(GP_EUNSUPPORTED, "MPI cannot be used: %s", dlerror());
  void *symbol = dlsym(handle, GP_MPI_ENTRY);
  gp_mpi_entry entry;
  memcpy(&entry, &symbol, sizeof entry);
  *api = symbol ? entry() : NULL;
  if (*api && (*api)->version == GP_MPI_VERSION) return GP_OK;
  return gp_fail(GP_EUNSUPPORTED,
                 "MPI cannot be used: %s has another interface, expected version %d", path,
                 (int)GP_MPI_VERSION);
}

/* Called by the thread of the script only. */
gp_status gp_mpi_find(const gp_mpi_api **api) {
  static const gp_mpi_api *found;
  char path[400];
  if (!found && !gp_ranks_find_mpi(path, sizeof path))
    return gp_fail(GP_EUNSUPPORTED,
                   "MPI cannot be used: this build has no libgpipe_mpi.so beside the program "
                   "(scripts/setup test installs libopenmpi-dev; then build again)");
  if (!found) GP_TRY(open_library(path, &found));
  *api = found;
  return GP_OK;
}
