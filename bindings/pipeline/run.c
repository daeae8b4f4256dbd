/* bindings/pipeline/run.c - gives mini-batches to a pipeline's workers: one at a time, or a
 * stream. */
#include <stdio.h>

#include "pipeline/pipeline.h"

#include "field.h"

/* ---- arguments ----------------------------------------------------------------------------- */

/* The tensors in the list of a field. They stay on the stack, where no finalizer can free them. */
static int tensors_field(lua_State *L, int index, const char *name, gp_tensor **tensors) {
  lua_getfield(L, index, name);
  int list = lua_gettop(L), n = lua_istable(L, list) ? (int)lua_rawlen(L, list) : 0;
  if (n > GP_MAX_BATCH_TENSORS)
    gp_lua_error(L, "pipeline: %d tensors, expected at most %d", n, GP_MAX_BATCH_TENSORS);
  luaL_checkstack(L, 2 * n + 4, "tensors of a run");
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    tensors[i] = gp_lua_check_tensor(L, -1, "pipeline: a tensor");
  }
  return n;
}

/* The tensors of a list with a tensor or false for each input; false if there is no list. */
static bool input_grads_field(lua_State *L, int index, int n, gp_tensor **tensors) {
  if (lua_getfield(L, index, "input_grads") != LUA_TTABLE) return false;
  int list = lua_gettop(L);
  luaL_checkstack(L, n + 4, "gradients of inputs");
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    tensors[i] = lua_toboolean(L, -1) ? gp_lua_check_tensor(L, -1, "pipeline: a gradient") : NULL;
  }
  return true;
}

/* The arguments of a run: {inputs, targets, outputs or out_grads with input_grads, accumulate,
 * apart, hyper}. hyper has a table for each group of the optimizer in use. */
typedef struct arguments {
  gp_tensor *inputs[GP_MAX_BATCH_TENSORS], *targets[GP_MAX_BATCH_TENSORS];
  gp_tensor *outputs[GP_MAX_BATCH_TENSORS], *out_grads[GP_MAX_BATCH_TENSORS];
  gp_tensor *input_grads[GP_MAX_BATCH_TENSORS];
  gp_run_args args;
} arguments;

static void check_arguments(lua_State *L, int index, arguments *a) {
  luaL_checktype(L, index, LUA_TTABLE);
  a->args = (gp_run_args){.inputs = a->inputs,
                          .targets = a->targets,
                          .accumulate = gp_lua_flag_field(L, index, "accumulate"),
                          .apart = gp_lua_flag_field(L, index, "apart")};
  int outputs = tensors_field(L, index, "outputs", a->outputs);
  int grads = tensors_field(L, index, "out_grads", a->out_grads);
  a->args.outputs = outputs ? a->outputs : NULL;
  a->args.out_grads = grads ? a->out_grads : NULL;
  a->args.output_count = grads ? grads : outputs;
  a->args.input_count = tensors_field(L, index, "inputs", a->inputs);
  if (input_grads_field(L, index, a->args.input_count, a->input_grads))
    a->args.input_grads = a->input_grads;
  a->args.target_count = tensors_field(L, index, "targets", a->targets);
  if (lua_getfield(L, index, "hyper") == LUA_TNIL) return;
  lua_getiuservalue(L, 1, 1);
  a->args.hyper = gp_lua_push_hyper(L, lua_gettop(L), lua_gettop(L) - 1);
}

/* Raise a failure. After a timeout the Lua side first gets the report of what the devices did,
 * which it shows. */
static int fail(lua_State *L, const gp_pipeline *pipeline, gp_status status) {
  if (status == GP_ETIMEOUT && gp_lua_push_hook(L, "post_mortem") == LUA_TFUNCTION) {
    char text[512]; /* a copy, because the hook may use the runtime */
    snprintf(text, sizeof text, "%s", gp_error_text());
    lua_pushstring(L, gp_pipeline_report(pipeline));
    lua_call(L, 1, 0);
    return gp_lua_error(L, "%s", text);
  }
  return gp_lua_fail(L, status);
}

/* ---- running ------------------------------------------------------------------------------- */

/* p:run(plan, arguments) -> loss, count */
static int pipeline_run(lua_State *L) {
  gp_run_result result = {0};
  arguments a;
  gp_lua_check_pipeline(L);
  check_arguments(L, 3, &a);
  gp_pipeline *pipeline = gp_lua_check_pipeline(L); /* a finalizer may have closed it */
  gp_status status = gp_pipeline_run(pipeline, gp_lua_check_plan(L, 2), &a.args, &result);
  if (status) return fail(L, pipeline, status);
  lua_pushnumber(L, result.loss);
  lua_pushinteger(L, result.count);
  return 2;
}

/* p:submit(plan, arguments): p:losses() returns its results later */
static int pipeline_submit(lua_State *L) {
  arguments a;
  gp_lua_check_pipeline(L);
  check_arguments(L, 3, &a);
  gp_pipeline *pipeline = gp_lua_check_pipeline(L); /* a finalizer may have closed it */
  gp_status status = gp_pipeline_submit(pipeline, gp_lua_check_plan(L, 2), &a.args);
  return status ? fail(L, pipeline, status) : 0;
}

/* p:drain() */
static int pipeline_drain(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  gp_status status = gp_pipeline_drain(pipeline);
  return status ? fail(L, pipeline, status) : 0;
}

/* p:losses(list): append the losses that have become known to the list */
static int pipeline_losses(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 2);
  for (double loss; gp_pipeline_losses(pipeline, &loss, 1) == 1;) {
    lua_pushnumber(L, loss);
    lua_rawseti(L, 2, ++n);
  }
  return 0;
}

/* p:stream() -> the plan of the open stream, or nil */
static int pipeline_stream(lua_State *L) {
  const gp_plan *plan = gp_pipeline_stream(gp_lua_check_pipeline(L));
  if (!plan) return 0;
  lua_pushlightuserdata(L, (void *)plan);
  return 1;
}

/* ---- updates ------------------------------------------------------------------------------- */

/* p:use(optimizer, clip_norm, barrier); p:use(nil): updates are no part of the step any more */
static int pipeline_use(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  gp_optimizer *optimizer = lua_isnil(L, 2) ? NULL : gp_lua_check_optimizer(L, 2);
  gp_use_options options = {.clip_norm = luaL_optnumber(L, 3, 0),
                            .update = lua_toboolean(L, 4) ? GP_UPDATE_BARRIER : GP_UPDATE_FREE};
  if (!optimizer) options.update = GP_UPDATE_NONE;
  gp_status status = gp_pipeline_use(pipeline, optimizer, &options);
  if (status) return gp_lua_fail(L, status);
  lua_settop(L, 2);
  lua_setiuservalue(L, 1, 1); /* the runtime borrows it, so it is kept here */
  return 0;
}

/* p:broken() -> do some stages lack an update that others have? */
static int pipeline_broken(lua_State *L) {
  lua_pushboolean(L, gp_pipeline_is_broken(gp_lua_check_pipeline(L)));
  return 1;
}

/* p:mend(): call it when a state was loaded */
static int pipeline_mend(lua_State *L) {
  gp_pipeline_mend(gp_lua_check_pipeline(L));
  return 0;
}

/* pipeline:check_faults() -> nil, or the part of GPIPE_FAULT that does not exist */
static int pipeline_check_faults(lua_State *L) {
  if (!gp_pipeline_check_faults(gp_lua_check_pipeline(L))) return 0;
  lua_pushstring(L, gp_error_text());
  return 1;
}

/* p:report() -> what every device did when the last run was given up, or nil */
static int pipeline_report(lua_State *L) {
  const char *text = gp_pipeline_report(gp_lua_check_pipeline(L));
  lua_pushstring(L, *text ? text : NULL); /* nil if there is none */
  return 1;
}

/* p:lost() -> has a device never returned? */
static int pipeline_lost(lua_State *L) {
  lua_pushboolean(L, gp_pipeline_is_lost(gp_lua_check_pipeline(L)));
  return 1;
}

/* p:zero_grad() */
static int pipeline_zero_grad(lua_State *L) {
  gp_pipeline_zero_grad(gp_lua_check_pipeline(L));
  return 0;
}

/* p:steps() -> training passes so far */
static int pipeline_steps(lua_State *L) {
  lua_pushinteger(L, gp_pipeline_step_count(gp_lua_check_pipeline(L)));
  return 1;
}

/* p:set_steps(n) */
static int pipeline_set_steps(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  lua_Integer steps = gp_lua_check_int(L, 2, "set_steps", 0, UINT32_MAX);
  gp_pipeline_set_step_count(pipeline, (uint32_t)steps);
  return 0;
}

/* p:skipped() -> updates skipped so far, because gradients were not finite */
static int pipeline_skipped(lua_State *L) {
  lua_pushinteger(L, gp_pipeline_skipped(gp_lua_check_pipeline(L)));
  return 1;
}

/* p:set_skipped(n) */
static int pipeline_set_skipped(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  gp_pipeline_set_skipped(pipeline, gp_lua_check_int(L, 2, "set_skipped", 0, INT64_MAX));
  return 0;
}

const luaL_Reg gp_lua_run_methods[] = {{"run", pipeline_run},
                                       {"submit", pipeline_submit},
                                       {"drain", pipeline_drain},
                                       {"losses", pipeline_losses},
                                       {"stream", pipeline_stream},
                                       {"use", pipeline_use},
                                       {"broken", pipeline_broken},
                                       {"mend", pipeline_mend},
                                       {"report", pipeline_report},
                                       {"check_faults", pipeline_check_faults},
                                       {"lost", pipeline_lost},
                                       {"zero_grad", pipeline_zero_grad},
                                       {"steps", pipeline_steps},
                                       {"set_steps", pipeline_set_steps},
                                       {"skipped", pipeline_skipped},
                                       {"set_skipped", pipeline_set_skipped},
                                       {NULL, NULL}};
