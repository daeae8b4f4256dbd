/* bindings/tensor/op.c - calls an op from Lua, for every row of ops.def.
 *
 * core.<op>(operands.., attributes..): operands in the order of the row, nil for a missing one;
 * then attributes in the order of the row, or a table with their names (and optional operands by
 * role). Methods take the same arguments: t:gelu "tanh", t:gelu {mode = "tanh"}. ops_shape.c and
 * ops_reduce.c have friendlier forms (reductions, shapes). */
#include <stdlib.h>
#include <string.h>

#include "tensor/tensor.h"

/* One call: the request, and the stack position of the table with attributes' names; 0: none. */
typedef struct request {
  const gp_contract *row;
  gp_lua_call use;
  int options;
} request;

/* ---- operands ------------------------------------------------------------------------------ */

/* Has the operand the op's dtype? A number may take the place of one such operand. */
static bool is_alike(const gp_operand *operand) { return operand->kind <= GP_KIND_ALIKE; }

/* Turn the numbers among the op's operands into tensors; if both are numbers, the first becomes
 * f32. */
static void promote_numbers(lua_State *L, const gp_contract *row) {
  int at[2] = {0}, count = 0;
  for (int i = 0; row->operands[i].role; i++)
    if (is_alike(&row->operands[i]) && count < 2) at[count++] = i + 1;
  if (lua_type(L, at[0]) == LUA_TNUMBER && lua_type(L, at[1]) == LUA_TNUMBER)
    gp_lua_promote(L, at[0], row->name, GP_F32);
  gp_lua_check_operands(L, at[0], at[1], row->name);
}

/* Take the operands, up to a table of options. A missing operand is nil, or its place is absent. */
static int take_operands(lua_State *L, request *r) {
  int at = 1;
  for (const gp_operand *o = r->row->operands; o->role; o++, at++) {
    if (lua_istable(L, at)) return at;
    if (o->presence == GP_REQUIRED || !lua_isnoneornil(L, at)) r->use.in[r->use.n_in++] = at;
  }
  return at;
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* Push `"erf" or "tanh"` */
static const char *push_names(lua_State *L, const char *names) {
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  luaL_addchar(&text, '"');
  luaL_addgsub(&text, names, " ", "\" or \"");
  luaL_addchar(&text, '"');
  luaL_pushresult(&text);
  return lua_tostring(L, -1);
}

static int read_choice(lua_State *L, int index, const char *who, const gp_attr *attr) {
  int value = gp_attr_choice(attr, gp_lua_check_string(L, index, who));
  if (value < 0) return gp_lua_bad_value(L, index, who, push_names(L, attr->names));
  return value;
}

static gp_list read_list(lua_State *L, int index, const char *who) {
  gp_list list = {0};
  if (!lua_istable(L, index)) gp_lua_bad_value(L, index, who, "a list of integers");
  gp_lua_check_no_names(L, index, who, "integers alone");
  if (lua_rawlen(L, index) > GP_MAX_RANK)
    gp_lua_error(L, "%s has %I numbers, expected at most %d", who,
                 (LUAI_UACINT)lua_rawlen(L, index), GP_MAX_RANK);
  for (; list.count < (int)lua_rawlen(L, index); list.count++) {
    lua_rawgeti(L, index, list.count + 1);
    list.at[list.count] = gp_lua_check_int(L, lua_gettop(L), who, INT64_MIN, INT64_MAX);
    lua_pop(L, 1);
  }
  return list;
}

/* Dimensions count from 1 in Lua and refer to the first operand. */
static void read_dims(lua_State *L, int index, const char *who, const gp_attr *attr,
                      int64_t *field) {
  int rank = gp_lua_check_meta(L, 1, who).shape.rank;
  if (attr->kind == GP_ATTR_DIMS)
    gp_lua_check_dims(L, index, who, rank, field);
  else
    *field = gp_lua_check_dim(L, index, who, rank);
}

/* Read numbers and flags without making a string: every call of a layer does this. */
static bool read_plain(lua_State *L, int index, const gp_attr *attr, void *field) {
  if (attr->kind == GP_ATTR_FLAG) return *(bool *)field = lua_toboolean(L, index), true;
  if (lua_type(L, index) != LUA_TNUMBER) return false;
  if (attr->kind == GP_ATTR_REAL) return *(double *)field = lua_tonumber(L, index), true;
  if (attr->kind != GP_ATTR_INT || !lua_isinteger(L, index)) return false;
  return *(int64_t *)field = lua_tointeger(L, index), true;
}

/* Read the value at the absolute index into the attribute's field. */
static void read_attr(lua_State *L, int index, const request *r, const gp_attr *attr, void *field) {
  if (read_plain(L, index, attr, field)) return;
  const char *who = lua_pushfstring(L, "%s: %s", r->row->name, attr->name);
  switch (attr->kind) {
  case GP_ATTR_INT:
    *(int64_t *)field = gp_lua_check_int(L, index, who, INT64_MIN, INT64_MAX);
    break;
  case GP_ATTR_MAYBE:
    *(gp_maybe *)field = (gp_maybe){true, gp_lua_check_int(L, index, who, INT64_MIN, INT64_MAX)};
    break;
  case GP_ATTR_FLAG: break; /* every value is one */
  case GP_ATTR_REAL: *(double *)field = gp_lua_check_number(L, index, who); break;
  case GP_ATTR_DTYPE: *(gp_dtype *)field = gp_lua_check_dtype(L, index, who); break;
  case GP_ATTR_CHOICE: *(int *)field = read_choice(L, index, who, attr); break;
  case GP_ATTR_DIM:
  case GP_ATTR_DIMS: read_dims(L, index, who, attr, field); break;
  case GP_ATTR_SHAPE: gp_lua_check_shape(L, index, who, -1, field); break;
  case GP_ATTR_LIST: *(gp_list *)field = read_list(L, index, who); break;
  }
  lua_pop(L, 1);
}

/* Read attributes by position from `at` on; nil means "left out". */
static void read_positions(lua_State *L, request *r, int at) {
  for (const gp_attr *a = gp_op_attrs(r->use.op); a->name; a++, at++)
    if (!lua_isnoneornil(L, at)) read_attr(L, at, r, a, gp_attr_field(&r->use.attrs, a));
}

static bool is_option(const request *r, const char *name) {
  for (const gp_attr *a = gp_op_attrs(r->use.op); a->name; a++)
    if (strcmp(a->name, name) == 0) return true;
  for (const gp_operand *o = r->row->operands; o->role; o++)
    if (o->presence == GP_LEFT_OUT && strcmp(o->role, name) == 0) return true;
  return false;
}

/* Push the names of all options, "a, b", or "none". */
static const char *push_options(lua_State *L, const request *r) {
  const char *between = "";
  lua_pushliteral(L, "");
  for (const gp_operand *o = r->row->operands; o->role; o++) {
    if (o->presence != GP_LEFT_OUT) continue;
    lua_pushfstring(L, "%s%s", between, o->role);
    lua_concat(L, 2);
    between = ", ";
  }
  for (const gp_attr *a = gp_op_attrs(r->use.op); a->name; a++) {
    lua_pushfstring(L, "%s%s", between, a->name);
    lua_concat(L, 2);
    between = ", ";
  }
  return *between ? lua_tostring(L, -1) : "none";
}

/* Push a hint for the error about an unknown option: the name that was probably meant, or "". */
static const char *push_near(lua_State *L, const char *name, const char *options) {
  if (gp_lua_push_hook(L, "option") != LUA_TFUNCTION) return "";
  lua_pushstring(L, name);
  lua_pushstring(L, options);
  lua_call(L, 2, 1);
  return lua_isstring(L, -1) ? lua_pushfstring(L, " (did you mean '%s'?)", lua_tostring(L, -1))
                             : "";
}

static void check_names(lua_State *L, const request *r) {
  lua_pushnil(L);
  while (lua_next(L, r->options)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING && is_option(r, lua_tostring(L, -1))) continue;
    const char *name = luaL_tolstring(L, -1, NULL), *options = push_options(L, r);
    gp_lua_error(L, "%s: there is no option %s, expected one of: %s%s", r->row->name, name, options,
                 push_near(L, name, options));
  }
}

/* Read the options. Optional operands stay on the stack, where the op reads them. */
static void read_options(lua_State *L, request *r) {
  check_names(L, r);
  for (const gp_operand *o = r->row->operands; o->role; o++) {
    if (o->presence != GP_LEFT_OUT) continue;
    if (lua_getfield(L, r->options, o->role) != LUA_TNIL) r->use.in[r->use.n_in++] = lua_gettop(L);
  }
  for (const gp_attr *a = gp_op_attrs(r->use.op); a->name; a++) {
    if (lua_getfield(L, r->options, a->name) != LUA_TNIL)
      read_attr(L, lua_gettop(L), r, a, gp_attr_field(&r->use.attrs, a));
    lua_pop(L, 1);
  }
}

/* ---- the call ------------------------------------------------------------------------------ */

static int count_seen(const gp_contract *row) {
  int count = 0;
  for (const gp_output *o = row->outputs; o->role; o++) count += !o->kept;
  return count;
}

/* clamp without a bound does nothing, so it is an error: the script misspelt one, or passed nil. */
static void check_bounds(lua_State *L, int at) {
  bool given = !lua_isnoneornil(L, at) && !lua_istable(L, at);
  given |= !lua_isnoneornil(L, at + 1);
  if (lua_istable(L, at)) {
    given |= lua_getfield(L, at, "min") != LUA_TNIL;
    given |= lua_getfield(L, at, "max") != LUA_TNIL;
    lua_pop(L, 2);
  }
  if (!given) gp_lua_error(L, "clamp: neither min nor max is given, expected one of them or both");
}

int gp_lua_call_op(lua_State *L, gp_op op) {
  request r = {.row = gp_op_contract(op), .use = {.op = op}};
  gp_attrs_default(op, &r.use.attrs);
  luaL_checkstack(L, 2 * GP_MAX_INPUTS + GP_MAX_OUTPUTS, r.row->name);
  if (r.row->flags & GP_OP_NUMBERS) {
    if (lua_gettop(L) < 2) lua_settop(L, 2);
    promote_numbers(L, r.row);
  }
  int at = take_operands(L, &r);
  if (lua_istable(L, at)) {
    r.options = at;
    lua_settop(L, at);
    read_options(L, &r);
  } else {
    read_positions(L, &r, at);
  }
  if (op == GP_OP_clamp) check_bounds(L, at);
  r.use.n_out = count_seen(r.row);
  gp_lua_apply(L, &r.use);
  return r.use.n_out;
}

/* core.<op>(..) -> the op's outputs, except those kept for the gradient; upvalue 1 is the op */
static int call_op(lua_State *L) {
  return gp_lua_call_op(L, (gp_op)lua_tointeger(L, lua_upvalueindex(1)));
}

/* ---- contracts, for scripts ------------------------------------------------------------------ */

static const char *const kinds[] = {
    [GP_KIND_FLOAT] = "float",       [GP_KIND_NUMBER] = "number", [GP_KIND_ALIKE] = "alike",
    [GP_KIND_ANY] = "any",           [GP_KIND_WIDE] = "wide",     [GP_KIND_MASK] = "mask",
    [GP_KIND_IDS] = "ids",           [GP_KIND_BOOL] = "bool",     [GP_KIND_COUNT] = "count",
    [GP_KIND_SAME] = "same",         [GP_KIND_ASKED] = "asked",   [GP_KIND_SUM] = "sum",
    [GP_KIND_PACKABLE] = "packable", [GP_KIND_PACKED] = "packed"};

static const char *const presences[] = {
    [GP_REQUIRED] = "required", [GP_LEFT_OUT] = "optional", [GP_REPEATED] = "repeated"};

static const char *const attr_kinds[] = {
    [GP_ATTR_INT] = "int",   [GP_ATTR_MAYBE] = "maybe", [GP_ATTR_FLAG] = "flag",
    [GP_ATTR_REAL] = "real", [GP_ATTR_DTYPE] = "dtype", [GP_ATTR_CHOICE] = "choice",
    [GP_ATTR_DIM] = "dim",   [GP_ATTR_DIMS] = "dims",   [GP_ATTR_SHAPE] = "shape",
    [GP_ATTR_LIST] = "list"};

static void set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static void set_flag(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

static void push_operands(lua_State *L, const gp_contract *row) {
  lua_newtable(L);
  for (int i = 0; row->operands[i].role; i++) {
    lua_createtable(L, 0, 3);
    set_text(L, "role", row->operands[i].role);
    set_text(L, "kind", kinds[row->operands[i].kind]);
    set_text(L, "presence", presences[row->operands[i].presence]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_outputs(lua_State *L, const gp_contract *row) {
  lua_newtable(L);
  for (int i = 0; row->outputs[i].role; i++) {
    lua_createtable(L, 0, 3);
    set_text(L, "role", row->outputs[i].role);
    set_text(L, "kind", kinds[row->outputs[i].kind]);
    set_flag(L, "kept", row->outputs[i].kept);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_attrs(lua_State *L, gp_op op) {
  lua_newtable(L);
  int i = 0;
  for (const gp_attr *a = gp_op_attrs(op); a->name; a++) {
    lua_createtable(L, 0, 4);
    set_text(L, "name", a->name);
    set_text(L, "kind", attr_kinds[a->kind]);
    set_text(L, "names", a->names);
    lua_pushnumber(L, a->otherwise);
    lua_setfield(L, -2, "default");
    lua_rawseti(L, -2, ++i);
  }
}

/* core.contracts() -> the rows of ops.def, in order: {name, text, method, in_place, numbers,
 * operands, outputs, attributes} each */
static int contracts(lua_State *L) {
  lua_createtable(L, GP_OP_COUNT, 0);
  for (int op = 0; op < GP_OP_COUNT; op++) {
    const gp_contract *row = gp_op_contract((gp_op)op);
    lua_createtable(L, 0, 8);
    set_text(L, "name", row->name);
    set_text(L, "text", row->text);
    set_flag(L, "method", row->flags & GP_OP_METHOD);
    set_flag(L, "in_place", (row->flags & GP_OP_UNARY) == GP_OP_UNARY);
    set_flag(L, "numbers", row->flags & GP_OP_NUMBERS);
    push_operands(L, row), lua_setfield(L, -2, "operands");
    push_outputs(L, row), lua_setfield(L, -2, "outputs");
    push_attrs(L, (gp_op)op), lua_setfield(L, -2, "attributes");
    lua_rawseti(L, -2, op + 1);
  }
  return 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void set_ops(lua_State *L, unsigned flags) {
  for (int op = 0; op < GP_OP_COUNT; op++) {
    const gp_contract *row = gp_op_contract((gp_op)op);
    if ((row->flags & flags) != flags) continue;
    lua_pushinteger(L, op);
    lua_pushcclosure(L, call_op, 1);
    lua_setfield(L, -2, row->name);
  }
}

void gp_methods_ops(lua_State *L) { set_ops(L, GP_OP_METHOD); }

/* Add the ops to the core table. concat takes a list, which is friendlier than many arguments. */
int gp_open_ops(lua_State *L) {
  set_ops(L, 0);
  lua_pushcfunction(L, gp_lua_concat);
  lua_setfield(L, -2, "concat");
  lua_pushcfunction(L, gp_lua_every);
  lua_setfield(L, -2, "every");
  lua_pushcfunction(L, contracts);
  lua_setfield(L, -2, "contracts");
  return 0;
}
