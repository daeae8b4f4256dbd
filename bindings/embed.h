/* bindings/embed.h - the Lua sources inside the program, and how `require` finds them. */
#ifndef GP_BINDINGS_EMBED_H
#define GP_BINDINGS_EMBED_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

typedef struct gp_lua_source {
  const char *module; /* "gpipe.nn.layer.linear" */
  const char *chunk;  /* "@gpipe/nn/layer/linear.lua": shown in messages and tracebacks */
  const unsigned char *text;
  const size_t *size; /* bytes of text */
} gp_lua_source;

/* Made by scripts/cmake/embed.cmake; ends with a row whose module is NULL. */
extern const gp_lua_source gp_lua_sources[];

/* Is a chunk name ("@gpipe/init.lua") one of ours? Users do not see such frames. */
bool gp_lua_is_embedded(const char *chunk);
/* Make `require` find the embedded modules, gpipe.core and gpipe.config. A second call does
 * nothing. */
void gp_lua_install(lua_State *L);
/* Push what `require(module)` returns, from the embedded sources whatever package.path says.
 * Errors: raises. */
void gp_lua_push_embedded(lua_State *L, const char *module);

int luaopen_gpipe_core(lua_State *L);

#endif
