/* bindings/tensor/gradient.c - gradients of tensors outside of pipelines: requires_grad, grad,
 * backward, detach. */
#include <string.h>

#include "tensor/tensor.h"

bool gp_box_has_gradient(const gp_box *box) {
  return box->history || box->leaf || (box->param && gp_param_has_gradient(box->param));
}

/* ---- writing in place ---------------------------------------------------------------------- */

/* The leaf that a box is, or views. */
static const gp_param *leaf_below(const gp_box *box) {
  return box->history ? gp_history_viewed(box->history) : box->leaf;
}

/* Check that a box may be written in place. A view of a leaf counts as the leaf. Parameters may
 * always be written: backward() raises if it needs their old values. */
void gp_lua_check_writable(lua_State *L, const gp_box *box, const char *who) {
  const gp_param *leaf = leaf_below(box);
  if (leaf && gp_param_is_borrowed(leaf) && !gp_lua_state(L)->no_grad)
    gp_lua_error(L,
                 "%s: the tensor requires a gradient, expected gp.no_grad(function .. end) around "
                 "what writes it in place",
                 who);
}

/* Is the write recorded as an op? Parameters, leaves and their views are written without a
 * record. */
bool gp_lua_write_is_noted(lua_State *L, const gp_box *to, const gp_box *value) {
  if (gp_lua_state(L)->no_grad || gp_lua_trace(L) || !to->tensor || leaf_below(to)) return false;
  return to->history || (value && gp_box_has_gradient(value));
}

/* Check that no other tensor views the memory: it would keep the old contents. Tensors that only
 * wait for the collector do not count. */
static void check_alone(lua_State *L, const gp_box *to, const char *who) {
  if (gp_tensor_is_shared(to->tensor)) lua_gc(L, LUA_GCCOLLECT);
  if (to->tensor && gp_tensor_is_shared(to->tensor))
    gp_lua_error(L,
                 "%s: a gradient may be asked for what is written, and other tensors are views of "
                 "this memory, expected a tensor without views: t[{..}] = v on the whole one, or "
                 "clone() it first",
                 who);
}

/* Give the box the new value's memory. The old memory is not overwritten, because ops that read it
 * keep it. */
void gp_lua_take_value(lua_State *L, int to_index, int from_index, const char *who) {
  gp_box *to = gp_lua_to_box(L, to_index), *from = gp_lua_to_box(L, from_index);
  check_alone(L, to, who);
  gp_tensor *old = to->tensor;
  gp_history *before = to->history;
  to->tensor = gp_tensor_retain(from->tensor);
  to->history = from->history ? gp_history_retain(from->history) : NULL;
  to->output = from->output;
  gp_tensor_free(old);
  gp_history_free(before);
}

/* core.write_is_noted(t, value) -> is writing the value into t an op with a gradient? */
static int write_is_noted(lua_State *L) {
  const gp_box *to = gp_lua_check_box(L, 1, "write");
  lua_pushboolean(L, gp_lua_write_is_noted(L, to, gp_lua_to_box(L, 2)));
  return 1;
}

/* ---- fields -------------------------------------------------------------------------------- */

/* The leaf where the gradients of a value end; NULL if the value is computed or needs none. */
static gp_param *leaf_of(const gp_box *box) { return box->leaf ? box->leaf : box->param; }

/* Push t.grad -> the gradient so far, or nil. t may be collected meanwhile, but not its leaf. */
static int push_grad(lua_State *L, const gp_box *box) {
  gp_param *leaf = leaf_of(box);
  if (!leaf) return lua_pushnil(L), 1;
  gp_box *made = gp_lua_new_box(L);
  gp_param_grad(leaf, &made->tensor);
  if (!made->tensor) lua_pushnil(L);
  return 1;
}

int gp_lua_push_gradient_field(lua_State *L, const gp_box *box, const char *key) {
  if (strcmp(key, "grad") == 0) return push_grad(L, box);
  if (strcmp(key, "requires_grad") != 0) return 0;
  const bool declared = box->param && !gp_param_is_frozen(box->param);
  lua_pushboolean(L, box->param ? declared && !gp_param_is_buffer(box->param)
                                : box->leaf || box->history);
  return 1;
}

/* Make a tensor of the script a leaf, or stop it being one. */
static void set_leaf(lua_State *L, bool wanted) {
  gp_tensor *tensor = gp_lua_check_tensor(L, 1, "requires_grad");
  gp_box *box = gp_lua_to_box(L, 1);
  if (box->history)
    gp_lua_error(L, "requires_grad: the tensor was computed, expected detach() first: gradients "
                    "end at tensors that were not");
  if (wanted && !gp_dtype_is_float(gp_tensor_meta(tensor)->dtype))
    gp_lua_error(L, "requires_grad: the tensor is %s, expected floats",
                 gp_dtype_name(gp_tensor_meta(tensor)->dtype));
  if (wanted == (box->leaf != NULL)) return;
  gp_param *leaf = box->leaf;
  box->leaf = NULL;
  gp_param_free(leaf);
  gp_status status = wanted ? gp_leaf_new(tensor, &box->leaf) : GP_OK;
  if (status != GP_OK) gp_lua_fail(L, status);
}

bool gp_lua_set_gradient_field(lua_State *L, const char *key) {
  gp_box *box = gp_lua_check_box(L, 1, key);
  if (strcmp(key, "grad") == 0) {
    if (!lua_isnil(L, 3)) gp_lua_bad_value(L, 3, "t.grad = v: v", "nil, which forgets it");
    if (leaf_of(box)) gp_param_clear_grad(leaf_of(box));
    return true;
  }
  if (strcmp(key, "requires_grad") != 0) return false;
  if (lua_type(L, 3) != LUA_TBOOLEAN)
    gp_lua_bad_value(L, 3, "t.requires_grad = v: v", "true or false");
  if (box->trace)
    gp_lua_error(L, "requires_grad: the values are not known yet (a layer is being "
                    "traced, and pipelines know what has gradients)");
  if (!box->param) return set_leaf(L, lua_toboolean(L, 3)), true;
  gp_status status = gp_param_set_frozen(box->param, !lua_toboolean(L, 3));
  if (status != GP_OK) gp_lua_fail(L, status);
  return true;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* Push the seed: the one given at `index`, or 1 for a scalar, on the device of the tensor at 1. */
static gp_tensor *push_seed(lua_State *L, const gp_meta *meta, int index) {
  if (!lua_isnoneornil(L, index)) {
    gp_tensor *seed = gp_lua_check_tensor(L, index, "backward: the seed");
    const gp_meta *have = gp_tensor_meta(seed);
    if (have->dtype != meta->dtype || !gp_shape_equal(&have->shape, &meta->shape)) {
      char is[128], wanted[128];
      gp_lua_error(L, "backward: the seed is %s %s, expected %s %s", gp_dtype_name(have->dtype),
                   gp_shape_print(&have->shape, is, sizeof is), gp_dtype_name(meta->dtype),
                   gp_shape_print(&meta->shape, wanted, sizeof wanted));
    }
    return seed;
  }
  int64_t numel = 0;
  gp_status status = gp_shape_numel(&meta->shape, &numel);
  if (status == GP_OK && numel != 1)
    gp_lua_error(L,
                 "backward: the tensor has %I elements, expected one (a loss), or a seed of its "
                 "shape: backward(seed)",
                 (LUAI_UACINT)numel);
  gp_box *box = gp_lua_new_box(L), *moved = gp_lua_new_box(L);
  if (status == GP_OK) status = gp_tensor_new(meta->dtype, &meta->shape, &box->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  gp_tensor_set_double(box->tensor, 0, 1);
  const gp_box *root = gp_lua_to_box(L, 1);
  status = gp_tensor_move(box->tensor, gp_tensor_device(root->tensor), &moved->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  return moved->tensor;
}

/* The box at index 1, which must have a gradient. */
static gp_box *check_root(lua_State *L) {
  gp_box *box = gp_lua_check_known(L, 1, "backward");
  if (box->history) return box;
  return gp_lua_error(L,
                      "backward: the tensor was computed from nothing that requires a gradient%s",
                      gp_lua_state(L)->no_grad
                          ? " (gp.no_grad is on)"
                          : " (nor do parameters while a pipeline or a compiled function has "
                            "them: close it first)"),
         box;
}

/* t:backward(seed): add t's gradients to all leaves that it was computed from */
static int backward(lua_State *L) {
  lua_settop(L, 2);
  const gp_meta meta = *gp_box_meta(check_root(L));
  gp_tensor *seed = push_seed(L, &meta, 2);
  gp_box *box = check_root(L);
  gp_status status = gp_history_backward(box->history, box->output, seed, NULL, 0, NULL);
  return status == GP_OK ? 0 : gp_lua_fail(L, status);
}

/* core.gradients(t, seed, {leaf, ...}) -> a list of gradients, false for a leaf that t does not
 * depend on; stores nothing */
static int gradients(lua_State *L) {
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  const int count = (int)lua_rawlen(L, 3);
  luaL_checkstack(L, 2 * count + 8, "gradients: too many");
  const gp_meta meta = *gp_box_meta(check_root(L));
  gp_tensor *seed = push_seed(L, &meta, 2);
  gp_param **leaves = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *leaves, 0);
  gp_tensor **grads = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *grads, 0);
  lua_createtable(L, count, 0);
  const int list = lua_gettop(L);
  for (int k = 0; k < count; k++) gp_lua_new_box(L); /* before the leaves are looked at */
  for (int k = 0; k < count; k++) {
    lua_rawgeti(L, 3, k + 1);
    leaves[k] = leaf_of(gp_lua_check_box(L, lua_gettop(L), "gradients: a leaf"));
    lua_pop(L, 1);
    if (!leaves[k]) return gp_lua_error(L, "gradients: value %d requires no gradient", k + 1);
  }
  gp_box *box = check_root(L);
  gp_status status = gp_history_backward(box->history, box->output, seed, leaves, count, grads);
  if (status != GP_OK) return gp_lua_fail(L, status);
  for (int k = 0; k < count; k++) gp_lua_to_box(L, list + 1 + k)->tensor = grads[k];
  for (int k = count - 1; k >= 0; k--) {
    if (!gp_lua_to_box(L, list + 1 + k)->tensor)
      lua_pushboolean(L, 0), lua_replace(L, list + 1 + k);
    lua_rawseti(L, list, k + 1);
  }
  return 1;
}

/* t:detach() -> a tensor with the same elements and without a history */
static int detach(lua_State *L) {
  lua_settop(L, 1);
  gp_box *box = gp_lua_check_box(L, 1, "detach");
  if (box->trace || (box->param && gp_lua_trace(L))) {
    gp_lua_call use = {.op = GP_OP_detach, .n_in = 1, .in = {1}};
    gp_lua_apply(L, &use);
    return 1;
  }
  gp_lua_check_tensor(L, 1, "detach");
  return 1;
}

/* core.no_grad(flag) -> the flag before; while it is set, ops are not recorded for gradients */
static int no_grad(lua_State *L) {
  gp_lua *state = gp_lua_state(L);
  luaL_checktype(L, 1, LUA_TBOOLEAN);
  lua_pushboolean(L, state->no_grad);
  state->no_grad = lua_toboolean(L, 1);
  return 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static const luaL_Reg methods[] = {{"backward", backward}, {"detach", detach}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"gradients", gradients},
                                     {"no_grad", no_grad},
                                     {"write_is_noted", write_is_noted},
                                     {NULL, NULL}};

void gp_methods_gradient(lua_State *L) { luaL_setfuncs(L, methods, 0); }

int gp_open_gradient(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
