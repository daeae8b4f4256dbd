/* bindings/tensor/tensor.c - the Lua type gpipe.Tensor: fields, indexing, metamethods.
 *
 * Facts are fields (t.shape), work is a method. One __index function serves both: integers select
 * along the first dimension, strings name a field, or a method in the table that is upvalue 1. */
#include <string.h>

#include "tensor/tensor.h"

/* ---- fields -------------------------------------------------------------------------------- */

static int push_shape(lua_State *L, const gp_shape *shape) {
  lua_createtable(L, shape->rank, 0);
  for (int d = 0; d < shape->rank; d++) {
    lua_pushinteger(L, shape->dim[d]);
    lua_rawseti(L, -2, d + 1);
  }
  luaL_setmetatable(L, GP_LUA_SHAPE);
  return 1;
}

/* tostring(t.shape) -> "{2, 3}" */
static int shape_tostring(lua_State *L) {
  luaL_Buffer text;
  luaL_checktype(L, 1, LUA_TTABLE);
  const lua_Integer rank = (lua_Integer)lua_rawlen(L, 1);
  luaL_buffinit(L, &text);
  luaL_addchar(&text, '{');
  for (lua_Integer d = 1; d <= rank; d++) {
    if (d > 1) luaL_addstring(&text, ", ");
    lua_rawgeti(L, 1, d);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&text);
  }
  luaL_addchar(&text, '}');
  luaL_pushresult(&text);
  return 1;
}

/* a.shape == b.shape -> are the sizes equal? (each access makes a new table) */
static int shape_eq(lua_State *L) {
  const lua_Integer rank = lua_istable(L, 1) ? (lua_Integer)lua_rawlen(L, 1) : -1;
  bool equal = lua_istable(L, 2) && rank == (lua_Integer)lua_rawlen(L, 2);
  for (lua_Integer d = 1; d <= rank && equal; d++) {
    lua_rawgeti(L, 1, d);
    lua_rawgeti(L, 2, d);
    equal = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  lua_pushboolean(L, equal);
  return 1;
}

/* Shapes are plain tables that print themselves and compare by their sizes. */
static void open_shapes(lua_State *L) {
  static const luaL_Reg meta[] = {{"__tostring", shape_tostring}, {"__eq", shape_eq}, {NULL, NULL}};
  luaL_newmetatable(L, GP_LUA_SHAPE);
  luaL_setfuncs(L, meta, 0);
  lua_pop(L, 1);
}

/* Push the field of that name, or return 0. */
static int push_field(lua_State *L, const gp_box *box, const char *key) {
  if (strcmp(key, "shape") == 0) {
    gp_shape shape = gp_box_meta(box)->shape;
    return push_shape(L, &shape);
  }
  if (strcmp(key, "dtype") == 0) {
    lua_pushstring(L, gp_dtype_name(gp_lua_dtype(L, box)));
    return 1;
  }
  if (strcmp(key, "device") == 0) {
    const bool known = !box->trace && !(box->param && gp_lua_trace(L));
    lua_pushstring(L, known ? gp_tensor_device(gp_lua_check_tensor(L, 1, "device")) : "traced");
    return 1;
  }
  return gp_lua_push_gradient_field(L, box, key);
}

/* Raise for an unknown name: the Lua side suggests one. */
static int missing(lua_State *L, const char *key) {
  if (strncmp(key, "__", 2) == 0) return lua_pushnil(L), 1; /* other libraries probe for these */
  if (gp_lua_push_hook(L, "missing") != LUA_TFUNCTION)
    return gp_lua_error(L, "Tensor: there is no field or method '%s'", key);
  lua_pushstring(L, key);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_call(L, 2, 1);
  return gp_lua_error(L, "Tensor: there is no field or method '%s'%s", key, lua_tostring(L, -1));
}

/* ---- indexing ------------------------------------------------------------------------------ */

/* The 0-based position of t[i]. */
static int64_t check_first(lua_State *L, const gp_box *box, const char *who) {
  const gp_shape *shape = &gp_box_meta(box)->shape;
  if (shape->rank == 0)
    gp_lua_error(L, "%s: the tensor is a scalar, it has no positions (use item())", who);
  return gp_lua_check_position(L, 2, who, shape->dim[0]);
}

/* Is this the end of ipairs, where t[i] must be nil? Anywhere else, a position after the last is an
 * error. */
static bool is_end_of_ipairs(lua_State *L, const gp_box *box) {
  const gp_shape *shape = &gp_box_meta(box)->shape;
  lua_Debug ar;
  if (shape->rank == 0 || !lua_isinteger(L, 2) || lua_tointeger(L, 2) != shape->dim[0] + 1)
    return false;
  if (!lua_getstack(L, 1, &ar)) return false;
  lua_getinfo(L, "f", &ar);
  bool same = lua_tocfunction(L, -1) == lua_tocfunction(L, lua_upvalueindex(2));
  lua_pop(L, 1);
  return same && lua_tocfunction(L, lua_upvalueindex(2));
}

/* t[i]: a number if t has one dimension, else a view */
static int index_position(lua_State *L, gp_box *box) {
  if (is_end_of_ipairs(L, box)) return lua_pushnil(L), 1;
  int64_t at = check_first(L, box, "t[i]: i");
  if (gp_box_meta(box)->shape.rank == 1) {
    gp_lua_push_element(L, gp_lua_peek_tensor(L, 1, "t[i]"), at);
    return 1;
  }
  gp_lua_select(L, 1, 0, at);
  return 1;
}

static bool is_compound(lua_State *L, int index) {
  return lua_istable(L, index) || gp_lua_to_box(L, index);
}

/* t[{..}], t[mask], t[positions]: the Lua side builds them. */
static int index_compound(lua_State *L) {
  gp_lua_check_box(L, 1, "t[i]: t");
  if (gp_lua_push_hook(L, "index") != LUA_TFUNCTION)
    return gp_lua_error(L, "t[i]: lists and masks need the module gpipe");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

static int newindex_compound(lua_State *L) {
  if (gp_lua_push_hook(L, "newindex") != LUA_TFUNCTION)
    return gp_lua_error(L, "t[i] = v: lists and masks need the module gpipe");
  lua_insert(L, 1);
  lua_call(L, 3, 0);
  return 0;
}

/* Look for methods first, because they are used most. */
static int tensor_index(lua_State *L) {
  gp_box *box = gp_lua_to_box(L, 1);
  if (!box) gp_lua_bad_value(L, 1, "t[i]: t", "a tensor");
  if (lua_type(L, 2) == LUA_TSTRING) {
    const char *key = lua_tostring(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
    gp_lua_check_box(L, 1, key);
    return push_field(L, box, key) ? 1 : missing(L, key);
  }
  if (is_compound(L, 2)) return index_compound(L);
  if (lua_type(L, 2) != LUA_TNUMBER)
    gp_lua_bad_value(L, 2, "t[i]: i",
                     "a position, a list of them and ranges, a mask or the name of a field");
  return index_position(L, gp_lua_check_box(L, 1, "t[i]: t"));
}

/* t[i] = v: a number, a tensor or a nested table; broadcast into the slice */
static int tensor_newindex(lua_State *L) {
  gp_box *box = gp_lua_check_box(L, 1, "t[i] = v: t");
  if (lua_type(L, 2) == LUA_TSTRING && gp_lua_set_gradient_field(L, lua_tostring(L, 2))) return 0;
  if (is_compound(L, 2)) return newindex_compound(L);
  if (lua_type(L, 2) != LUA_TNUMBER)
    gp_lua_bad_value(L, 2, "t[i] = v: i",
                     "a position (fields cannot be assigned, but for requires_grad and grad)");
  if (box->trace || (box->param && gp_lua_trace(L)))
    gp_lua_error(L, "t[i] = v: nothing is written while a layer is being traced, expected copy_ "
                    "on an nn.Buffer");
  gp_lua_check_writable(L, box, "t[i] = v");
  if (gp_lua_write_is_noted(L, box, gp_lua_to_box(L, 3))) return newindex_compound(L);
  int64_t at = check_first(L, box, "t[i] = v: i");
  if (gp_box_meta(box)->shape.rank == 1 && !gp_lua_to_box(L, 3)) {
    gp_lua_store(L, 3, "t[i] = v: v", gp_lua_peek_tensor(L, 1, "t[i] = v: t"), at);
    return 0;
  }
  gp_lua_select_view(L, 1, 0, at);
  gp_lua_copy_into(L, gp_lua_to_box(L, -1)->tensor, 3, "t[i] = v");
  return 0;
}

/* ---- metamethods --------------------------------------------------------------------------- */

/* #t: the size of the first dimension */
static int tensor_len(lua_State *L) {
  gp_shape shape = gp_lua_check_meta(L, 1, "#t").shape;
  if (shape.rank == 0) return gp_lua_error(L, "#t: the tensor is a scalar, it has no length");
  lua_pushinteger(L, shape.dim[0]);
  return 1;
}

/* a < b, a <= b: Lua would turn the result into true or false, but a tensor has many elements, or
 * unknown ones. */
static int tensor_order(lua_State *L) {
  return gp_lua_error(
      L,
      "a tensor is compared with < or >, expected t:lt(o), t:le(o), t:gt(o) or t:ge(o), which "
      "give a bool tensor%s",
      gp_lua_trace(L) ? ": while a layer is being traced no value is known, and data-dependent "
                        "control flow cannot be pipelined (gp.where chooses element by element)"
                      : "");
}

/* The Lua side prints values; a freed or unknown tensor shows its type only. */
static int tensor_tostring(lua_State *L) {
  gp_box *box = luaL_checkudata(L, 1, GP_LUA_TENSOR);
  char shape[128];
  if (!box->tensor && !box->param && !box->trace) return lua_pushliteral(L, "[freed tensor]"), 1;
  bool known = !box->trace && !(box->param && gp_lua_trace(L));
  if (known && gp_lua_push_hook(L, "tostring") == LUA_TFUNCTION) {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  const gp_meta *meta = gp_box_meta(box);
  lua_pushfstring(L, "[%s %s%s]", gp_dtype_name(meta->dtype),
                  gp_shape_print(&meta->shape, shape, sizeof shape),
                  known ? "" : ", traced: the values are not known yet");
  return 1;
}

/* t:free(), __gc, __close: free the memory now; harmless if already done */
static int tensor_free(lua_State *L) {
  gp_box *box = gp_lua_to_box(L, 1);
  if (!box) return luaL_typeerror(L, 1, GP_LUA_TENSOR);
  gp_box_clear(box);
  return 0;
}

/* a % b and a // b: Lua computes them with several ops. */
static int by_hook(lua_State *L, const char *name) {
  lua_settop(L, 2);
  gp_lua_push_hook(L, name);
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}
static int tensor_mod(lua_State *L) { return by_hook(L, "mod"); }
static int tensor_idiv(lua_State *L) { return by_hook(L, "idiv"); }

/* ---- opening ------------------------------------------------------------------------------- */

static const luaL_Reg metamethods[] = {
    {"__len", tensor_len},           {"__tostring", tensor_tostring},
    {"__gc", tensor_free},           {"__close", tensor_free},
    {"__newindex", tensor_newindex}, {"__lt", tensor_order},
    {"__le", tensor_order},          {"__mod", tensor_mod},
    {"__idiv", tensor_idiv},         {NULL, NULL}};

/* Operators call the methods of the same meaning. */
static const char *const operators[][2] = {{"__add", "add"}, {"__sub", "sub"}, {"__mul", "mul"},
                                           {"__div", "div"}, {"__pow", "pow"}, {"__unm", "neg"}};

static void add_methods(lua_State *L) {
  lua_pushcfunction(L, tensor_free);
  lua_setfield(L, -2, "free");
  gp_methods_values(L);
  gp_methods_ops(L);
  gp_methods_in_place(L);
  gp_methods_shape(L);
  gp_methods_reduce(L);
  gp_methods_param(L);
  gp_methods_gradient(L);
}

/* Push the step function of ipairs, which indexes t; nil if the host has no ipairs. */
static void push_ipairs_step(lua_State *L) {
  if (lua_getglobal(L, "ipairs") != LUA_TFUNCTION) return;
  lua_newtable(L);
  lua_call(L, 1, 1);
}

/* Complete the class before the first box exists: a __gc added later would be ignored. */
int gp_open_tensor(lua_State *L) {
  gp_lua_open_boxes(L);
  open_shapes(L);
  gp_lua_new_class(L);
  luaL_setfuncs(L, metamethods, 0);
  lua_pushliteral(L, GP_LUA_TENSOR);
  lua_setfield(L, -2, "__metatable");
  lua_newtable(L);
  add_methods(L);
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
    lua_getfield(L, -1, operators[i][1]);
    lua_setfield(L, -3, operators[i][0]);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "methods"); /* core.methods: for documentation and completion */
  push_ipairs_step(L);
  lua_pushcclosure(L, tensor_index, 2);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  return 0;
}
