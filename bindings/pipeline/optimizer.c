/* bindings/pipeline/optimizer.c - the optimizer object behind gpipe.optim: groups of parameters,
 * moments, steps. Defaults and option checks are in lua/gpipe/optim. */
#include "field.h"
#include "pipeline/pipeline.h"

#define OPTIMIZER "gpipe.Optimizer"

typedef struct optimizer_box {
  gp_optimizer *optimizer;
  gp_optim_kind kind;
  int groups;
} optimizer_box;

/* ---- check --------------------------------------------------------------------------------- */

/* The fields of gp_optim_hyper by name; missing ones are 0. */
static gp_optim_hyper check_hyper(lua_State *L, int index, gp_optim_kind kind) {
  luaL_checktype(L, index, LUA_TTABLE);
  return (gp_optim_hyper){.kind = kind,
                          .lr = gp_lua_number_field(L, index, "lr"),
                          .weight_decay = gp_lua_number_field(L, index, "weight_decay"),
                          .momentum = gp_lua_number_field(L, index, "momentum"),
                          .beta1 = gp_lua_number_field(L, index, "beta1"),
                          .beta2 = gp_lua_number_field(L, index, "beta2"),
                          .eps = gp_lua_number_field(L, index, "eps"),
                          .lr_decay = gp_lua_number_field(L, index, "lr_decay"),
                          .momentum_decay = gp_lua_number_field(L, index, "momentum_decay"),
                          .grow = gp_lua_number_field(L, index, "grow"),
                          .shrink = gp_lua_number_field(L, index, "shrink"),
                          .least = gp_lua_number_field(L, index, "least"),
                          .most = gp_lua_number_field(L, index, "most"),
                          .dampening = gp_lua_number_field(L, index, "dampening"),
                          .since = (int64_t)gp_lua_number_field(L, index, "since"),
                          .amsgrad = gp_lua_flag_field(L, index, "amsgrad"),
                          .nesterov = gp_lua_flag_field(L, index, "nesterov"),
                          .centered = gp_lua_flag_field(L, index, "centered"),
                          .decoupled = gp_lua_flag_field(L, index, "decoupled")};
}

/* ---- methods ------------------------------------------------------------------------------- */

/* Push the hyper-parameters that the list has for each group of the optimizer. */
const gp_optim_hyper *gp_lua_push_hyper(lua_State *L, int optimizer, int list) {
  optimizer_box *box = luaL_checkudata(L, optimizer, OPTIMIZER);
  luaL_checktype(L, list, LUA_TTABLE);
  if (lua_rawlen(L, list) != (size_t)box->groups)
    gp_lua_error(L, "optimizer: %d groups of hyper-parameters, expected %d",
                 (int)lua_rawlen(L, list), box->groups);
  gp_optim_hyper *hyper = lua_newuserdatauv(L, (size_t)box->groups * sizeof *hyper + 1, 0);
  for (int i = 0; i < box->groups; i++) {
    lua_rawgeti(L, list, i + 1);
    hyper[i] = check_hyper(L, lua_gettop(L), box->kind);
    lua_pop(L, 1);
  }
  return hyper;
}

/* Errors: the box is empty, because __gc has run, which a script can call too. */
gp_optimizer *gp_lua_check_optimizer(lua_State *L, int index) {
  optimizer_box *box = luaL_checkudata(L, index, OPTIMIZER);
  if (!box->optimizer) gp_lua_error(L, "optimizer: it was freed, expected a live one");
  return box->optimizer;
}

/* o:step{hyper of group 1, ...} -> was it skipped, because gradients are not finite? */
static int optimizer_step(lua_State *L) {
  bool skipped;
  const gp_optim_hyper *hyper = gp_lua_push_hyper(L, 1, 2);
  gp_status status = gp_optimizer_step(gp_lua_check_optimizer(L, 1), hyper, &skipped);
  if (status) return gp_lua_fail(L, status);
  lua_pushboolean(L, skipped);
  return 1;
}

/* o:steps() -> the number of steps so far */
static int optimizer_steps(lua_State *L) {
  lua_pushinteger(L, gp_optimizer_steps(gp_lua_check_optimizer(L, 1)));
  return 1;
}

/* o:set_steps(n); at most half of an int64's range, so that there is room for further steps */
static int optimizer_set_steps(lua_State *L) {
  gp_optimizer *optimizer = gp_lua_check_optimizer(L, 1);
  gp_optimizer_set_steps(optimizer, gp_lua_check_int(L, 2, "set_steps", 0, INT64_MAX / 2));
  return 0;
}

/* o:moment(parameter, k) -> a tensor with the same memory, or nil if there is none; k counts from
 * 1 */
static int optimizer_moment(lua_State *L) {
  int k = (int)gp_lua_check_int(L, 3, "moment: k", 1, GP_OPTIM_MOMENTS);
  gp_box *moment = gp_lua_new_box(L);
  gp_param *param = gp_lua_check_param(L, 2, "moment: the parameter");
  gp_optimizer *optimizer = gp_lua_check_optimizer(L, 1);
  gp_status status = gp_optimizer_moment(optimizer, param, k - 1, &moment->tensor);
  if (status != GP_OK) return gp_lua_fail(L, status);
  if (!moment->tensor) lua_pushnil(L);
  return 1;
}

/* Idempotent, because a finalizer may run again when the state is closed. */
static int optimizer_free(lua_State *L) {
  optimizer_box *box = luaL_checkudata(L, 1, OPTIMIZER);
  gp_optimizer *optimizer = box->optimizer;
  box->optimizer = NULL;
  gp_optimizer_free(optimizer);
  return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

/* core.optimizer_new(kind, {{parameter, ...}, ...}, moments) -> optimizer; moments: the most that
 * any group's settings need */
static int optimizer_new(lua_State *L) {
  static const char *const kinds[GP_OPTIM_KINDS + 1] = {
      [GP_OPTIM_SGD] = "sgd",         [GP_OPTIM_ADAM] = "adam",         [GP_OPTIM_ADAMW] = "adamw",
      [GP_OPTIM_RMSPROP] = "rmsprop", [GP_OPTIM_ADAGRAD] = "adagrad",   [GP_OPTIM_LION] = "lion",
      [GP_OPTIM_ADAMAX] = "adamax",   [GP_OPTIM_ADADELTA] = "adadelta", [GP_OPTIM_NADAM] = "nadam",
      [GP_OPTIM_RADAM] = "radam",     [GP_OPTIM_RPROP] = "rprop"};
  gp_optim_kind kind = (gp_optim_kind)luaL_checkoption(L, 1, NULL, kinds);
  luaL_checktype(L, 2, LUA_TTABLE);
  int moments = (int)gp_lua_check_int(L, 3, "optimizer: moments", 0, GP_OPTIM_MOMENTS);
  int count = (int)lua_rawlen(L, 2);
  luaL_checkstack(L, 2 * count + 8, "too many groups"); /* a list and its array each */
  gp_optim_group *groups = lua_newuserdatauv(L, (size_t)count * sizeof *groups + 1, 0);
  for (int i = 0; i < count; i++) {
    lua_rawgeti(L, 2, i + 1);
    groups[i].params =
        gp_lua_push_params(L, lua_gettop(L), "optimizer: a parameter", &groups[i].count);
  }
  optimizer_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (optimizer_box){.kind = kind, .groups = count};
  luaL_setmetatable(L, OPTIMIZER);
  gp_status status = gp_optimizer_new(moments, groups, count, &box->optimizer);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.clip_grad_norm({parameter, ...}, max) -> the norm before */
static int clip_grad_norm(lua_State *L) {
  double max = gp_lua_check_number(L, 2, "clip_grad_norm: max"), norm = 0;
  int count = 0;
  gp_param **params = gp_lua_push_params(L, 1, "clip_grad_norm: a parameter", &count);
  gp_status status = gp_clip_grad_norm(params, count, max, &norm);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_pushnumber(L, norm);
  return 1;
}

static const luaL_Reg methods[] = {{"step", optimizer_step},
                                   {"steps", optimizer_steps},
                                   {"set_steps", optimizer_set_steps},
                                   {"moment", optimizer_moment},
                                   {NULL, NULL}};

static const luaL_Reg functions[] = {
    {"optimizer_new", optimizer_new}, {"clip_grad_norm", clip_grad_norm}, {NULL, NULL}};

int gp_open_optimizer(lua_State *L) {
  gp_lua_push_type(L, OPTIMIZER, optimizer_free);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
