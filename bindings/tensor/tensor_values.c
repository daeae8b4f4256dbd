/* bindings/tensor/tensor_values.c - methods that read or write elements: item, totable, copy_,
 * sizes.
 *
 * Values of a trace cannot be read: a script cannot branch on a number that is not known yet. */
#include <string.h>

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

/* t:item() -> the only element */
static int values_item(lua_State *L) {
  gp_tensor *tensor = gp_lua_peek_tensor(L, 1, "item");
  int64_t numel = gp_tensor_numel(tensor);
  if (numel != 1)
    return gp_lua_error(L, "item: the tensor has %I elements, expected one", (LUAI_UACINT)numel);
  gp_lua_push_element(L, tensor, 0);
  return 1;
}

/* Push the elements from flat position *at on, nested by the dimensions from `dim` on. */
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

/* t:bytes() -> the elements in row-major order, as raw bytes */
static int values_bytes(lua_State *L) {
  lua_settop(L, 1);
  gp_lua_check_known(L, 1, "bytes");
  if (!gp_tensor_is_contiguous(gp_lua_check_host_tensor(L, 1, "bytes")))
    gp_lua_apply1(L, GP_OP_copy, 1);
  const gp_tensor *tensor = gp_lua_check_host_tensor(L, -1, "bytes");
  const size_t count = (size_t)gp_tensor_numel(tensor);
  const size_t bytes = count * gp_dtype_size(gp_tensor_meta(tensor)->dtype);
  lua_pushlstring(L, bytes ? gp_tensor_data(tensor) : "", bytes);
  return 1;
}

/* core.frombytes(text, shape, dtype) -> a tensor with the elements of t:bytes() */
static int from_bytes(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  gp_shape shape;
  gp_lua_check_shape(L, 2, "frombytes: shape", 0, &shape);
  const gp_dtype dtype = gp_lua_check_dtype(L, 3, "frombytes: dtype");
  int64_t numel = 0;
  gp_status status = gp_shape_numel(&shape, &numel);
  if (status != GP_OK) return gp_lua_fail(L, status);
  const size_t size = gp_dtype_size(dtype);
  if (length % size || (int64_t)(length / size) != numel)
    return gp_lua_error(L, "frombytes: there are %I bytes, expected %I elements of %I",
                        (LUAI_UACINT)length, (LUAI_UACINT)numel, (LUAI_UACINT)size);
  for (size_t i = 0; dtype == GP_BOOL && i < length; i++)
    if (text[i] & ~1)
      return gp_lua_error(L, "frombytes: byte %I is %d, which is no bool", (LUAI_UACINT)i + 1,
                          (unsigned char)text[i]);
  gp_box *box = gp_lua_new_box(L);
  status = gp_tensor_new(dtype, &shape, &box->tensor);
  if (status != GP_OK) return gp_lua_fail(L, status);
  if (length) memcpy(gp_tensor_data(box->tensor), text, length);
  return 1;
}

/* core.hash(t) -> a number that tells two tensors apart by the values at either end */
static int hash(lua_State *L) {
  const gp_tensor *tensor = gp_lua_check_tensor(L, 1, "hash");
  lua_pushinteger(L, (lua_Integer)gp_tensor_hash(tensor, 0));
  return 1;
}

/* core.dtype_size(name) -> bytes per element */
static int dtype_size(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)gp_dtype_size(gp_lua_check_dtype(L, 1, "dtype_size")));
  return 1;
}

/* gp.equal(a, b) -> boolean: are shape, dtype and every bit the same? */
static int values_equal(lua_State *L) {
  lua_settop(L, 2);
  gp_tensor *a = gp_lua_check_host_tensor(L, 1, "equal: a");
  gp_tensor *b = gp_lua_check_host_tensor(L, 2, "equal: b");
  lua_pushboolean(L, gp_tensor_equal(a, b));
  return 1;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Expand the box on top of the stack to `shape`, as a view that repeats elements. */
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

/* Is the value known now, and outside the trace that is being recorded? */
static bool is_apart(const gp_box *box) { return !box || (!box->trace && !box->param); }

static bool is_buffer(const gp_box *box) { return box->param && gp_param_is_buffer(box->param); }

void gp_lua_check_assignable(lua_State *L, const char *who) {
  const gp_box *box = gp_lua_check_box(L, 1, who);
  if (box->trace || (gp_lua_trace(L) && !is_apart(box) && !is_buffer(box)))
    gp_lua_error(L, "%s: only an nn.Buffer can be written while a layer is being traced", who);
}

/* Record `buffer = value`: the engine writes the buffer when the step has succeeded. */
static int record_assign(lua_State *L, const gp_box *box, const char *who) {
  if (!is_buffer(box))
    return gp_lua_error(L, "%s: only an nn.Buffer can be written while a layer is being traced",
                        who);
  gp_meta meta = *gp_param_meta(box->param);
  const char *value = lua_pushfstring(L, "%s: value", who);
  gp_lua_promote(L, 2, value, meta.dtype);
  if (gp_lua_check_meta(L, 2, value).dtype != meta.dtype) {
    gp_lua_call cast = {.op = GP_OP_cast, .n_in = 1, .in = {2}};
    cast.attrs.cast.dtype = meta.dtype;
    gp_lua_apply(L, &cast);
    lua_replace(L, 2);
  }
  lua_pushvalue(L, 2);
  expand_top(L, &meta.shape);
  gp_lua_apply2(L, GP_OP_assign, 1, -1);
  lua_pushvalue(L, 1);
  return 1;
}

/* With the stack t, value: t becomes the value, converted and broadcast, with its gradient. */
static int write_noted(lua_State *L, const char *who) {
  const gp_meta meta = *gp_box_meta(gp_lua_to_box(L, 1));
  if (!gp_lua_to_box(L, 2)) {
    gp_lua_push_table(L, 2, who, meta.dtype);
    lua_replace(L, 2);
  }
  gp_lua_check_tensor(L, 2, who);
  if (gp_lua_dtype(L, gp_lua_to_box(L, 2)) != meta.dtype) {
    gp_lua_call cast = {.op = GP_OP_cast, .n_in = 1, .in = {2}};
    cast.attrs.cast.dtype = meta.dtype;
    gp_lua_apply(L, &cast);
    lua_replace(L, 2);
  }
  lua_pushvalue(L, 2);
  expand_top(L, &meta.shape);
  gp_lua_apply1(L, GP_OP_copy, -1);
  gp_lua_take_value(L, 1, lua_gettop(L), who);
  lua_pushvalue(L, 1);
  return 1;
}

int gp_lua_write(lua_State *L, const char *who) {
  lua_settop(L, 2);
  const gp_box *box = gp_lua_check_box(L, 1, who);
  if (box->trace || gp_lua_trace(L))
    if (!is_apart(box) || !is_apart(gp_lua_to_box(L, 2))) return record_assign(L, box, who);
  gp_lua_check_writable(L, box, who);
  if (gp_lua_write_is_noted(L, box, gp_lua_to_box(L, 2))) return write_noted(L, who);
  gp_tensor *to = gp_lua_check_tensor(L, 1, who);
  gp_lua_copy_into(L, to, 2, who);
  lua_pushvalue(L, 1);
  return 1;
}

/* t:copy_(other) -> t: write the elements of a tensor, number or nested table, converted and
 * broadcast */
static int values_copy(lua_State *L) { return gp_lua_write(L, "copy_"); }

/* t:fill_(value) -> t: write a number or a scalar tensor to every element */
static int values_fill(lua_State *L) {
  lua_settop(L, 2);
  gp_box *box = gp_lua_to_box(L, 2);
  bool single = box ? gp_box_meta(box)->shape.rank == 0
                    : lua_type(L, 2) == LUA_TNUMBER || lua_type(L, 2) == LUA_TBOOLEAN;
  if (!single) gp_lua_bad_value(L, 2, "fill_: value", "a number or a scalar tensor");
  return gp_lua_write(L, "fill_");
}

/* t:zero_() -> t */
static int values_zero(lua_State *L) {
  lua_settop(L, 1);
  gp_dtype dtype = gp_lua_check_meta(L, 1, "zero_").dtype;
  if (dtype == GP_BOOL)
    lua_pushboolean(L, false);
  else
    lua_pushinteger(L, 0);
  return gp_lua_write(L, "zero_");
}

/* ---- opening ------------------------------------------------------------------------------- */

static const luaL_Reg methods[] = {{"dim", values_dim},     {"numel", values_numel},
                                   {"size", values_size},   {"is_contiguous", values_is_contiguous},
                                   {"item", values_item},   {"totable", values_totable},
                                   {"bytes", values_bytes}, {"equal", values_equal},
                                   {"copy_", values_copy},  {"fill_", values_fill},
                                   {"zero_", values_zero},  {NULL, NULL}};

static const luaL_Reg functions[] = {
    {"frombytes", from_bytes}, {"hash", hash}, {"dtype_size", dtype_size}, {NULL, NULL}};

void gp_methods_values(lua_State *L) { luaL_setfuncs(L, methods, 0); }

int gp_open_values(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
