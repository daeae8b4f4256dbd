/* bindings/pipeline/pipeline.h - the Lua objects around a pipeline: schedules, traces, the pipeline itself. */
#ifndef GP_BINDINGS_PIPELINE_H
#define GP_BINDINGS_PIPELINE_H

#include "binding.h"

#define GP_LUA_TRACE      "gpipe.Trace"
#define GP_LUA_ROWS       "gpipe.Rows"
#define GP_LUA_SCHEDULE   "gpipe.CheckedSchedule"
#define GP_LUA_SIMULATION "gpipe.Simulated"
#define GP_LUA_PIPELINE   "gpipe.PipelineCore"

/* The object behind gp.pipeline. devices is kept for stats(): the runtime does not count them for us. */
typedef struct gp_lua_pipeline {
  gp_pipeline *pipeline;
  int devices;
} gp_lua_pipeline;

gp_lua_pipeline *gp_lua_pipeline_box(lua_State *L);  /* of argument 1 */
gp_pipeline *gp_lua_check_pipeline(lua_State *L);    /* a live one */
gp_plan *gp_lua_check_plan(lua_State *L, int index); /* of the pipeline at argument 1 */
extern const luaL_Reg gp_lua_run_methods[], gp_lua_record_methods[], gp_lua_describe_methods[],
    gp_lua_scale_methods[];

/* The optimizer at index, borrowed; and a list of its groups' hyper-parameters, which it pushes. */
gp_optimizer *gp_lua_check_optimizer(lua_State *L, int index);
const gp_optim_hyper *gp_lua_push_hyper(lua_State *L, int optimizer, int list);

/* The fields of a loss scale in the table at index. */
gp_loss_scale gp_lua_scale_fields(lua_State *L, int index);
/* Another reference to the trace at index. */
gp_trace *gp_lua_take_trace(lua_State *L, int index);
/* The lists of actions at index, borrowed. */
gp_rows *gp_lua_check_rows(lua_State *L, int index);
/* Push {op, stage, micro, version, begin, finish}; numbers that the action lacks are left out. */
void gp_lua_push_timed(lua_State *L, const gp_action *action, double begin, double finish);
/* Push the text of actions. */
void gp_lua_push_actions(lua_State *L, const gp_action *actions, int count);
/* The verified schedule at index, borrowed. */
gp_schedule *gp_lua_check_schedule(lua_State *L, int index);
/* Push nil, text, check, device and position (from 1; nil: none) of a fault; returns 5. */
int gp_lua_push_fault(lua_State *L, const gp_schedule_fault *fault);
/* What can be asked of a verified schedule, as methods: checks.c and comms.c. */
extern const luaL_Reg gp_lua_schedule_checks[], gp_lua_schedule_passes[];
/* Push a box for lists of actions, empty yet. */
gp_rows **gp_lua_new_rows(lua_State *L);

#endif
