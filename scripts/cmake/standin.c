/* scripts/cmake/standin.c - TEMPORARY: what the program needs of parts that are not merged yet. */
#include <lauxlib.h>

#include "embed.h"
#include "gpipe.h"

#ifndef HAVE_INTERRUPT
static bool pending;
void gp_interrupt_request(void) { pending = true; }
void gp_interrupt_clear(void) { pending = false; }
bool gp_interrupt_pending(void) { return pending; }
#endif
#ifndef HAVE_GEMM
const char *gp_gemm_library(const char **why) {
  if (why) *why = "not merged";
  return "";
}
#endif
#ifndef HAVE_MACHINE
gp_machine gp_machine_info(void) { return (gp_machine){.cores = 1, .isa = "?", .model = "?"}; }
#endif
#ifndef HAVE_CORE
int luaopen_gpipe_core(lua_State *L) {
  lua_newtable(L);
  return 1;
}
#endif
