/* bindings/tensor/param.c - parameters and buffers as Lua tensors: declaration and their own
 * methods.
 *
 * A parameter is used like any tensor; besides, it has a value, a gradient and can be frozen. */
#include "field.h"
#include "tensor/tensor.h"

/* ---- declaration --------------------------------------------------------------------------- */

/* The initial values; the bits are drawn when they are first needed (runtime/graph/param.c). */
static gp_init init_fields(lua_State *L) {
  static const char *const kinds[] = {"constant", "uniform", "normal", NULL};
  lua_getfield(L, 1, "kind");
  int kind = luaL_checkoption(L, -1, "constant", kinds);
  lua_pop(L, 1);
  return (gp_init){(gp_init_kind)kind, gp_lua_number_field(L, 1, "a"),
                   gp_lua_number_field(L, 1, "b")};
}

/* core.parameter{shape, dtype, kind, a, b, seed, number, buffer, frozen} -> parameter; kind is
 * "constant" (a), "uniform" [a, b), "normal" (mean a, deviation b) */
static int make_parameter(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  gp_param_spec spec = {.dtype = GP_F32, .init = init_fields(L)};
  spec.seed = (uint64_t)gp_lua_int_field(L, 1, "seed", 0);
  spec.number = (uint64_t)gp_lua_int_field(L, 1, "number", 0);
  spec.buffer = gp_lua_flag_field(L, 1, "buffer");
  spec.frozen = gp_lua_flag_field(L, 1, "frozen");
  lua_getfield(L, 1, "shape");
  gp_lua_check_shape(L, lua_gettop(L), "parameter: shape", 0, &spec.shape);
  if (lua_getfield(L, 1, "dtype") != LUA_TNIL)
    spec.dtype = gp_lua_check_dtype(L, lua_gettop(L), "parameter: dtype");
  gp_status status = gp_param_new(&spec, &gp_lua_new_box(L)->param);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* ---- methods ------------------------------------------------------------------------------- */

static gp_param *check_param(lua_State *L, const char *who) {
  gp_box *box = gp_lua_check_box(L, 1, who);
  if (!box->param) gp_lua_error(L, "%s: this tensor is no parameter, expected one", who);
  return box->param;
}

/* t:is_parameter() -> boolean (true for buffers too) */
static int param_is_parameter(lua_State *L) {
  lua_pushboolean(L, gp_lua_check_box(L, 1, "is_parameter")->param != NULL);
  return 1;
}

/* p:is_buffer() -> boolean */
static int param_is_buffer(lua_State *L) {
  lua_pushboolean(L, gp_param_is_buffer(check_param(L, "is_buffer")));
  return 1;
}

/* p:is_frozen() -> boolean */
static int param_is_frozen(lua_State *L) {
  lua_pushboolean(L, gp_param_is_frozen(check_param(L, "is_frozen")));
  return 1;
}

/* p:set_frozen(b) -> p. Errors: a pipeline owns it */
static int param_set_frozen(lua_State *L) {
  gp_param *param = check_param(L, "set_frozen");
  luaL_checkany(L, 2);
  gp_status status = gp_param_set_frozen(param, lua_toboolean(L, 2));
  lua_settop(L, 1);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* p:value() -> the current values: a tensor with the same memory */
static int param_value(lua_State *L) {
  lua_settop(L, 1);
  gp_box *box = gp_lua_new_box(L);
  gp_status status = gp_param_value(check_param(L, "value"), &box->tensor);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.param_away(p) -> the rank that holds the value, nil if this process does */
static int param_away(lua_State *L) {
  const int32_t rank = gp_param_away(check_param(L, "param_away"));
  if (rank < 0) return 0;
  lua_pushinteger(L, rank);
  return 1;
}

/* core.param_holder(p) -> the same, also if this process does; nil if the parameter is in no
 * pipeline over ranks */
static int param_holder(lua_State *L) {
  const int32_t rank = gp_param_holder(check_param(L, "param_holder"));
  if (rank < 0) return 0;
  lua_pushinteger(L, rank);
  return 1;
}

/* core.param_bring(p, tensor): the value comes from the rank that holds it, and is here as well
 * until the next pipeline says who holds it */
static int param_bring(lua_State *L) {
  gp_param *param = check_param(L, "param_bring");
  gp_tensor *from = gp_lua_check_box(L, 2, "param_bring")->tensor;
  luaL_argcheck(L, from, 2, "expected a tensor with values");
  gp_status status = gp_param_bring(param, from);
  return status == GP_OK ? 0 : gp_lua_fail(L, status);
}

static const luaL_Reg methods[] = {{"is_parameter", param_is_parameter},
                                   {"is_buffer", param_is_buffer},
                                   {"is_frozen", param_is_frozen},
                                   {"set_frozen", param_set_frozen},
                                   {"value", param_value},
                                   {NULL, NULL}};

void gp_methods_param(lua_State *L) { luaL_setfuncs(L, methods, 0); }

int gp_open_param(lua_State *L) {
  lua_pushcfunction(L, make_parameter);
  lua_setfield(L, -2, "parameter");
  lua_pushcfunction(L, param_away);
  lua_setfield(L, -2, "param_away");
  lua_pushcfunction(L, param_holder);
  lua_setfield(L, -2, "param_holder");
  lua_pushcfunction(L, param_bring);
  lua_setfield(L, -2, "param_bring");
  return 0;
}
