/* bindings/pipeline/devices.c - the devices of pipelines, and of plans without one, from lists of
 * tables. */
#include "pipeline/pipeline.h"

#include "field.h"

enum { MOST_THREADS = 4096 };

/* What callers push behind the names of devices: the other fields of a pipeline and of a plan. */
enum { FIELDS_BEHIND = 2 * LUA_MINSTACK };

/* Fields host_bandwidth (bytes per second), host_latency (seconds) and host_memory (bytes) of a
 * device; 0 where they are missing. */
static gp_host_link read_link(lua_State *L, int device) {
  const int64_t bytes = gp_lua_int_field(L, device, "host_memory", 0);
  lua_getfield(L, device, "host_bandwidth");
  lua_getfield(L, device, "host_latency");
  const gp_host_link link = {lua_tonumber(L, -2), lua_tonumber(L, -1),
                             bytes > 0 ? (size_t)bytes : 0};
  lua_pop(L, 2);
  return link;
}

/* devices = {{name, threads, rank, host_bandwidth, host_latency, host_memory}, ...} */
const gp_device_spec *gp_lua_devices_field(lua_State *L, int *count, const gp_host_link **hosts) {
  lua_getfield(L, 1, "devices");
  luaL_checktype(L, -1, LUA_TTABLE);
  int n = (int)lua_rawlen(L, -1), list = lua_gettop(L);
  luaL_checkstack(L, n + FIELDS_BEHIND, "too many devices");
  gp_device_spec *devices = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *devices, 0);
  gp_host_link *links = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *links, 0);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    int device = lua_gettop(L);
    devices[i].threads = gp_lua_range_field(L, device, "threads", 1, 1, MOST_THREADS);
    devices[i].rank = gp_lua_range_field(L, device, "rank", 0, 0, MOST_THREADS);
    links[i] = read_link(L, device);
    lua_getfield(L, device, "name");
    devices[i].name = gp_lua_check_string(L, -1, "devices: a name"); /* the stack keeps it */
    lua_remove(L, device);
  }
  *count = n;
  *hosts = links;
  return devices;
}

/* The list {{own = it has a memory space of its own, halves = its updates write the weights' halves
 * too, scratch = further bytes that its libraries need, rank = of its process, and what read_link
 * reads}, ...}, one table per device. */
const gp_plan_device_spec *gp_lua_push_plan_devices(lua_State *L, int list, int count) {
  luaL_checktype(L, list, LUA_TTABLE);
  gp_plan_device_spec *devices = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *devices, 0);
  for (int d = 0; d < count; d++) {
    lua_rawgeti(L, list, d + 1);
    int device = lua_gettop(L);
    luaL_checktype(L, device, LUA_TTABLE);
    bool own = gp_lua_flag_field(L, device, "own");
    int64_t scratch = gp_lua_int_field(L, device, "scratch", 0);
    int64_t rank = gp_lua_int_field(L, device, "rank", 0);
    luaL_argcheck(L, scratch >= 0, list, "expected scratch of 0 bytes or more");
    luaL_argcheck(L, rank >= 0 && rank <= INT32_MAX, list, "expected a rank of 0 or more");
    devices[d] = (gp_plan_device_spec){.space = own ? d + 1 : 0,
                                       .rank = (int32_t)rank,
                                       .packs = !own,
                                       .parts = own,
                                       .halves = gp_lua_flag_field(L, device, "halves"),
                                       .shown = gp_lua_flag_field(L, device, "shown"),
                                       .scratch = own ? (size_t)scratch : 0,
                                       .host = read_link(L, device)};
    lua_settop(L, device - 1);
  }
  return devices;
}
