/* bindings/tensor/ops_shape.c - methods that change shape, dtype or layout.
 *
 * For a real tensor, the result is a view where possible: t:select(1, 2):copy_(x) writes into t. */
#include <string.h>

#include "tensor/tensor.h"

/* ---- reshape ------------------------------------------------------------------------------- */

/* Replace the one -1 of a shape by the size that makes the number of elements right. */
static void infer_size(lua_State *L, const gp_meta *meta, const char *who, gp_shape *shape) {
  int64_t numel = 0, known = 1;
  int open = -1;
  gp_status status = gp_shape_numel(&meta->shape, &numel);
  if (status != GP_OK) gp_lua_fail(L, status);
  for (int d = 0; d < shape->rank; d++) {
    if (shape->dim[d] != -1) continue;
    if (open >= 0) gp_lua_error(L, "%s: the shape has -1 twice, expected it once", who);
    open = d;
    shape->dim[d] = 1;
  }
  status = gp_shape_numel(shape, &known);
  if (status != GP_OK) gp_lua_fail(L, status);
  bool fits = open < 0 ? known == numel : known > 0 && numel % known == 0;
  char have[128], want[128];
  if (open >= 0) shape->dim[open] = fits ? numel / known : -1;
  if (!fits)
    gp_lua_error(L, "%s: the shape is %s, expected one for the %I elements of %s", who,
                 gp_shape_print(shape, want, sizeof want), (LUAI_UACINT)numel,
                 gp_shape_print(&meta->shape, have, sizeof have));
}

/* t:reshape(shape) -> t's elements in row-major order with another shape; a copy if t has gaps */
static int shape_reshape(lua_State *L) {
  gp_meta meta = gp_lua_check_meta(L, 1, "reshape");
  gp_shape shape;
  gp_lua_check_shape(L, 2, "reshape: shape", -1, &shape);
  infer_size(L, &meta, "reshape", &shape);
  gp_lua_reshape(L, 1, &shape);
  return 1;
}

/* t:view(shape): as reshape, but never a copy */
static int shape_view(lua_State *L) {
  gp_meta meta = gp_lua_check_meta(L, 1, "view");
  gp_shape shape;
  gp_lua_check_shape(L, 2, "view: shape", -1, &shape);
  infer_size(L, &meta, "view", &shape);
  if (!gp_meta_is_dense(&meta))
    return gp_lua_error(L, "view: the tensor is not contiguous, expected one that is (reshape "
                           "copies where it must)");
  gp_lua_reshape(L, 1, &shape);
  return 1;
}

/* ---- permute, narrow, select --------------------------------------------------------------- */

/* Apply permute; order counts from 0. */
static void apply_permute(lua_State *L, const int64_t *order, int rank) {
  gp_lua_call use = {.op = GP_OP_permute, .n_in = 1, .in = {1}};
  use.attrs.permute.order.count = rank;
  memcpy(use.attrs.permute.order.at, order, sizeof *order * (size_t)rank);
  gp_lua_apply(L, &use);
}

/* t:permute(order): dimension d of the result is dimension order[d] of t */
static int shape_permute(lua_State *L) {
  int rank = gp_lua_check_meta(L, 1, "permute").shape.rank;
  int64_t order[GP_MAX_RANK] = {0};
  if (lua_type(L, 2) != LUA_TTABLE) { /* t:permute(2, 1) */
    int count = lua_gettop(L) - 1;
    lua_createtable(L, count, 0);
    lua_insert(L, 2);
    for (int i = count; i >= 1; i--) lua_rawseti(L, 2, i);
  }
  if ((int)lua_rawlen(L, 2) != rank)
    return gp_lua_error(L, "permute: the order has %I dimensions, expected %d",
                        (LUAI_UACINT)lua_rawlen(L, 2), rank);
  unsigned seen = 0;
  for (int d = 0; d < rank; d++) {
    lua_rawgeti(L, 2, d + 1);
    order[d] = gp_lua_check_dim(L, -1, "permute: dim", rank);
    seen |= 1u << order[d];
    lua_pop(L, 1);
  }
  if (seen != (1u << rank) - 1)
    return gp_lua_error(L, "permute: a dimension is given twice, expected each of 1..%d once",
                        rank);
  apply_permute(L, order, rank);
  return 1;
}

/* t:transpose(a, b): exchange two dimensions; the last two by default */
static int shape_transpose(lua_State *L) {
  int rank = gp_lua_check_meta(L, 1, "transpose").shape.rank;
  lua_settop(L, 3);
  if (lua_isnil(L, 2) && lua_isnil(L, 3)) {
    lua_pushinteger(L, -2), lua_replace(L, 2);
    lua_pushinteger(L, -1), lua_replace(L, 3);
  }
  int a = gp_lua_check_dim(L, 2, "transpose: a", rank);
  int b = gp_lua_check_dim(L, 3, "transpose: b", rank);
  int64_t order[GP_MAX_RANK] = {0};
  for (int d = 0; d < rank; d++) order[d] = d == a ? b : d == b ? a : d;
  apply_permute(L, order, rank);
  return 1;
}

/* range: first (from 0) and length */
static void apply_narrow(lua_State *L, int index, int dim, const int64_t range[2]) {
  gp_lua_call use = {.op = GP_OP_narrow, .n_in = 1, .in = {lua_absindex(L, index)}};
  use.attrs.narrow = (gp_attr_narrow){dim, range[0], range[1]};
  gp_lua_apply(L, &use);
}

/* t:narrow(d, first, length): positions first .. first + length - 1 of dimension d */
static int shape_narrow(lua_State *L) {
  gp_shape shape = gp_lua_check_meta(L, 1, "narrow").shape;
  int dim = gp_lua_check_dim(L, 2, "narrow: dim", shape.rank);
  int64_t size = shape.dim[dim];
  /* an empty dimension allows an empty range at its beginning */
  const bool nothing = size == 0 && lua_isinteger(L, 3) && lua_tointeger(L, 3) == 1;
  int64_t first = nothing ? 0 : gp_lua_check_position(L, 3, "narrow: first", size);
  int64_t length = gp_lua_check_int(L, 4, "narrow: length", 0, size - first);
  apply_narrow(L, 1, dim, (int64_t[2]){first, length});
  return 1;
}

/* The shape of a slice at one position of `dim`. */
static gp_shape without_dim(const gp_shape *shape, int dim) {
  gp_shape less = {.rank = shape->rank - 1};
  for (int d = 0; d < less.rank; d++) less.dim[d] = shape->dim[d + (d >= dim)];
  return less;
}

/* Push a view without one dimension. No op does this and keeps gaps, so it is made here. The box
 * that holds the tensor for us takes the view instead. */
void gp_lua_select_view(lua_State *L, int index, int dim, int64_t at) {
  gp_tensor *tensor = gp_lua_check_tensor(L, index, "select");
  gp_box *box = gp_lua_to_box(L, -1);
  gp_meta meta = *gp_tensor_meta(tensor);
  meta.offset += at * meta.stride[dim];
  for (int d = dim; d + 1 < meta.shape.rank; d++) meta.stride[d] = meta.stride[d + 1];
  meta.shape = without_dim(&meta.shape, dim);
  gp_status status = gp_tensor_view(tensor, &meta, &box->tensor);
  gp_tensor_free(status == GP_OK ? tensor : NULL);
  if (status != GP_OK) gp_lua_fail(L, status);
}

/* Select a slice. For a symbolic value, or one with a gradient, it is narrowed and then reshaped
 * (with a copy if it has gaps). */
void gp_lua_select(lua_State *L, int index, int dim, int64_t at) {
  gp_box *box = gp_lua_check_box(L, index, "select");
  const bool noted = gp_box_has_gradient(box) && !gp_lua_state(L)->no_grad;
  if (!noted && (box->tensor || (box->param && !gp_lua_trace(L)))) {
    gp_lua_select_view(L, index, dim, at);
    return;
  }
  gp_shape shape = without_dim(&gp_box_meta(box)->shape, dim);
  apply_narrow(L, index, dim, (int64_t[2]){at, 1});
  gp_lua_reshape(L, -1, &shape);
  lua_remove(L, -2);
}

/* t:select(d, i): position i of dimension d, which is dropped */
static int shape_select(lua_State *L) {
  gp_shape shape = gp_lua_check_meta(L, 1, "select").shape;
  int dim = gp_lua_check_dim(L, 2, "select: dim", shape.rank);
  gp_lua_select(L, 1, dim, gp_lua_check_position(L, 3, "select: position", shape.dim[dim]));
  return 1;
}

typedef struct steps {
  int dim;
  int64_t first, count, step;
} steps;

/* Take every step-th position of the value at 1 with ops: the steps become a separate dimension, of
 * which only the first position is kept. */
static void apply_steps(lua_State *L, gp_shape shape, const steps *s) {
  const int64_t reach = (s->count - 1) * s->step + 1, full = s->count * s->step;
  apply_narrow(L, 1, s->dim, (int64_t[2]){s->first, reach});
  if (full > reach) {
    gp_lua_call pad = {.op = GP_OP_pad, .n_in = 1, .in = {lua_gettop(L)}};
    pad.attrs.pad = (gp_attr_pad){.dim = s->dim, .start = 0, .full = full};
    gp_lua_apply(L, &pad);
  }
  for (int d = shape.rank++; d > s->dim + 1; d--) shape.dim[d] = shape.dim[d - 1];
  shape.dim[s->dim] = s->count, shape.dim[s->dim + 1] = s->step;
  gp_lua_reshape(L, -1, &shape);
  gp_lua_select(L, lua_gettop(L), s->dim + 1, 0);
}

/* core.every(t, d, first, count, step): every step-th position of dimension d from `first` on: a
 * view of a real tensor, else a copy. */
int gp_lua_every(lua_State *L) {
  gp_shape shape = gp_lua_check_meta(L, 1, "every").shape;
  steps s = {.dim = gp_lua_check_dim(L, 2, "every: dim", shape.rank)};
  const int64_t size = shape.dim[s.dim];
  s.first = gp_lua_check_position(L, 3, "every: first", size);
  s.step = gp_lua_check_int(L, 5, "every: step", 1, INT64_MAX);
  s.count = gp_lua_check_int(L, 4, "every: count", 1, (size - s.first - 1) / s.step + 1);
  const gp_box *box = gp_lua_check_box(L, 1, "every");
  const bool noted = gp_box_has_gradient(box) && !gp_lua_state(L)->no_grad;
  if (noted || box->trace || (box->param && gp_lua_trace(L))) return apply_steps(L, shape, &s), 1;
  gp_tensor *tensor = gp_lua_check_tensor(L, 1, "every");
  gp_meta meta = *gp_tensor_meta(tensor);
  meta.offset += s.first * meta.stride[s.dim];
  meta.stride[s.dim] *= s.step;
  meta.shape.dim[s.dim] = s.count;
  gp_status status = gp_tensor_view(tensor, &meta, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* t:expand(shape): t repeated along dimensions of size 1, without a copy */
static int shape_expand(lua_State *L) {
  gp_shape shape;
  gp_lua_check_box(L, 1, "expand");
  gp_lua_check_shape(L, 2, "expand: shape", 0, &shape);
  gp_lua_call use = {.op = GP_OP_expand, .attrs.expand.to = shape, .n_in = 1, .in = {1}};
  gp_lua_apply(L, &use);
  return 1;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* t:contiguous() -> t itself if it is contiguous, else a copy */
static int shape_contiguous(lua_State *L) {
  lua_settop(L, 1);
  gp_meta meta = gp_lua_check_meta(L, 1, "contiguous");
  if (!gp_meta_is_dense(&meta)) gp_lua_apply1(L, GP_OP_copy, 1);
  return 1;
}

/* t:clone() -> a copy with new memory */
static int shape_clone(lua_State *L) {
  gp_lua_apply1(L, GP_OP_copy, 1);
  return 1;
}

/* Move to another device. While a layer is traced this does nothing, because the pipeline places
 * its values. */
static int move_to(lua_State *L, const char *device) {
  gp_box *box = gp_lua_check_box(L, 1, "to");
  if (box->trace || (box->param && gp_lua_trace(L))) return lua_settop(L, 1), 1;
  gp_tensor *tensor = gp_lua_check_tensor(L, 1, "to");
  gp_box *made = gp_lua_new_box(L);
  gp_status status = gp_tensor_move(tensor, device, &made->tensor);
  if (status != GP_OK) return gp_lua_error(L, "to: %s", gp_error_text());
  if (made->tensor == tensor) return lua_settop(L, 1), 1;
  if (gp_box_has_gradient(gp_lua_to_box(L, 1)) && !gp_lua_state(L)->no_grad)
    return gp_lua_error(L, "to: the tensor has a gradient, which does not go from device to device "
                           "outside of pipelines, expected detach() first");
  return 1;
}

/* t:to(dtype or device) -> converted; t itself if there is nothing to do */
static int shape_to(lua_State *L) {
  lua_settop(L, 2);
  gp_box *box = gp_lua_check_box(L, 1, "to");
  const char *name = gp_lua_check_string(L, 2, "to: dtype or device");
  gp_dtype dtype = GP_F32;
  gp_device_facts device;
  bool is_dtype = gp_dtype_parse(name, &dtype) == GP_OK;
  if (!is_dtype && gp_device_describe(name, &device) == GP_OK) return move_to(L, name);
  if (!is_dtype)
    return gp_lua_bad_dtype(L, 2, "to: dtype or device",
                            "f32, f64, bf16, f16, i64, i32, u8, bool, \"cpu\" or \"cuda:0\"");
  if (gp_lua_dtype(L, box) == dtype) return lua_settop(L, 1), 1;
  gp_lua_call use = {.op = GP_OP_cast, .attrs.cast.dtype = dtype, .n_in = 1, .in = {1}};
  gp_lua_apply(L, &use);
  return 1;
}

/* ---- concat -------------------------------------------------------------------------------- */

/* Join the tensors of the list at index LIST, as many at a time as an op takes, and replace the
 * list by the results. The stack never holds more than one group, however long the list is. */
enum { LIST = 1, DIM = 2, FIRST = 3 };

static void concat_level(lua_State *L, int64_t count, int dim) {
  int64_t groups = 0;
  lua_newtable(L);
  for (int64_t first = 1; first <= count; first += GP_MAX_INPUTS) {
    gp_lua_call use = {.op = GP_OP_concat, .attrs.concat.dim = dim};
    for (int64_t i = first; i <= count && use.n_in < GP_MAX_INPUTS; i++) {
      lua_rawgeti(L, LIST, i);
      use.in[use.n_in++] = lua_gettop(L);
    }
    gp_lua_apply(L, &use);
    lua_rawseti(L, FIRST, ++groups);
    lua_settop(L, FIRST);
  }
  lua_replace(L, LIST);
}

/* Raise if an element of the list is no tensor. */
static void check_elements(lua_State *L, int64_t count) {
  for (int64_t i = 1; i <= count; i++) {
    lua_rawgeti(L, LIST, i);
    gp_lua_check_box(L, FIRST, lua_pushfstring(L, "concat: element %I", (LUAI_UACINT)i));
    lua_settop(L, DIM);
  }
}

/* core.concat({a, b, ...}, d): join along dimension d, by default the first */
int gp_lua_concat(lua_State *L) {
  lua_settop(L, DIM);
  if (lua_type(L, LIST) != LUA_TTABLE)
    return gp_lua_bad_value(L, LIST, "concat: tensors", "a list");
  int64_t count = (int64_t)lua_rawlen(L, LIST);
  if (count == 0) return gp_lua_error(L, "concat: the list is empty, expected tensors");
  luaL_checkstack(L, GP_MAX_INPUTS + 8, "concat");
  check_elements(L, count);
  lua_rawgeti(L, LIST, 1);
  int rank = gp_lua_check_meta(L, FIRST, "concat").shape.rank;
  int dim = lua_isnil(L, DIM) && rank > 0 ? 0 : gp_lua_check_dim(L, DIM, "concat: dim", rank);
  lua_settop(L, DIM);
  do {
    concat_level(L, count, dim);
    count = (count + GP_MAX_INPUTS - 1) / GP_MAX_INPUTS;
  } while (count > 1);
  lua_rawgeti(L, LIST, 1);
  return 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static const luaL_Reg methods[] = {{"reshape", shape_reshape},
                                   {"view", shape_view},
                                   {"permute", shape_permute},
                                   {"transpose", shape_transpose},
                                   {"narrow", shape_narrow},
                                   {"select", shape_select},
                                   {"expand", shape_expand},
                                   {"contiguous", shape_contiguous},
                                   {"clone", shape_clone},
                                   {"to", shape_to},
                                   {NULL, NULL}};

void gp_methods_shape(lua_State *L) { luaL_setfuncs(L, methods, 0); }
