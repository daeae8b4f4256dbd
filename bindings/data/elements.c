/* bindings/data/elements.c - the numbers of a foreign file as a tensor. */
#include "binding.h"

static gp_element check_element(lua_State *L, int index) {
  return (gp_element){.kind = *gp_lua_check_string(L, index, "elements: the kind"),
                      .bytes = (int)gp_lua_check_int(L, index + 1, "elements: bytes", 0, INT32_MAX),
                      .big = lua_toboolean(L, index + 2)};
}

/* core.element_dtype(kind, bytes) -> the dtype that holds such numbers, or nil */
static int element_dtype(lua_State *L) {
  gp_dtype dtype;
  lua_settop(L, 2);
  if (!gp_element_known(check_element(L, 1), &dtype)) return 0;
  lua_pushstring(L, gp_dtype_name(dtype));
  return 1;
}

/* core.elements_read(bytes, offset, shape, kind, bytes, big) -> tensor | nil, message, code */
static int elements_read(lua_State *L) {
  gp_shape shape;
  lua_settop(L, 6);
  gp_element form = check_element(L, 4);
  int64_t offset = gp_lua_check_int(L, 2, "elements: offset", 0, INT64_MAX);
  gp_lua_check_shape(L, 3, "elements: shape", 0, &shape);
  gp_box *made = gp_lua_new_box(L);
  gp_tensor *bytes = gp_lua_check_host_tensor(L, 1, "elements: the bytes");
  gp_status status = gp_elements_read(bytes, offset, form, &shape, &made->tensor);
  lua_pushvalue(L, 7);
  return status == GP_OK ? 1 : gp_lua_return_failure(L, status);
}

static const luaL_Reg functions[] = {
    {"element_dtype", element_dtype}, {"elements_read", elements_read}, {NULL, NULL}};

int gp_open_elements(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
