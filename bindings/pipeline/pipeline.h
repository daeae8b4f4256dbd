/* bindings/pipeline/pipeline.h - the Lua object around a pipeline. */
#ifndef GP_BINDINGS_PIPELINE_H
#define GP_BINDINGS_PIPELINE_H

#include "schedule/schedule_binding.h"
#include "trace/trace_binding.h"

#define GP_LUA_PIPELINE "gpipe.PipelineCore"
#define GP_LUA_PLAN     "gpipe.PlanCore"

/* The object behind gp.pipeline; also behind gp.dry_run, which has a plan instead of a pipeline.
 * The numbers are kept for argument checks. */
typedef struct gp_lua_pipeline {
  gp_pipeline *pipeline;
  gp_plan *plan;
  int devices, stages, copies;
} gp_lua_pipeline;

gp_lua_pipeline *gp_lua_pipeline_box(lua_State *L);  /* of argument 1 */
gp_pipeline *gp_lua_check_pipeline(lua_State *L);    /* a live one */
gp_plan *gp_lua_check_plan(lua_State *L, int index); /* of the pipeline at argument 1 */
/* Read the specs of a pipeline and a plan from the tables at arguments 1 and 2. */
void gp_lua_check_pipeline_spec(lua_State *L, gp_pipeline_spec *spec);
/* Read the field `devices` of argument 1; the stack keeps them, their links to the host and their
 * names. */
const gp_device_spec *gp_lua_devices_field(lua_State *L, int *count, const gp_host_link **hosts);
/* Push the devices that a list describes to a plan without a pipeline. */
const gp_plan_device_spec *gp_lua_push_plan_devices(lua_State *L, int list, int count);
void gp_lua_check_plan_spec(lua_State *L, bool pipeline, gp_plan_spec *spec);
/* Add core.plan_new to the table on top. */
void gp_lua_open_plan(lua_State *L);
extern const luaL_Reg gp_lua_run_methods[], gp_lua_record_methods[], gp_lua_describe_methods[],
    gp_lua_scale_methods[], gp_lua_profile_methods[];

/* The optimizer at index, borrowed; and its groups' hyper-parameters as a list, which is pushed. */
gp_optimizer *gp_lua_check_optimizer(lua_State *L, int index);
const gp_optim_hyper *gp_lua_push_hyper(lua_State *L, int optimizer, int list);

/* Read the fields of a loss scale from the table at index. */
gp_loss_scale gp_lua_scale_fields(lua_State *L, int index);

#endif
