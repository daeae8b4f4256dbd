/* bindings/machine.c - what the machine and the runtime have: cores, memory, libraries. */
#include "field.h"

/* core.memory() -> {live, peak, allocations, limit, collects}: bytes that the runtime holds */
static int memory(lua_State *L) {
  gp_memory_info info = gp_memory();
  gp_lua *state = gp_lua_state(L);
  lua_createtable(L, 0, 5);
  gp_lua_set_int(L, "live", (int64_t)info.live);
  gp_lua_set_int(L, "peak", (int64_t)info.peak);
  gp_lua_set_int(L, "allocations", (int64_t)info.allocations);
  gp_lua_set_int(L, "limit", (int64_t)state->limit);
  gp_lua_set_int(L, "collects", (int64_t)state->collects);
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
  gp_lua_set_int(L, "cores", (int64_t)info.cores);
  gp_lua_set_int(L, "memory", (int64_t)info.memory);
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
