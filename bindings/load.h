/* bindings/load.h - Lua sources from files, never precompiled chunks. */
#ifndef GP_BINDINGS_LOAD_H
#define GP_BINDINGS_LOAD_H

#include <stdbool.h>

#include <lua.h>

/* Push the chunk of a file (NULL: standard input), or the text of the error; returns Lua's
 * status. */
int gp_load_file(lua_State *L, const char *name);
/* The same for a text that ends with a zero; `chunk` is its name, as for lua_load. */
int gp_load_text(lua_State *L, const char *text, const char *chunk);
/* Push the chunk of a module's file and the file's name; returns 2, as a searcher does. Errors:
 * raises. */
int gp_load_module(lua_State *L, const char *module, const char *file);

#endif
