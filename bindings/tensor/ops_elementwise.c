/* bindings/tensor/ops_elementwise.c - elementwise methods and operators: one C function per arity, one row
 * per op. */
#include <string.h>

#include "tensor/tensor.h"

/* t:exp() and its like; upvalue 1 is the op */
static int unary(lua_State *L) {
  gp_lua_apply1(L, (gp_op)lua_tointeger(L, lua_upvalueindex(1)), 1);
  return 1;
}

/* t:add(o) and its like, also as operators: either operand may be a number */
static int binary(lua_State *L) {
  gp_op op = (gp_op)lua_tointeger(L, lua_upvalueindex(1));
  lua_settop(L, 2);
  gp_lua_check_operands(L, 1, 2, gp_op_name(op));
  gp_lua_apply2(L, op, 1, 2);
  return 1;
}

/* t:gelu(mode): "erf" (default) or "tanh"; core.gelu(t, mode) */
static int gelu(lua_State *L) {
  const char *mode = lua_isnoneornil(L, 2) ? "erf" : gp_lua_check_string(L, 2, "gelu: mode");
  bool tanh_form = strcmp(mode, "tanh") == 0;
  if (!tanh_form && strcmp(mode, "erf") != 0)
    return gp_lua_bad_value(L, 2, "gelu: mode", "\"erf\" or \"tanh\"");
  gp_lua_apply(L, &(gp_lua_call){.op = GP_OP_gelu, .attrs.i[0] = tanh_form, .n_in = 1, .in = {1}});
  return 1;
}

/* core.where(c, a, b): c is a bool tensor; a and b are tensors or numbers */
static int where(lua_State *L) {
  lua_settop(L, 3);
  gp_lua_check_box(L, 1, "where: condition");
  if (lua_type(L, 2) == LUA_TNUMBER && lua_type(L, 3) == LUA_TNUMBER)
    gp_lua_promote(L, 2, "where: a", GP_F32);
  gp_lua_check_operands(L, 2, 3, "where");
  gp_lua_apply(L, &(gp_lua_call){.op = GP_OP_where, .n_in = 3, .in = {1, 2, 3}});
  return 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static const gp_op unary_ops[] = {GP_OP_neg,  GP_OP_exp,     GP_OP_log,  GP_OP_sqrt, GP_OP_rsqrt,
                                  GP_OP_tanh, GP_OP_sigmoid, GP_OP_relu, GP_OP_silu};
static const gp_op binary_ops[] = {GP_OP_add, GP_OP_sub, GP_OP_mul, GP_OP_div, GP_OP_pow, GP_OP_eq,
                                   GP_OP_ne,  GP_OP_lt,  GP_OP_le,  GP_OP_gt,  GP_OP_ge};

static void set_op(lua_State *L, gp_op op, lua_CFunction function) {
  lua_pushinteger(L, op);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, gp_op_name(op));
}

void gp_methods_elementwise(lua_State *L) {
  for (size_t i = 0; i < sizeof unary_ops / sizeof unary_ops[0]; i++)
    set_op(L, unary_ops[i], unary);
  for (size_t i = 0; i < sizeof binary_ops / sizeof binary_ops[0]; i++)
    set_op(L, binary_ops[i], binary);
  lua_pushcfunction(L, gelu);
  lua_setfield(L, -2, "gelu");
}

static const luaL_Reg functions[] = {{"gelu", gelu}, {"where", where}, {NULL, NULL}};

/* The functions of the core table that are ops of tensors. */
int gp_open_ops(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  lua_pushcfunction(L, gp_lua_concat);
  lua_setfield(L, -2, "concat");
  return 0;
}
