/* bindings/tensor/ops_nn.c - the functions that layers and losses in lua/gpipe/nn are made of.
 *
 * One call, one op. Options arrive checked and in order; nil is "left out". */
#include "binding.h"

/* ---- options ------------------------------------------------------------------------------- */

static double opt_number(lua_State *L, int index, const char *who, double otherwise) {
  return lua_isnoneornil(L, index) ? otherwise : gp_lua_check_number(L, index, who);
}

static double field_number(lua_State *L, int table, const char *name) {
  lua_getfield(L, table, name);
  double value = opt_number(L, lua_gettop(L), name, 0.0);
  lua_pop(L, 1);
  return value;
}

static bool field_flag(lua_State *L, int table, const char *name) {
  lua_getfield(L, table, name);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

static int apply(lua_State *L, const gp_lua_call *use) {
  gp_lua_apply(L, use);
  return 1;
}

/* ---- layers -------------------------------------------------------------------------------- */

/* core.linear(x [.., K], w [N, K], b [N] or nil) -> [.., N] */
static int nn_linear(lua_State *L) {
  lua_settop(L, 3);
  return apply(
      L, &(gp_lua_call){.op = GP_OP_linear, .n_in = lua_isnil(L, 3) ? 2 : 3, .in = {1, 2, 3}});
}

/* core.embedding(ids [..], w [V, C]) -> [.., C] */
static int nn_embedding(lua_State *L) {
  return apply(L, &(gp_lua_call){.op = GP_OP_embedding, .n_in = 2, .in = {1, 2}});
}

/* core.layer_norm(x [.., C], w [C], b [C], eps) -> like x */
static int nn_layer_norm(lua_State *L) {
  gp_lua_call use = {.op = GP_OP_layer_norm, .n_in = 3, .in = {1, 2, 3}};
  use.attrs.f[0] = gp_lua_check_number(L, 4, "layer_norm: eps");
  return apply(L, &use);
}

/* core.dropout(x, p) -> like x; always drops: whether to is the layer's decision */
static int nn_dropout(lua_State *L) {
  gp_lua_call use = {.op = GP_OP_dropout, .n_in = 1, .in = {1}};
  use.attrs.f[0] = gp_lua_check_number(L, 2, "dropout: p");
  return apply(L, &use);
}

/* core.attention(q [B, H, T, D], k, v [B, G, S, D], {mask=, causal=, dropout=, scale=}) -> like q;
 * mask: bool or numbers [B or 1, H or 1, T or 1, S] */
static int nn_attention(lua_State *L) {
  gp_lua_call use = {.op = GP_OP_attention, .n_in = 3, .in = {1, 2, 3}};
  lua_settop(L, 4);
  if (!lua_isnil(L, 4)) {
    luaL_checktype(L, 4, LUA_TTABLE);
    use.attrs.i[1] = field_flag(L, 4, "causal");
    use.attrs.f[0] = field_number(L, 4, "dropout");
    use.attrs.f[1] = field_number(L, 4, "scale");
    if (lua_getfield(L, 4, "mask") != LUA_TNIL) use.in[use.n_in++] = 5;
  }
  return apply(L, &use);
}

/* core.attention_qkv(qkv [B, T, (H + 2 G) D], heads H, causal, dropout, groups G or nil: H)
 * -> [B, T, H D] */
static int nn_attention_qkv(lua_State *L) {
  gp_lua_call use = {.op = GP_OP_attention_qkv, .n_in = 1, .in = {1}};
  use.attrs.i[1] = lua_toboolean(L, 3);
  use.attrs.i[2] = gp_lua_check_int(L, 2, "attention_qkv: heads", 1, INT32_MAX);
  use.attrs.f[0] = opt_number(L, 4, "attention_qkv: dropout", 0.0);
  if (!lua_isnoneornil(L, 5))
    use.attrs.i[3] = gp_lua_check_int(L, 5, "attention_qkv: heads of keys", 1, INT32_MAX);
  return apply(L, &use);
}

/* ---- losses -------------------------------------------------------------------------------- */

static void set_ignore(lua_State *L, int index, gp_attrs *attrs) {
  if (lua_isnoneornil(L, index)) return;
  attrs->i[0] = 1;
  attrs->i[1] = gp_lua_check_int(L, index, "cross_entropy: ignore index", INT64_MIN, INT64_MAX);
}

/* core.cross_entropy(logits [.., V], ids [..], ignore or nil, smoothing or nil) -> loss [..] */
static int nn_cross_entropy(lua_State *L) {
  gp_lua_call use = {.op = GP_OP_cross_entropy, .n_in = 2, .in = {1, 2}};
  set_ignore(L, 3, &use.attrs);
  use.attrs.f[0] = opt_number(L, 4, "cross_entropy: smoothing", 0.0);
  return apply(L, &use);
}

/* core.cross_entropy_count(ids [..], ignore or nil) -> i64 scalar: ids that count */
static int nn_cross_entropy_count(lua_State *L) {
  gp_lua_call use = {.op = GP_OP_cross_entropy_count, .n_in = 1, .in = {1}};
  set_ignore(L, 2, &use.attrs);
  return apply(L, &use);
}

/* core.mse(a, b) -> scalar: the sum of squared differences */
static int nn_mse(lua_State *L) {
  return apply(L, &(gp_lua_call){.op = GP_OP_mse, .n_in = 2, .in = {1, 2}});
}

static const luaL_Reg functions[] = {{"linear", nn_linear},
                                     {"embedding", nn_embedding},
                                     {"layer_norm", nn_layer_norm},
                                     {"dropout", nn_dropout},
                                     {"attention", nn_attention},
                                     {"attention_qkv", nn_attention_qkv},
                                     {"cross_entropy", nn_cross_entropy},
                                     {"cross_entropy_count", nn_cross_entropy_count},
                                     {"mse", nn_mse},
                                     {NULL, NULL}};

int gp_open_nn(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
