/* bindings/trace/trace_binding.h - the Lua object of a trace. */
#ifndef GP_BINDINGS_TRACE_H
#define GP_BINDINGS_TRACE_H

#include "binding.h"

#define GP_LUA_TRACE "gpipe.Trace"

/* The trace at index, borrowed until the next object is made in Lua. */
const gp_trace *gp_lua_check_trace(lua_State *L, int index);
/* Get another reference to the trace at index. */
gp_trace *gp_lua_take_trace(lua_State *L, int index);

#endif
