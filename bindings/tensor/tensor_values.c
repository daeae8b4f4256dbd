/* bindings/tensor/tensor_values.c - methods that read or write elements: item, totable, copy_,
 * sizes.
 *
 * Reading is refused for values of a trace: a number that is not known yet cannot steer a
 * script. */
#include "tensor/tensor.h"

/* ---- sizes --------------------------------------------------------------------------------- */

/* t:dim() -> number of dimensions */
static int values_dim(lua_State *L) {
  lua_pushinteger(L, gp_lua_check_meta(L, 1, "dim").shape.rank);
  return 1;
}

/* t:numel() -> number of elements */
static int values_numel(lua_State *L) {
  int64_t numel = 0;
  gp_meta meta = gp_lua_check_meta(L, 1, "numel");
  gp_status status = gp_shape_numel(&meta.shape, &numel);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_pushinteger(L, numel);
  return 1;
}

/* t:size(d) -> size of one dimension */
static int values_size(lua_State *L) {
  gp_shape shape = gp_lua_check_meta(L, 1, "size").shape;
  lua_pushinteger(L, shape.dim[gp_lua_check_dim(L, 2, "size: dim", shape.rank)]);
  return 1;
}

/* t:is_contiguous() -> boolean */
static int values_is_contiguous(lua_State *L) {
  gp_meta meta = gp_lua_check_meta(L, 1, "is_contiguous");
  lua_pushboolean(L, gp_meta_is_dense(&meta));
  return 1;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* t:item() -> the one element */
static int values_item(lua_State *L) {
  gp_tensor *tensor = gp_lua_peek_tensor(L, 1, "item");
  int64_t numel = gp_tensor_numel(tensor);
  if (numel != 1)
    return gp_lua_error(L, "item: the tensor has %I elements, expected one", (LUAI_UACINT)numel);
  gp_lua_push_element(L, tensor, 0);
  return 1;
}

/* Push the elements from flat position *at on as a table of the dimensions from `dim` on. */
static void push_nested(lua_State *L, gp_tensor *tensor, int dim, int64_t *at) {
  const gp_shape *shape = &gp_tensor_meta(tensor)->shape;
  if (dim == shape->rank) {
    gp_lua_push_element(L, tensor, (*at)++);
    return;
  }
  int64_t size = shape->dim[dim];
  lua_createtable(L, size < INT32_MAX ? (int)size : INT32_MAX, 0);
  for (int64_t i = 1; i <= size; i++) {
    push_nested(L, tensor, dim + 1, at);
    lua_rawseti(L, -2, i);
  }
}

/* t:totable() -> nested tables, a number for a scalar */
static int values_totable(lua_State *L) {
  gp_tensor *tensor = gp_lua_check_host_tensor(L, 1, "totable");
  int64_t at = 0;
  luaL_checkstack(L, GP_MAX_RANK + 2, "totable");
  push_nested(L, tensor, 0, &at);
  return 1;
}

/* gp.equal(a, b) -> boolean: same shape, dtype and every bit */
static int values_equal(lua_State *L) {
  lua_settop(L, 2);
  gp_tensor *a = gp_lua_check_host_tensor(L, 1, "equal: a");
  gp_tensor *b = gp_lua_check_host_tensor(L, 2, "equal: b");
  lua_pushboolean(L, gp_tensor_equal(a, b));
  return 1;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Make the box at the top of the stack a view of `shape` by repetition. */
static void expand_top(lua_State *L, const gp_shape *shape) {
  gp_meta meta = gp_lua_check_meta(L, -1, "expand");
  if (gp_shape_equal(&meta.shape, shape)) return;
  gp_lua_call use = {.op = GP_OP_expand, .n_in = 1, .in = {lua_gettop(L)}};
  use.attrs.expand.to = *shape;
  gp_lua_apply(L, &use);
}

void gp_lua_copy_into(lua_State *L, gp_tensor *to, int from, const char *who) {
  const gp_meta *meta = gp_tensor_meta(to);
  if (gp_lua_to_box(L, from))
    gp_lua_check_tensor(L, from, who);
  else
    gp_lua_push_table(L, from, who, meta->dtype);
  expand_top(L, &meta->shape);
  gp_status status = gp_tensor_copy(to, gp_lua_to_box(L, -1)->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
}

/* Record `buffer = value`: the engine commits it when the step has succeeded. */
static int record_assign(lua_State *L, const gp_box *box) {
  if (!box->param || !gp_param_is_buffer(box->param))
    return gp_lua_error(L, "copy_: only an nn.Buffer can be written while a layer is being traced");
  gp_meta meta = *gp_param_meta(box->param);
  gp_lua_promote(L, 2, "copy_: value", meta.dtype);
  if (gp_lua_check_meta(L, 2, "copy_: value").dtype != meta.dtype) {
    gp_lua_call cast = {.op = GP_OP_cast, .n_in = 1, .in = {2}};
    cast.attrs.cast.dtype = meta.dtype;
    gp_lua_apply(L, &cast);
    lua_replace(L, 2);
  }
  lua_pushvalue(L, 2);
  expand_top(L, &meta.shape);
  gp_lua_apply2(L, GP_OP_assign, 1, -1);
  lua_settop(L, 1);
  return 1;
}

/* t:copy_(other) -> t: elements of a tensor, number or nested table, converted and broadcast */
static int values_copy(lua_State *L) {
  lua_settop(L, 2);
  gp_box *box = gp_lua_check_box(L, 1, "copy_");
  if (box->trace || gp_lua_trace(L)) {
    gp_box *from = gp_lua_to_box(L, 2);
    if (box->trace || box->param || (from && (from->trace || from->param)))
      return record_assign(L, box);
  }
  gp_lua_check_writable(L, box, "copy_");
  gp_tensor *to = gp_lua_check_tensor(L, 1, "copy_");
  gp_lua_copy_into(L, to, 2, "copy_");
  lua_settop(L, 1);
  return 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static const luaL_Reg methods[] = {{"dim", values_dim},
                                   {"numel", values_numel},
                                   {"size", values_size},
                                   {"is_contiguous", values_is_contiguous},
                                   {"item", values_item},
                                   {"totable", values_totable},
                                   {"equal", values_equal},
                                   {"copy_", values_copy},
                                   {NULL, NULL}};

void gp_methods_values(lua_State *L) { luaL_setfuncs(L, methods, 0); }
