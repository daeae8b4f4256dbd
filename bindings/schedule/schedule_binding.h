/* bindings/schedule/schedule_binding.h - the Lua objects of schedules: lists of actions, verified
 * schedules, simulations. */
#ifndef GP_BINDINGS_SCHEDULE_H
#define GP_BINDINGS_SCHEDULE_H

#include "binding.h"

#define GP_LUA_ROWS       "gpipe.Rows"
#define GP_LUA_SCHEDULE   "gpipe.CheckedSchedule"
#define GP_LUA_SIMULATION "gpipe.Simulated"

/* The lists of actions at index, borrowed. */
gp_rows *gp_lua_check_rows(lua_State *L, int index);
/* Push a box for lists of actions, still empty. */
gp_rows **gp_lua_new_rows(lua_State *L);
/* Push {op, stage, micro, version, begin, finish}, without the numbers that the action lacks. */
void gp_lua_push_timed(lua_State *L, const gp_action *action, double begin, double finish);
/* Push the text of a device's list, or count the actions of the op that is named at index. */
void gp_lua_push_actions(lua_State *L, const gp_action *actions, int count);
void gp_lua_push_count(lua_State *L, int index, const gp_action *actions, int count);
/* Push a box for a verified schedule, still empty. */
gp_schedule **gp_lua_new_schedule(lua_State *L);
/* The verified schedule at index, borrowed. */
gp_schedule *gp_lua_check_schedule(lua_State *L, int index);
/* Push nil, text, check, device and position (from 1; nil: none) of a fault; returns 5. */
int gp_lua_push_fault(lua_State *L, const gp_schedule_fault *fault);
/* The recomputation mode named at index; and push a list of all names. Lua sets the default. */
gp_remat gp_lua_check_remat(lua_State *L, int index);
void gp_lua_push_remats(lua_State *L);
/* The methods of a verified schedule: checks.c and passes.c. */
extern const luaL_Reg gp_lua_schedule_checks[], gp_lua_schedule_passes[];

#endif
