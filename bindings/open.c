/* bindings/open.c - the entry point of gpipe.so: `require "gpipe"` in a stock lua5.4.
 *
 * The program does not use it: there `require "gpipe"` finds the embedded sources first. */
#include <lauxlib.h>

#include "embed.h"
#include "isa.h"

__attribute__((visibility("default"))) int luaopen_gpipe(lua_State *L);

int luaopen_gpipe(lua_State *L) {
  luaL_checkversion(L);
  const char *missing = gp_isa_missing();
  if (missing)
    return luaL_error(L,
                      "gpipe: this processor lacks %s, expected one like the machine that built "
                      "gpipe.so (-march=%s)",
                      missing, gp_isa_march());
  gp_lua_install(L);
  gp_lua_push_embedded(L, "gpipe");
  return 1;
}
