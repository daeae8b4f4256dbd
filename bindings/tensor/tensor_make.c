/* bindings/tensor/tensor_make.c - makes tensors: from numbers and nested tables, filled, counted,
 * drawn.
 *
 * These are functions of the core table; lua/gpipe/tensor/create.lua gives them options and
 * defaults. A nested table is walked twice: once along its first elements for the shape, once to
 * fill. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

/* ---- from tables --------------------------------------------------------------------------- */

/* A walk through a nested table; position[] is where it has got to, for error texts. */
typedef struct table_walk {
  const char *who;
  gp_tensor *tensor;
  gp_shape shape;
  int64_t position[GP_MAX_RANK]; /* from 1, of the elements around the current one */
  int64_t at;                    /* flat position of the next element */
} table_walk;

/* Push "gp.tensor: element [2][3]" for the first `depth` positions. */
static const char *push_path(lua_State *L, const table_walk *walk, int depth) {
  if (depth == 0) return lua_pushfstring(L, "%s: the value", walk->who);
  char text[GP_MAX_RANK * 24] = "";
  for (int d = 0; d < depth; d++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "[%" PRId64 "]", walk->position[d]);
  }
  return lua_pushfstring(L, "%s: element %s", walk->who, text);
}

/* Follow first elements down from the value on top, and replace it by the first leaf. */
static void find_shape(lua_State *L, table_walk *walk) {
  while (lua_type(L, -1) == LUA_TTABLE) {
    if (walk->shape.rank == GP_MAX_RANK)
      gp_lua_error(L, "%s: the table is nested deeper than %d levels, expected at most as many",
                   walk->who, (int)GP_MAX_RANK);
    int64_t size = (int64_t)lua_rawlen(L, -1);
    if (size == 0) gp_lua_check_no_names(L, -1, walk->who, "values alone");
    walk->shape.dim[walk->shape.rank++] = size;
    lua_rawgeti(L, -1, 1);
    lua_replace(L, -2);
    if (size == 0) return;
  }
}

/* Store the value at `index`, an element at the innermost depth. */
static void fill_element(lua_State *L, table_walk *walk, int index) {
  if (gp_lua_try_store(L, index, walk->tensor, walk->at++)) return;
  const char *path = push_path(L, walk, walk->shape.rank);
  if (lua_type(L, index) == LUA_TTABLE)
    gp_lua_error(L, "%s is a table, expected a number (the table is ragged)", path);
  gp_lua_bad_value(L, index, path, gp_lua_push_wanted(L, gp_tensor_meta(walk->tensor)->dtype));
}

/* Check that a table has the length of the first one at its depth. */
static void check_row(lua_State *L, const table_walk *walk, int index, int depth) {
  int64_t size = walk->shape.dim[depth];
  if (lua_type(L, index) != LUA_TTABLE) {
    const char *path = push_path(L, walk, depth);
    gp_lua_bad_value(L, index, path, lua_pushfstring(L, "a table of %I values", (LUAI_UACINT)size));
  }
  int64_t found = (int64_t)lua_rawlen(L, index);
  if (found != size)
    gp_lua_error(L, "%s has %I values, expected %I (the table is ragged)",
                 push_path(L, walk, depth), (LUAI_UACINT)found, (LUAI_UACINT)size);
}

/* Fill from the value on top of the stack, row-major. */
static void fill_walk(lua_State *L, table_walk *walk, int depth) {
  int index = lua_gettop(L);
  if (depth == walk->shape.rank) {
    fill_element(L, walk, index);
    return;
  }
  check_row(L, walk, index, depth);
  for (int64_t i = 1; i <= walk->shape.dim[depth]; i++) {
    walk->position[depth] = i;
    lua_rawgeti(L, index, i);
    fill_walk(L, walk, depth + 1);
    lua_pop(L, 1);
  }
}

void gp_lua_push_table(lua_State *L, int index, const char *who, gp_dtype dtype) {
  table_walk walk = {.who = who};
  luaL_checkstack(L, GP_MAX_RANK + 8, "nested table");
  lua_pushvalue(L, index);
  lua_pushvalue(L, -1);
  find_shape(L, &walk);
  if (dtype == GP_DTYPE_COUNT) dtype = lua_type(L, -1) == LUA_TBOOLEAN ? GP_BOOL : GP_F32;
  lua_pop(L, 1);
  gp_box *box = gp_lua_new_box(L);
  gp_status status = gp_tensor_new(dtype, &walk.shape, &box->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  walk.tensor = box->tensor;
  lua_insert(L, -2);
  fill_walk(L, &walk, 0);
  lua_pop(L, 1);
}

/* core.tensor(x, dtype or nil) -> tensor */
static int make_tensor(lua_State *L) {
  gp_dtype dtype =
      lua_isnoneornil(L, 2) ? GP_DTYPE_COUNT : gp_lua_check_dtype(L, 2, "gp.tensor: dtype");
  gp_lua_push_table(L, 1, "gp.tensor", dtype);
  return 1;
}

/* ---- filled and counted -------------------------------------------------------------------- */

/* Push a new tensor of zeros. */
static gp_tensor *push_new(lua_State *L, gp_dtype dtype, const gp_shape *shape) {
  gp_box *box = gp_lua_new_box(L);
  gp_status status = gp_tensor_new(dtype, shape, &box->tensor);
  if (status == GP_ENOMEM) {
    lua_gc(L, LUA_GCCOLLECT); /* garbage may hold what is missing */
    status = gp_tensor_new(dtype, shape, &box->tensor);
  }
  if (status != GP_OK) gp_lua_fail(L, status);
  return box->tensor;
}

/* core.full(who, shape, value, dtype) -> tensor */
static int make_full(lua_State *L) {
  gp_shape shape = {0};
  lua_settop(L, 4);
  const char *who = gp_lua_check_string(L, 1, "core.full: who");
  gp_dtype dtype = gp_lua_check_dtype(L, 4, who);
  gp_lua_check_shape(L, 2, lua_pushfstring(L, "%s: shape", who), 0, &shape);
  gp_tensor *tensor = push_new(L, dtype, &shape);
  int made = lua_gettop(L);
  bool zero = lua_isinteger(L, 3) && lua_tointeger(L, 3) == 0; /* new tensors are zero already */
  if (!zero) gp_lua_copy_into(L, tensor, 3, who);
  lua_settop(L, made);
  return 1;
}

/* The number of positions first, first + step .. last. The small allowance keeps `last` if a step
 * such as 0.1 is not exact. */
static int64_t count_steps(double first, double last, double step) {
  double steps = floor((last - first) / step + 1e-9);
  return steps < 0 ? 0 : (int64_t)steps + 1;
}

/* core.arange(first, last, step, dtype) -> [count] */
static int make_arange(lua_State *L) {
  double first = gp_lua_check_number(L, 1, "gp.arange: first");
  double last = gp_lua_check_number(L, 2, "gp.arange: last");
  double step = gp_lua_check_number(L, 3, "gp.arange: step");
  gp_dtype dtype = gp_lua_check_dtype(L, 4, "gp.arange: dtype");
  if (step == 0.0 || !isfinite(first) || !isfinite(last) || !isfinite(step))
    return gp_lua_error(L,
                        "gp.arange: %f, %f, %f are first, last, step; expected finite numbers "
                        "and a step that is not 0",
                        first, last, step);
  if ((last - first) / step > 1e15) return gp_lua_error(L, "gp.arange: too many elements");
  int64_t count = count_steps(first, last, step);
  gp_tensor *tensor = push_new(L, dtype, &(gp_shape){.rank = 1, .dim = {count}});
  /* Integers are counted as integers: doubles lose bits above 2^53. */
  bool whole = lua_isinteger(L, 1) && lua_isinteger(L, 3);
  for (int64_t i = 0; i < count; i++) {
    if (whole)
      lua_pushinteger(L, lua_tointeger(L, 1) + i * lua_tointeger(L, 3));
    else
      lua_pushnumber(L, first + (double)i * step);
    gp_lua_store(L, -1, "gp.arange: an element", tensor, i);
    lua_pop(L, 1);
  }
  return 1;
}

/* ---- random -------------------------------------------------------------------------------- */

static void check_drawn(lua_State *L, const char *who, gp_dtype dtype) {
  if (!gp_dtype_is_float(dtype))
    gp_lua_error(L, "%s: dtype is %s, expected f32, f64, bf16 or f16", who, gp_dtype_name(dtype));
}

/* Cast a drawn value, on top of the stack, to halves: these are drawn in f32. */
static int cast_drawn(lua_State *L, gp_dtype dtype) {
  if (dtype == GP_F64 || dtype == GP_F32) return 1;
  gp_lua_call cast = {.op = GP_OP_cast, .n_in = 1, .in = {lua_gettop(L)}};
  cast.attrs.cast.dtype = dtype;
  gp_lua_apply(L, &cast);
  return 1;
}

/* core.random(who, shape, "uniform" | "normal", dtype, seed, stream) -> tensor: U[0, 1) or N(0,
 * 1) */
static int make_random(lua_State *L) {
  gp_shape shape = {0};
  const char *who = gp_lua_check_string(L, 1, "core.random: who");
  lua_settop(L, 6);
  gp_dtype dtype = gp_lua_check_dtype(L, 4, who);
  uint64_t seed = (uint64_t)gp_lua_check_int(L, 5, "seed", INT64_MIN, INT64_MAX);
  uint64_t stream = (uint64_t)gp_lua_check_int(L, 6, "stream", 0, INT64_MAX);
  bool normal = strcmp(gp_lua_check_string(L, 3, "core.random: kind"), "normal") == 0;
  gp_lua_check_shape(L, 2, lua_pushfstring(L, "%s: shape", who), 0, &shape);
  check_drawn(L, who, dtype);
  gp_init init = {normal ? GP_INIT_NORMAL : GP_INIT_UNIFORM, 0.0, 1.0};
  gp_tensor *drawn = push_new(L, dtype == GP_F64 ? GP_F64 : GP_F32, &shape);
  gp_status status = gp_tensor_fill(drawn, &init, seed, stream);
  if (status != GP_OK) return gp_lua_fail(L, status);
  return cast_drawn(L, dtype);
}

/* core.draw(who, shape, "uniform" | "normal", dtype) -> a value that every step draws anew; only
 * while tracing */
static int record_draw(lua_State *L) {
  gp_shape shape = {0};
  const char *who = gp_lua_check_string(L, 1, "core.draw: who");
  const bool normal = strcmp(gp_lua_check_string(L, 3, "core.draw: kind"), "normal") == 0;
  const gp_dtype dtype = gp_lua_check_dtype(L, 4, who);
  gp_lua_check_shape(L, 2, lua_pushfstring(L, "%s: shape", who), 0, &shape);
  check_drawn(L, who, dtype);
  gp_lua_call draw = {.op = normal ? GP_OP_randn : GP_OP_rand};
  draw.attrs.rand = (gp_attr_rand){dtype == GP_F64 ? GP_F64 : GP_F32, shape};
  gp_lua_apply(L, &draw);
  return cast_drawn(L, dtype);
}

/* core.eager_seed(seed): seed the random ops that run at once (dropout in the REPL) */
static int eager_seed(lua_State *L) {
  gp_eager_seed((uint64_t)gp_lua_check_int(L, 1, "gp.seed", INT64_MIN, INT64_MAX));
  return 0;
}

/* core.eager_clock([clock]) -> number of random ops that ran at once since the seed was set; sets
 * it */
static int eager_clock(lua_State *L) {
  gp_random_state state = gp_eager_random();
  lua_Integer clock = state.clock;
  if (!lua_isnoneornil(L, 1)) clock = gp_lua_check_int(L, 1, "eager_clock", 0, UINT32_MAX);
  state.clock = (uint32_t)clock;
  gp_eager_set_random(state);
  lua_pushinteger(L, clock);
  return 1;
}

static const luaL_Reg functions[] = {{"tensor", make_tensor},      {"full", make_full},
                                     {"arange", make_arange},      {"random", make_random},
                                     {"draw", record_draw},        {"eager_seed", eager_seed},
                                     {"eager_clock", eager_clock}, {NULL, NULL}};

int gp_open_make(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
