/* bindings/tensor/ops_in_place.c - methods that write their result into the tensor: add_, clamp_,
 * masked_fill_.
 *
 * t:add_(o) is t:copy_(t:add(o)): it refuses what copy_ refuses (values of a trace that are no
 * nn.Buffer, values that a gradient needs) and what the op refuses, and then writes nothing. Every
 * elementwise op that keeps the dtype has such a form. */
#include <stdio.h>

#include "tensor/tensor.h"

/* ---- writing ------------------------------------------------------------------------------- */

/* Write the result on top of the stack into the tensor at index 1, which must have its shape. The
 * result's memory is freed at once, because the collector would be late. */
static int write_result(lua_State *L, const char *who) {
  char have[128], want[128];
  lua_insert(L, 2);
  lua_settop(L, 2);
  gp_shape to = gp_lua_check_meta(L, 1, who).shape, from = gp_lua_check_meta(L, 2, who).shape;
  if (!gp_shape_equal(&to, &from))
    return gp_lua_error(L, "%s: the result is %s, expected %s, the shape of the tensor", who,
                        gp_shape_print(&from, have, sizeof have),
                        gp_shape_print(&to, want, sizeof want));
  gp_lua_write(L, who);
  if (!gp_lua_to_box(L, 2)->trace) gp_box_clear(gp_lua_to_box(L, 2));
  return 1;
}

/* t:<op>_(operands.., attributes..) -> t; upvalue 1 is the op */
static int call_in_place(lua_State *L) {
  gp_op op = (gp_op)lua_tointeger(L, lua_upvalueindex(1));
  char who[64];
  snprintf(who, sizeof who, "%s_", gp_op_name(op));
  gp_lua_check_assignable(L, who);
  gp_lua_call_op(L, op);
  return write_result(L, who);
}

/* ---- masked_fill ---------------------------------------------------------------------------- */

static void bad_mask(lua_State *L, const char *who) {
  if (gp_lua_to_box(L, 2))
    gp_lua_error(L, "%s: the mask is %s, expected bool (mask:ne(0) makes one)", who,
                 gp_dtype_name(gp_lua_check_meta(L, 2, who).dtype));
  gp_lua_bad_value(L, 2, lua_pushfstring(L, "%s: mask", who), "a tensor of dtype bool");
}

/* The stack is t, mask, value: push a tensor with value where the mask is true, else t. */
static void apply_mask(lua_State *L, const char *who) {
  lua_settop(L, 3);
  gp_dtype dtype = gp_lua_dtype(L, gp_lua_check_box(L, 1, who));
  if (!gp_lua_to_box(L, 2) || gp_lua_check_meta(L, 2, who).dtype != GP_BOOL) bad_mask(L, who);
  if (!gp_lua_to_box(L, 3) && lua_type(L, 3) != LUA_TNUMBER && lua_type(L, 3) != LUA_TBOOLEAN)
    gp_lua_bad_value(L, 3, lua_pushfstring(L, "%s: value", who), "a number or a tensor");
  gp_lua_promote(L, 3, lua_pushfstring(L, "%s: value", who), dtype);
  gp_lua_apply(L, &(gp_lua_call){.op = GP_OP_where, .n_in = 3, .in = {2, 3, 1}});
}

/* t:masked_fill(mask, value) -> a copy of t with value where the mask is true */
static int masked_fill(lua_State *L) { return apply_mask(L, "masked_fill"), 1; }

/* t:masked_fill_(mask, value) -> t */
static int masked_fill_in_place(lua_State *L) {
  gp_lua_check_assignable(L, "masked_fill_");
  apply_mask(L, "masked_fill_");
  return write_result(L, "masked_fill_");
}

/* ---- opening ------------------------------------------------------------------------------- */

void gp_methods_in_place(lua_State *L) {
  for (int op = 0; op < GP_OP_COUNT; op++) {
    const gp_contract *row = gp_op_contract((gp_op)op);
    if ((row->flags & GP_OP_UNARY) != GP_OP_UNARY) continue;
    lua_pushfstring(L, "%s_", row->name);
    lua_pushinteger(L, op);
    lua_pushcclosure(L, call_in_place, 1);
    lua_rawset(L, -3);
  }
  lua_pushcfunction(L, masked_fill);
  lua_setfield(L, -2, "masked_fill");
  lua_pushcfunction(L, masked_fill_in_place);
  lua_setfield(L, -2, "masked_fill_");
}
