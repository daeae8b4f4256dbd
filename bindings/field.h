/* bindings/field.h - fields of an options table, and lists as arrays that C can read.
 *
 * The Lua layer has checked names and set defaults already; these functions check what would break
 * C: types and ranges. `index` is a table's absolute stack position. */
#ifndef GP_BINDING_FIELD_H
#define GP_BINDING_FIELD_H

#include "binding.h"

/* A missing field is 0, `otherwise` or false. The name of the field is the `who` of errors. */
double gp_lua_number_field(lua_State *L, int index, const char *name);
int64_t gp_lua_int_field(lua_State *L, int index, const char *name, int64_t otherwise);
/* An integer in low..high. */
int gp_lua_range_field(lua_State *L, int index, const char *name, int otherwise, int low, int high);
bool gp_lua_flag_field(lua_State *L, int index, const char *name);

/* Set a field of the table at the top. */
void gp_lua_set_number(lua_State *L, const char *name, double value);
void gp_lua_set_int(lua_State *L, const char *name, int64_t value);
/* An empty value ("") leaves the field out. */
void gp_lua_set_text(lua_State *L, const char *name, const char *value);

/* Push memory with the elements of the list at `index`; it lives as long as it is on the stack.
 * Integers are 0..INT32_MAX; parameters are retained, and the memory owns the references. */
int32_t *gp_lua_push_ints(lua_State *L, int index, const char *who, int *count);
gp_param **gp_lua_push_params(lua_State *L, int index, const char *who, int *count);

/* The parameter at `index`, borrowed until the next object is made in Lua. A plain tensor is
 * refused: it has no gradient and no stage. */
gp_param *gp_lua_check_param(lua_State *L, int index, const char *who);

#endif
