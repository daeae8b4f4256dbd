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

/* core.resident() -> {resident, files, stacks, code, heap, allocated, runtime} in bytes */
static int resident(lua_State *L) {
  gp_resident_info info = gp_resident();
  lua_createtable(L, 0, 7);
  gp_lua_set_int(L, "resident", (int64_t)info.resident);
  gp_lua_set_int(L, "files", (int64_t)info.files);
  gp_lua_set_int(L, "stacks", (int64_t)info.stacks);
  gp_lua_set_int(L, "code", (int64_t)info.code);
  gp_lua_set_int(L, "heap", (int64_t)info.heap);
  gp_lua_set_int(L, "allocated", (int64_t)info.allocated);
  gp_lua_set_int(L, "runtime", (int64_t)info.runtime);
  return 1;
}

/* core.memory_fail_at(n): make the n-th allocation from now on fail; for tests */
static int memory_fail_at(lua_State *L) {
  gp_memory_fail_at((uint64_t)gp_lua_check_int(L, 1, "memory_fail_at", 0, INT64_MAX));
  return 0;
}

/* core.machine() -> {cores, memory, available, isa, model} */
static int machine(lua_State *L) {
  gp_machine info = gp_machine_info();
  lua_createtable(L, 0, 5);
  gp_lua_set_int(L, "cores", (int64_t)info.cores);
  gp_lua_set_int(L, "memory", (int64_t)info.memory);
  gp_lua_set_int(L, "available", (int64_t)info.available);
  lua_pushstring(L, info.isa);
  lua_setfield(L, -2, "isa");
  lua_pushstring(L, info.model);
  lua_setfield(L, -2, "model");
  return 1;
}

static void push_gpu(lua_State *L, const gp_gpu_info *info, const gp_gpu_use *use) {
  lua_createtable(L, 0, 8);
  lua_pushstring(L, info->id);
  lua_setfield(L, -2, "id");
  lua_pushstring(L, info->name);
  lua_setfield(L, -2, "model");
  lua_pushfstring(L, "%d.%d", info->major, info->minor);
  lua_setfield(L, -2, "capability");
  gp_lua_set_int(L, "multiprocessors", info->sm_count);
  gp_lua_set_int(L, "memory", (int64_t)info->memory);
  gp_lua_set_int(L, "live", (int64_t)use->live);
  gp_lua_set_int(L, "peak", (int64_t)use->peak);
}

/* core.gpus(known) -> list of {id, model, capability, multiprocessors, memory, live, peak} | nil,
 * why not; id: the same in every process; known: nil too if no GPU has been used yet */
static int gpus(lua_State *L) {
  gp_gpu_info info = {.name = ""};
  gp_gpu_use use = {0};
  int count = 0;
  if (lua_toboolean(L, 1) && !gp_gpus_known()) return 0;
  gp_status status = gp_gpus_count(&count);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count && status == GP_OK; i++) {
    status = gp_gpu_describe(i, &info, &use);
    push_gpu(L, &info, &use);
    lua_rawseti(L, -2, i + 1);
  }
  if (status == GP_OK) return 1;
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  return 2;
}

/* core.gpu_libraries() -> list of {name, version, why}; empty without the plugin */
static int gpu_libraries(lua_State *L) {
  gp_gpu_library library;
  lua_newtable(L);
  for (int i = 0; gp_gpus_library(i, &library); i++) {
    lua_createtable(L, 0, 3);
    gp_lua_set_text(L, "name", library.name);
    gp_lua_set_text(L, "version", library.version);
    gp_lua_set_text(L, "why", library.why);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* core.device(name) -> {full name, kind = "cpu" or "cuda", memory = "cpu" or "cuda:0"} | nil, why
 * it is no device's name */
static int device(lua_State *L) {
  gp_device_facts facts;
  if (gp_device_describe(gp_lua_check_string(L, 1, "device"), &facts)) {
    lua_pushnil(L);
    lua_pushstring(L, gp_error_text());
    return 2;
  }
  lua_createtable(L, 0, 3);
  lua_pushstring(L, facts.name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, facts.gpu ? "cuda" : "cpu");
  lua_setfield(L, -2, "kind");
  lua_pushstring(L, facts.memory);
  lua_setfield(L, -2, "memory");
  return 1;
}

/* core.device_check(name) -> true | nil, why it cannot be used */
static int device_check(lua_State *L) {
  gp_status status = gp_device_check(gp_lua_check_string(L, 1, "device"));
  if (status == GP_OK) return lua_pushboolean(L, true), 1;
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  return 2;
}

/* core.bf16_path() -> how CPU devices multiply bf16, and why not a faster way, or nil. The first
 * call tries the ways. */
static int bf16_path(lua_State *L) {
  const char *why, *name = gp_bf16_path_name(&why);
  lua_pushstring(L, name);
  lua_pushstring(L, *why ? why : NULL);
  return 2;
}

static const luaL_Reg functions[] = {{"memory", memory},
                                     {"resident", resident},
                                     {"memory_fail_at", memory_fail_at},
                                     {"machine", machine},
                                     {"gpus", gpus},
                                     {"device_check", device_check},
                                     {"device", device},
                                     {"gpu_libraries", gpu_libraries},
                                     {"bf16_path", bf16_path},
                                     {NULL, NULL}};

int gp_open_machine(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
