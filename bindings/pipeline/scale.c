/* bindings/pipeline/scale.c - the loss scale of a pipeline in f16, read and set. */
#include "pipeline/pipeline.h"

#include "field.h"

gp_loss_scale gp_lua_scale_fields(lua_State *L, int index) {
  return (gp_loss_scale){.scale = gp_lua_number_field(L, index, "scale"),
                         .growth = gp_lua_number_field(L, index, "growth"),
                         .backoff = gp_lua_number_field(L, index, "backoff"),
                         .min = gp_lua_number_field(L, index, "min"),
                         .window = gp_lua_int_field(L, index, "window", 1),
                         .good = gp_lua_int_field(L, index, "good", 0),
                         .skipped = gp_lua_int_field(L, index, "skipped", 0)};
}

/* p:loss_scale() -> {scale, growth, backoff, min, window, good, skipped}; nil if gradients are not
 * scaled */
static int pipeline_loss_scale(lua_State *L) {
  gp_loss_scale s;
  gp_pipeline_loss_scale(gp_lua_check_pipeline(L), &s);
  if (s.scale == 0) return 0;
  lua_createtable(L, 0, 7);
  gp_lua_set_number(L, "scale", s.scale);
  gp_lua_set_number(L, "growth", s.growth);
  gp_lua_set_number(L, "backoff", s.backoff);
  gp_lua_set_number(L, "min", s.min);
  gp_lua_set_int(L, "window", s.window);
  gp_lua_set_int(L, "good", s.good);
  gp_lua_set_int(L, "skipped", s.skipped);
  return 1;
}

/* p:set_loss_scale{scale, growth, backoff, min, window, good, skipped} */
static int pipeline_set_loss_scale(lua_State *L) {
  gp_pipeline *pipeline = gp_lua_check_pipeline(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  gp_loss_scale s = gp_lua_scale_fields(L, 2);
  gp_pipeline_set_loss_scale(pipeline, &s);
  return 0;
}

const luaL_Reg gp_lua_scale_methods[] = {
    {"loss_scale", pipeline_loss_scale}, {"set_loss_scale", pipeline_set_loss_scale}, {NULL, NULL}};
