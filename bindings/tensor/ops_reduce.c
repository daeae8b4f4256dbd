/* bindings/tensor/ops_reduce.c - methods along dimensions: sum, mean, max, argmax, softmax; and
 * matmul.
 *
 * Each op has one form (softmax: the last dimension; matmul: matrices); the other forms are built
 * here from permute and reshape, for real and symbolic values alike. */
#include <string.h>

#include "tensor/tensor.h"

/* ---- dims ---------------------------------------------------------------------------------- */

int gp_lua_check_dims(lua_State *L, int index, const char *who, int rank, int64_t *mask) {
  *mask = 0;
  if (lua_isnoneornil(L, index)) return 0;
  if (lua_type(L, index) != LUA_TTABLE) {
    *mask = (int64_t)1 << gp_lua_check_dim(L, index, who, rank);
    return 1;
  }
  int count = (int)lua_rawlen(L, index);
  gp_lua_check_no_names(L, index, who, "dimensions alone");
  if (count == 0) gp_lua_error(L, "%s is an empty list, expected dimensions", who);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, index, i);
    int64_t bit = (int64_t)1 << gp_lua_check_dim(L, lua_gettop(L), who, rank);
    if (*mask & bit) gp_lua_error(L, "%s: a dimension is given twice", who);
    *mask |= bit;
    lua_pop(L, 1);
  }
  return count;
}

/* The number of elements that are folded into one. */
static int64_t count_folded(const gp_shape *shape, int64_t mask) {
  int64_t count = 1;
  for (int d = 0; d < shape->rank; d++)
    if (mask == 0 || (mask >> d & 1)) count *= shape->dim[d];
  return count;
}

/* ---- sum, mean ----------------------------------------------------------------------------- */

static void push_cast(lua_State *L, int index, gp_dtype dtype) {
  gp_lua_call use = {
      .op = GP_OP_cast, .attrs.cast.dtype = dtype, .n_in = 1, .in = {lua_absindex(L, index)}};
  gp_lua_apply(L, &use);
}

/* Cast integers to i64 before they are added, and booleans before they are counted: no sum wraps in
 * 8 bits. */
static void widen(lua_State *L) {
  gp_dtype dtype = gp_lua_check_meta(L, 1, "sum").dtype;
  if (gp_dtype_is_float(dtype) || dtype == GP_I64) return;
  push_cast(L, 1, GP_I64);
  lua_replace(L, 1);
}

/* Push the sum of argument 1 over the dims of argument 2, which are kept if argument 3 says so;
 * returns the mask of dims. */
static int64_t push_sum(lua_State *L, const char *who) {
  gp_lua_call use = {.op = GP_OP_sum, .n_in = 1, .in = {1}};
  int rank = gp_lua_check_meta(L, 1, who).shape.rank;
  gp_lua_check_dims(L, 2, lua_pushfstring(L, "%s: dim", who), rank, &use.attrs.sum.dims);
  use.attrs.sum.keep = lua_toboolean(L, 3);
  gp_lua_apply(L, &use);
  return use.attrs.sum.dims;
}

/* t:sum(dim, keep) */
static int reduce_sum(lua_State *L) {
  lua_settop(L, 3);
  widen(L);
  push_sum(L, "sum");
  return 1;
}

/* t:mean(dim, keep). Halves are added and divided in f32, because their sum may exceed their
 * range. */
static int reduce_mean(lua_State *L) {
  lua_settop(L, 3);
  gp_meta meta = gp_lua_check_meta(L, 1, "mean");
  gp_dtype dtype = gp_lua_dtype(L, gp_lua_to_box(L, 1));
  bool half = dtype == GP_BF16 || dtype == GP_F16;
  if (!gp_dtype_is_float(dtype))
    return gp_lua_error(L,
                        "mean: the tensor is %s, expected a float one (convert with to(\"f32\"))",
                        gp_dtype_name(dtype));
  if (half) {
    push_cast(L, 1, GP_F32);
    lua_replace(L, 1);
  }
  int64_t mask = push_sum(L, "mean");
  lua_pushnumber(L, (double)count_folded(&meta.shape, mask));
  gp_lua_promote(L, -1, "mean", half ? GP_F32 : dtype);
  gp_lua_apply2(L, GP_OP_div, -2, -1);
  if (half) push_cast(L, -1, dtype);
  return 1;
}

/* ---- max, argmax --------------------------------------------------------------------------- */

/* Replace argument 1 by its elements in one dimension. */
static void flatten(lua_State *L, const char *who) {
  int64_t numel = 0;
  gp_meta meta = gp_lua_check_meta(L, 1, who);
  gp_status status = gp_shape_numel(&meta.shape, &numel);
  if (status != GP_OK) gp_lua_fail(L, status);
  gp_lua_reshape(L, 1, &(gp_shape){.rank = 1, .dim = {numel}});
  lua_replace(L, 1);
}

/* Take the maximum along every dimension of the list at 2, from the last to the first, so that
 * earlier dimensions keep their numbers. */
static int max_over_dims(lua_State *L) {
  int64_t mask = 0;
  int rank = gp_lua_check_meta(L, 1, "max").shape.rank;
  gp_lua_check_dims(L, 2, "max: dim", rank, &mask);
  lua_pushvalue(L, 1);
  for (int d = rank - 1; d >= 0; d--) {
    if (!(mask >> d & 1)) continue;
    gp_lua_call use = {.op = GP_OP_max, .n_in = 1, .in = {lua_gettop(L)}};
    use.attrs.max.dim = d;
    use.attrs.max.keep = lua_toboolean(L, 3);
    gp_lua_apply(L, &use);
    lua_remove(L, -2);
  }
  return 1;
}

/* t:max(dim, keep) -> values, positions; t:max() -> the greatest of all elements; t:max({d, e},
 * keep) -> values */
static int reduce_max(lua_State *L) {
  lua_settop(L, 3);
  if (lua_type(L, 2) == LUA_TTABLE) return max_over_dims(L);
  bool all = lua_isnil(L, 2);
  if (all) flatten(L, "max");
  gp_lua_call use = {.op = GP_OP_max, .n_in = 1, .in = {1}, .n_out = all ? 1 : 2};
  int rank = gp_lua_check_meta(L, 1, "max").shape.rank;
  use.attrs.max.dim = all ? 0 : gp_lua_check_dim(L, 2, "max: dim", rank);
  use.attrs.max.keep = !all && lua_toboolean(L, 3);
  gp_lua_apply(L, &use);
  return use.n_out;
}

/* t:argmax(dim, keep) -> positions, from 1; without dim, the position among all elements */
static int reduce_argmax(lua_State *L) {
  lua_settop(L, 3);
  bool all = lua_isnil(L, 2);
  if (all) flatten(L, "argmax");
  gp_lua_call use = {.op = GP_OP_argmax, .n_in = 1, .in = {1}};
  int rank = gp_lua_check_meta(L, 1, "argmax").shape.rank;
  use.attrs.argmax.dim = all ? 0 : gp_lua_check_dim(L, 2, "argmax: dim", rank);
  use.attrs.argmax.keep = !all && lua_toboolean(L, 3);
  gp_lua_apply(L, &use);
  return 1;
}

/* ---- softmax ------------------------------------------------------------------------------- */

/* Replace the value at the top by one with two dimensions exchanged. */
static void swap_top(lua_State *L, int a, int b) {
  gp_lua_call use = {.op = GP_OP_permute, .n_in = 1, .in = {lua_gettop(L)}};
  int rank = gp_lua_check_meta(L, -1, "permute").shape.rank;
  gp_list *order = &use.attrs.permute.order;
  order->count = rank;
  for (int d = 0; d < rank; d++) order->at[d] = d == a ? b : d == b ? a : d;
  gp_lua_apply(L, &use);
  lua_remove(L, -2);
}

/* t:softmax(dim), t:log_softmax(dim): the last dimension by default; upvalue 1 is the op */
static int softmax(lua_State *L) {
  gp_op op = (gp_op)lua_tointeger(L, lua_upvalueindex(1));
  lua_settop(L, 2);
  int rank = gp_lua_check_meta(L, 1, gp_op_name(op)).shape.rank;
  int last = rank - 1, dim = last;
  if (!lua_isnil(L, 2) || rank == 0)
    dim = gp_lua_check_dim(L, 2, lua_pushfstring(L, "%s: dim", gp_op_name(op)), rank);
  lua_pushvalue(L, 1);
  if (dim != last) swap_top(L, dim, last);
  gp_lua_apply1(L, op, -1);
  if (dim != last) swap_top(L, dim, last);
  return 1;
}

/* ---- matmul -------------------------------------------------------------------------------- */

/* Turn the vector at argument `index` into a matrix of one row or one column. */
static void vector_to_matrix(lua_State *L, int index, bool row) {
  int64_t size = gp_lua_check_meta(L, index, "matmul").shape.dim[0];
  gp_lua_reshape(L, index, &(gp_shape){.rank = 2, .dim = {row ? 1 : size, row ? size : 1}});
  lua_replace(L, index);
}

/* If the operand is a transposed view, undo that and tell the kernel instead: no copy is made. */
static bool take_transposed(lua_State *L, int index) {
  gp_meta meta = gp_lua_check_meta(L, index, "matmul"), swapped = meta;
  int rank = meta.shape.rank;
  swapped.shape.dim[rank - 1] = meta.shape.dim[rank - 2];
  swapped.shape.dim[rank - 2] = meta.shape.dim[rank - 1];
  swapped.stride[rank - 1] = meta.stride[rank - 2];
  swapped.stride[rank - 2] = meta.stride[rank - 1];
  if (gp_meta_is_dense(&meta) || !gp_meta_is_dense(&swapped)) return false;
  lua_pushvalue(L, index);
  swap_top(L, rank - 2, rank - 1);
  lua_replace(L, index);
  return true;
}

/* Drop the dimensions of size 1 that were added to vectors. */
static void drop_vectors(lua_State *L, bool a_vector, bool b_vector) {
  gp_shape shape = gp_lua_check_meta(L, -1, "matmul").shape;
  if (b_vector) shape.rank--;
  if (a_vector) {
    shape.rank--;
    if (!b_vector) shape.dim[shape.rank - 1] = shape.dim[shape.rank];
  }
  gp_lua_reshape(L, -1, &shape);
}

/* t:matmul(o): [.., M, K] x [.., K, N] -> [.., M, N]; a vector is a row on the left, a column on
 * the right, and the added dimension is dropped again */
static int matmul(lua_State *L) {
  lua_settop(L, 2);
  int a_rank = gp_lua_check_meta(L, 1, "matmul: left").shape.rank;
  int b_rank = gp_lua_check_meta(L, 2, "matmul: right").shape.rank;
  if (a_rank == 0 || b_rank == 0)
    return gp_lua_error(L, "matmul: the %s operand is a scalar, expected a vector or matrices",
                        a_rank == 0 ? "left" : "right");
  if (a_rank == 1) vector_to_matrix(L, 1, true);
  if (b_rank == 1) vector_to_matrix(L, 2, false);
  gp_lua_call use = {.op = GP_OP_matmul, .n_in = 2, .in = {1, 2}};
  use.attrs.matmul.transpose_a = take_transposed(L, 1);
  use.attrs.matmul.transpose_b = take_transposed(L, 2);
  gp_lua_apply(L, &use);
  if (a_rank == 1 || b_rank == 1) drop_vectors(L, a_rank == 1, b_rank == 1);
  return 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static const luaL_Reg methods[] = {{"sum", reduce_sum}, {"mean", reduce_mean},
                                   {"max", reduce_max}, {"argmax", reduce_argmax},
                                   {"matmul", matmul},  {NULL, NULL}};

void gp_methods_reduce(lua_State *L) {
  luaL_setfuncs(L, methods, 0);
  lua_pushinteger(L, GP_OP_softmax);
  lua_pushcclosure(L, softmax, 1);
  lua_setfield(L, -2, "softmax");
  lua_pushinteger(L, GP_OP_log_softmax);
  lua_pushcclosure(L, softmax, 1);
  lua_setfield(L, -2, "log_softmax");
}
