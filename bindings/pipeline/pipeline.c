/* bindings/pipeline/pipeline.c - the pipeline's C side: made from checked tables, run with checked
 * tensors.
 *
 * Defaults, tracing and messages for users live in lua/gpipe/pipeline; the tables that arrive here
 * are complete. Pipeline, plan and schedule are looked up after all of Lua's part is done
 * (binding.h says why). */
#include "pipeline/pipeline.h"

#include "field.h"

gp_lua_pipeline *gp_lua_pipeline_box(lua_State *L) {
  return luaL_checkudata(L, 1, GP_LUA_PIPELINE);
}

gp_pipeline *gp_lua_check_pipeline(lua_State *L) {
  gp_lua_pipeline *box = gp_lua_pipeline_box(L);
  if (!box->pipeline) gp_lua_error(L, "pipeline: it is closed, expected a live one");
  return box->pipeline;
}

/* ---- new ----------------------------------------------------------------------------------- */

/* Limits of the numbers that the runtime uses as indices: they come from Lua, and scripts can call
 * core directly, so they are checked here. */
enum { MOST_STAGES = 999999 };

static void check_below(lua_State *L, const char *name, const int32_t *values, int count,
                        int limit) {
  for (int i = 0; i < count; i++)
    if (values[i] >= limit)
      gp_lua_error(L, "pipeline: %s has %d, expected numbers below %d", name, (int)values[i],
                   limit);
}

/* Without a job all devices are this process's. */
static void check_ranks(lua_State *L, const gp_pipeline_spec *spec) {
  gp_rank_info info = {.count = 1};
  gp_status status = spec->spread ? gp_ranks_info(&info) : GP_OK;
  if (status) gp_lua_fail(L, status);
  for (int d = 0; d < spec->device_count; d++)
    if (spec->devices[d].rank >= info.count)
      gp_lua_error(L, "pipeline: device %d is of rank %d, expected numbers below %d", d + 1,
                   spec->devices[d].rank, info.count);
}

/* Layers must be in the order of stages, with the loss in the last stage. */
static void check_stages(lua_State *L, const gp_pipeline_spec *spec) {
  for (int i = 1; i <= spec->layer_count; i++)
    if (spec->stage_of[i] < spec->stage_of[i - 1])
      gp_lua_error(L, "pipeline: stage_of descends at %d, expected stages in order", i + 1);
}

static gp_finite finite_field(lua_State *L) {
  static const char *const modes[] = {"skip", "raise", "ignore",
                                      NULL}; /* in the order of gp_finite */
  lua_getfield(L, 1, "finite");
  gp_finite mode = (gp_finite)luaL_checkoption(L, -1, NULL, modes);
  lua_pop(L, 1);
  return mode;
}

/* Read field checkpoint: the name of a mode, or a list of what each of the layers does. */
static void checkpoint_field(lua_State *L, gp_pipeline_spec *spec) {
#define TEXT(name, text) text,
  static const char *const modes[] = {GP_LAYER_REMAT_LIST(TEXT) NULL};
#undef TEXT
  if (lua_getfield(L, 1, "checkpoint") != LUA_TTABLE) {
    spec->remat = gp_lua_check_remat(L, -1);
    return;
  }
  const int list = lua_gettop(L);
  gp_layer_remat *layers =
      lua_newuserdatauv(L, ((size_t)spec->layer_count + 1) * sizeof *layers, 0);
  luaL_argcheck(L, luaL_len(L, list) == spec->layer_count, 1, "checkpoint: expected one per layer");
  for (int l = 0; l < spec->layer_count; l++) {
    lua_rawgeti(L, list, l + 1);
    layers[l] = (gp_layer_remat)luaL_checkoption(L, -1, NULL, modes);
    lua_pop(L, 1);
  }
  spec->remat = GP_REMAT_BY_LAYER;
  spec->layers = layers;
}

/* The fields of argument 1: stage_of (per layer and one for the loss), params, param_layer,
 * devices, stages, placement (stage after stage), copies, replicas, streams, sum_group, bucket
 * (bytes), most_whole (actions), checkpoint, seed, finite, unfused, added, watchdog (seconds, 0:
 * off), tf32, loss_scale = {scale, growth, backoff, min, window} or nil, spread (over ranks). */
void gp_lua_check_pipeline_spec(lua_State *L, gp_pipeline_spec *spec) {
  luaL_checktype(L, 1, LUA_TTABLE);
  int entries, layers;
  *spec = (gp_pipeline_spec){
      .stage_count = gp_lua_range_field(L, 1, "stages", 1, 1, MOST_STAGES),
      .copy_count = gp_lua_range_field(L, 1, "copies", 1, 1, 2 * GP_MOST_REPLICAS),
      .seed = (uint64_t)gp_lua_int_field(L, 1, "seed", 0),
      .finite = finite_field(L),
      .replicas = gp_lua_range_field(L, 1, "replicas", 1, 1, GP_MOST_REPLICAS),
      .sum_group = gp_lua_range_field(L, 1, "sum_group", 0, 0, INT32_MAX),
      .bucket = (size_t)gp_lua_range_field(L, 1, "bucket", 0, 0, INT32_MAX),
      .most_whole = gp_lua_range_field(L, 1, "most_whole", INT32_MAX, 0, INT32_MAX),
      .unfused = gp_lua_flag_field(L, 1, "unfused"),
      .added = gp_lua_flag_field(L, 1, "added"),
      .tf32 = gp_lua_flag_field(L, 1, "tf32"),
      .streams = gp_lua_flag_field(L, 1, "streams"),
      .spread = gp_lua_flag_field(L, 1, "spread")};
  if (lua_getfield(L, 1, "loss_scale") == LUA_TTABLE)
    spec->loss_scale = gp_lua_scale_fields(L, lua_gettop(L));
  lua_getfield(L, 1, "watchdog");
  spec->watchdog = luaL_optnumber(L, -1, 0);
  lua_getfield(L, 1, "stage_of");
  spec->stage_of = gp_lua_push_ints(L, lua_gettop(L), "stage_of", &layers);
  lua_getfield(L, 1, "placement");
  spec->placement = gp_lua_push_ints(L, lua_gettop(L), "placement", &entries);
  luaL_argcheck(L, entries == spec->stage_count * spec->copy_count, 1,
                "expected a device per stage");
  lua_getfield(L, 1, "param_layer");
  spec->param_layer = gp_lua_push_ints(L, lua_gettop(L), "param_layer", &entries);
  lua_getfield(L, 1, "params");
  spec->params = gp_lua_push_params(L, lua_gettop(L), "pipeline: a parameter", &spec->param_count);
  spec->devices = gp_lua_devices_field(L, &spec->device_count, &spec->hosts);
  spec->layer_count = layers - 1;
  checkpoint_field(L, spec);
  luaL_argcheck(L, entries == spec->param_count, 1, "expected one layer per parameter");
  luaL_argcheck(L, layers > 0, 1, "expected a stage for each layer and for the loss");
  check_below(L, "stage_of", spec->stage_of, layers, spec->stage_count);
  check_below(L, "placement", spec->placement, spec->stage_count * spec->copy_count,
              spec->device_count);
  check_ranks(L, spec);
  check_below(L, "param_layer", spec->param_layer, spec->param_count, layers);
  check_stages(L, spec);
}

/* core.pipeline_new(fields) -> pipeline */
static int pipeline_new(lua_State *L) {
  gp_pipeline_spec spec;
  gp_lua_check_pipeline_spec(L, &spec);
  gp_lua_pipeline *box = lua_newuserdatauv(L, sizeof *box, 1); /* the optimizer in use */
  *box = (gp_lua_pipeline){
      .devices = spec.device_count, .stages = spec.stage_count, .copies = spec.copy_count};
  luaL_setmetatable(L, GP_LUA_PIPELINE);
  gp_status status = gp_pipeline_new(&spec, &box->pipeline);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* ---- plans --------------------------------------------------------------------------------- */

/* A value of the trace being planned. A real tensor means that the model ignores its input, which
 * only its author can correct. */
static gp_ref check_ref(lua_State *L, const char *name, const gp_trace *trace) {
  gp_box *box = gp_lua_check_box(L, lua_gettop(L), name);
  if (!box->trace) gp_lua_error(L, "pipeline: the %s does not depend on the input", name);
  if (box->trace != trace) gp_lua_error(L, "pipeline: the %s is of another trace", name);
  return box->ref;
}

static gp_ref ref_field(lua_State *L, int index, const char *name, const gp_trace *trace) {
  bool given = lua_getfield(L, index, name) != LUA_TNIL;
  gp_ref ref = given ? check_ref(L, name, trace) : GP_NONE;
  lua_pop(L, 1);
  return ref;
}

/* The values in the list of a field. */
static int refs_field(lua_State *L, int index, const char *name, const gp_trace *trace,
                      gp_ref *refs) {
  int type = lua_getfield(L, index, name), list = lua_gettop(L);
  int n = type == LUA_TTABLE ? (int)lua_rawlen(L, list) : 0;
  if (n > GP_MAX_BATCH_TENSORS)
    gp_lua_error(L, "pipeline: the model returns %d values, expected at most %d", n,
                 GP_MAX_BATCH_TENSORS);
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, list, k + 1);
    refs[k] = check_ref(L, "output", trace);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return n;
}

/* {trace, rows, micros, outputs, loss_sum, loss_count, constant_count} */
static void check_plan_shape(lua_State *L, int index, gp_traced_shape *shape) {
  lua_getfield(L, index, "trace");
  const gp_trace *trace = gp_lua_check_trace(L, lua_gettop(L));
  shape->rows = gp_lua_range_field(L, index, "rows", 0, 1, INT32_MAX);
  shape->micros = gp_lua_range_field(L, index, "micros", 0, 1, MOST_STAGES);
  shape->output_count = refs_field(L, index, "outputs", trace, shape->outputs);
  shape->loss_sum = ref_field(L, index, "loss_sum", trace);
  shape->loss_count = ref_field(L, index, "loss_count", trace);
  shape->constant_count = gp_lua_int_field(L, index, "constant_count", 0);
  lua_pop(L, 1);
}

/* Take the traces right before the build, which owns them even if it fails: nothing raises in
 * between. */
static void take_traces(lua_State *L, int shapes, gp_plan_spec *spec) {
  for (int k = 0; k < 2; k++) {
    if (lua_rawgeti(L, shapes, k + 1) == LUA_TTABLE) {
      lua_getfield(L, -1, "trace");
      spec->shapes[k].trace = gp_lua_take_trace(L, lua_gettop(L));
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
}

/* Read field budgets: bytes per device, "selective", or false for a device without one. The stack
 * keeps them. */
static const size_t *budgets_field(lua_State *L, int devices) {
  if (lua_getfield(L, 2, "budgets") != LUA_TTABLE) return NULL;
  const int list = lua_gettop(L);
  luaL_argcheck(L, luaL_len(L, list) >= devices, 2, "budgets: expected one per device");
  size_t *budgets = lua_newuserdatauv(L, ((size_t)devices + 1) * sizeof *budgets, 0);
  for (int d = 0; d < devices; d++) {
    lua_rawgeti(L, list, d + 1);
    budgets[d] = lua_isinteger(L, -1) ? (size_t)lua_tointeger(L, -1) : SIZE_MAX;
    if (lua_type(L, -1) == LUA_TSTRING) budgets[d] = GP_BUDGET_SELECTS;
    lua_pop(L, 1);
  }
  return budgets;
}

/* Read field keeps: a flag per stage. The stack keeps them. */
static const bool *keeps_field(lua_State *L, int stages) {
  if (lua_getfield(L, 2, "keeps") != LUA_TTABLE) return NULL;
  const int list = lua_gettop(L);
  luaL_argcheck(L, luaL_len(L, list) >= stages, 2, "keeps: expected one per stage");
  bool *keeps = lua_newuserdatauv(L, (size_t)stages * sizeof *keeps, 0);
  for (int s = 0; s < stages; s++) {
    lua_rawgeti(L, list, s + 1);
    keeps[s] = lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
  return keeps;
}

/* Read field policy: the mode that the plan follows in place of the pipeline's. The stack keeps
 * it. */
static const gp_remat *policy_field(lua_State *L) {
  if (lua_getfield(L, 2, "policy") != LUA_TSTRING) return NULL;
  const gp_remat named = gp_lua_check_remat(L, -1);
  gp_remat *policy = lua_newuserdatauv(L, sizeof *policy, 0);
  *policy = named;
  return policy;
}

/* Check the fields of argument 2, for the pipeline at argument 1 or for none. No Lua may run
 * between this and the build. */
void gp_lua_check_plan_spec(lua_State *L, bool pipeline, gp_plan_spec *spec) {
  static const char *const kinds[] = {"step", "split", "evaluate", "forward", NULL};
  *spec = (gp_plan_spec){.sum_loss = gp_lua_flag_field(L, 2, "sum_loss")};
  int top = lua_gettop(L), schedule = top + 2, shapes = top + 3;
  lua_getfield(L, 2, "kind");
  spec->kind = (gp_plan_kind)luaL_checkoption(L, top + 1, NULL, kinds);
  lua_getfield(L, 2, "schedule");
  lua_getfield(L, 2, "shapes");
  luaL_checktype(L, shapes, LUA_TTABLE);
  for (int k = 0; k < 2; k++) {
    if (lua_rawgeti(L, shapes, k + 1) == LUA_TTABLE)
      check_plan_shape(L, shapes + 1, &spec->shapes[k]);
    lua_settop(L, shapes);
  }
  if (pipeline) gp_lua_check_pipeline(L);
  spec->schedule = gp_lua_check_schedule(L, schedule);
  spec->budgets = budgets_field(L, gp_schedule_device_count(spec->schedule));
  spec->keeps = keeps_field(L, gp_schedule_stage_count(spec->schedule));
  spec->stays = gp_lua_flag_field(L, 2, "stays");
  spec->whole = gp_lua_flag_field(L, 2, "whole");
  spec->refine = gp_lua_flag_field(L, 2, "refine");
  spec->policy = policy_field(L);
  take_traces(L, shapes, spec);
}

/* p:plan{kind, schedule, shapes = {larger, smaller}, sum_loss, budgets, keeps, stays, whole,
 * refine, policy} -> plan (a light pointer) */
static int pipeline_plan(lua_State *L) {
  gp_plan *plan;
  gp_plan_spec spec;
  gp_lua_check_pipeline(L);
  gp_lua_check_plan_spec(L, true, &spec);
  gp_status status = gp_plan_build(gp_lua_pipeline_box(L)->pipeline, &spec, &plan);
  if (status) return gp_lua_fail(L, status);
  lua_pushlightuserdata(L, plan);
  return 1;
}

/* p:measure{as above, and checkpoint} -> {{bytes, work, grown, host, time}, ...} in the order of
 * the devices */
static int pipeline_measure(lua_State *L) {
  gp_lua_check_pipeline(L);
  int devices = gp_lua_pipeline_box(L)->devices;
  gp_plan_spec spec;
  lua_getfield(L, 2, "checkpoint");
  /* a list is what the pipeline was made with: nothing else can be asked for layer by layer */
  gp_remat mode = lua_istable(L, -1) ? GP_REMAT_BY_LAYER : gp_lua_check_remat(L, -1);
  gp_plan_need *needs = lua_newuserdatauv(L, (size_t)devices * sizeof *needs, 0);
  gp_lua_check_plan_spec(L, true, &spec);
  gp_status status = gp_plan_measure(gp_lua_pipeline_box(L)->pipeline, &spec, mode, needs);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, devices, 0);
  for (int d = 0; d < devices; d++) {
    lua_createtable(L, 0, 5);
    gp_lua_set_int(L, "bytes", (int64_t)needs[d].bytes);
    gp_lua_set_int(L, "work", (int64_t)needs[d].work);
    gp_lua_set_int(L, "grown", (int64_t)needs[d].grown);
    gp_lua_set_int(L, "host", (int64_t)needs[d].host);
    gp_lua_set_number(L, "time", needs[d].time);
    lua_rawseti(L, -2, d + 1);
  }
  return 1;
}

/* p:free_bytes(device from 1) -> bytes; nil if unknown */
static int pipeline_free_bytes(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  int devices = gp_lua_pipeline_box(L)->devices;
  size_t bytes;
  int device = (int)gp_lua_check_int(L, 2, "free_bytes: device", 1, devices);
  gp_status status = gp_pipeline_free_bytes(pipeline, device - 1, &bytes);
  if (status) return gp_lua_fail(L, status);
  if (bytes == SIZE_MAX) return 0;
  lua_pushinteger(L, (lua_Integer)bytes);
  return 1;
}

/* Check a plan. A light pointer has no type, and its plan may have been dropped, so the pipeline is
 * asked whether it is one of its own. A plan without a pipeline lives as long as its object. */
gp_plan *gp_lua_check_plan(lua_State *L, int index) {
  gp_lua_pipeline *apart = luaL_testudata(L, index, GP_LUA_PLAN);
  if (apart && apart->plan && lua_rawequal(L, 1, index)) return apart->plan;
  luaL_checktype(L, index, LUA_TLIGHTUSERDATA);
  gp_plan *plan = lua_touserdata(L, index);
  if (!gp_pipeline_has_plan(gp_lua_check_pipeline(L), plan))
    gp_lua_error(L, "pipeline: the plan was dropped, expected one of this pipeline");
  return plan;
}

/* p:drop(plan) */
static int pipeline_drop(lua_State *L) {
  gp_plan_drop(gp_lua_check_pipeline(L), gp_lua_check_plan(L, 2));
  return 0;
}

/* Push shape and dtype, or nothing if there is none; returns how many values. */
static int push_meta(lua_State *L, const gp_meta *found) {
  if (!found) return 0;
  gp_meta meta = *found;
  lua_createtable(L, meta.shape.rank, 0);
  for (int d = 0; d < meta.shape.rank; d++) {
    lua_pushinteger(L, meta.shape.dim[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_pushstring(L, gp_dtype_name(meta.dtype));
  return 2;
}

/* p:output_shape(plan, k) -> shape of the k-th output of a larger micro-batch, dtype; nothing if
 * there is no such output */
static int pipeline_output_shape(lua_State *L) {
  int k = (int)gp_lua_check_int(L, 3, "output_shape: output", 1, INT32_MAX);
  return push_meta(L, gp_plan_output_meta(gp_lua_check_plan(L, 2), k - 1));
}

/* p:input_grad_shape(plan, k) -> the same for the gradient of the k-th input */
static int pipeline_input_grad_shape(lua_State *L) {
  int k = (int)gp_lua_check_int(L, 3, "input_grad_shape: input", 1, INT32_MAX);
  return push_meta(L, gp_plan_input_grad_meta(gp_lua_check_plan(L, 2), k - 1));
}

/* ---- close --------------------------------------------------------------------------------- */

/* p:close(), also at collection; idempotent */
static int pipeline_close(lua_State *L) {
  gp_lua_pipeline *box = gp_lua_pipeline_box(L);
  gp_pipeline *pipeline = box->pipeline;
  box->pipeline = NULL;
  gp_pipeline_free(pipeline);
  return 0;
}

static const luaL_Reg methods[] = {{"plan", pipeline_plan},
                                   {"measure", pipeline_measure},
                                   {"free_bytes", pipeline_free_bytes},
                                   {"drop", pipeline_drop},
                                   {"output_shape", pipeline_output_shape},
                                   {"input_grad_shape", pipeline_input_grad_shape},
                                   {"close", pipeline_close},
                                   {NULL, NULL}};

int gp_open_pipeline(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_PIPELINE, pipeline_close);
  luaL_newlib(L, methods);
  luaL_setfuncs(L, gp_lua_run_methods, 0);
  luaL_setfuncs(L, gp_lua_record_methods, 0);
  luaL_setfuncs(L, gp_lua_describe_methods, 0);
  luaL_setfuncs(L, gp_lua_scale_methods, 0);
  luaL_setfuncs(L, gp_lua_profile_methods, 0);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, pipeline_new);
  lua_setfield(L, -2, "pipeline_new");
  gp_lua_open_plan(L);
  return 0;
}
