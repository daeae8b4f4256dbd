/* bindings/machine.c - what the machine and the runtime have: cores, memory, libraries. */
#include "binding.h"

/* Set a field of the table at the top. */
static void set_integer(lua_State *L, const char *name, size_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, name);
}

/* core.memory() -> {live, peak, allocations, limit, collects}: bytes that the runtime holds */
static int memory(lua_State *L) {
  gp_memory_info info = gp_memory();
  gp_lua *state = gp_lua_state(L);
  lua_createtable(L, 0, 5);
  set_integer(L, "live", info.live);
  set_integer(L, "peak", info.peak);
  set_integer(L, "allocations", (size_t)info.allocations);
  set_integer(L, "limit", state->limit);
  set_integer(L, "collects", state->collects);
  return 1;
}

/* core.memory_fail_at(n): let the n-th allocation from now on fail; for tests */
static int memory_fail_at(lua_State *L) {
  gp_memory_fail_at((uint64_t)gp_lua_check_int(L, 1, "memory_fail_at", 0, INT64_MAX));
  return 0;
}

/* core.machine() -> {cores, memory, isa, model} */
static int machine(lua_State *L) {
  gp_machine info = gp_machine_info();
  lua_createtable(L, 0, 4);
  set_integer(L, "cores", (size_t)info.cores);
  set_integer(L, "memory", info.memory);
  lua_pushstring(L, info.isa);
  lua_setfield(L, -2, "isa");
  lua_pushstring(L, info.model);
  lua_setfield(L, -2, "model");
  return 1;
}

/* core.gemm_library() -> "oneDNN 2.6.3" | nil, why not; loads the library */
static int gemm_library(lua_State *L) {
  const char *why = NULL;
  const char *name = gp_gemm_library(&why);
  if (name && *name) return lua_pushstring(L, name), 1;
  lua_pushnil(L);
  lua_pushstring(L, why ? why : "not found");
  return 2;
}

static const luaL_Reg functions[] = {{"memory", memory},
                                     {"memory_fail_at", memory_fail_at},
                                     {"machine", machine},
                                     {"gemm_library", gemm_library},
                                     {NULL, NULL}};

int gp_open_machine(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
