/* bindings/check.c - argument checks: each returns the value, or raises with what is and what was
 * wanted.
 *
 * Strings are not accepted as numbers, and a float with an integer value counts as an integer,
 * because sizes often come from a division. */
#include <string.h>

#include "binding.h"

/* ---- tensors ------------------------------------------------------------------------------- */

gp_box *gp_lua_check_box(lua_State *L, int index, const char *who) {
  gp_box *box = gp_lua_to_box(L, index);
  if (!box) gp_lua_bad_value(L, index, who, "a tensor");
  return gp_lua_check_live(L, box, who);
}

gp_box *gp_lua_check_live(lua_State *L, gp_box *box, const char *who) {
  if (!box->tensor && !box->param && !box->trace)
    gp_lua_error(L, "%s: the tensor was freed, expected a live one", who);
  return box;
}

/* Parameters count as unknown while tracing: a value read now would be frozen into every step. */
gp_box *gp_lua_check_known(lua_State *L, int index, const char *who) {
  gp_box *box = gp_lua_check_box(L, index, who);
  if (box->trace || (box->param && gp_lua_trace(L)))
    gp_lua_error(L,
                 "%s: the value is not known while a layer is being traced: data-dependent "
                 "control flow cannot be pipelined",
                 who);
  return box;
}

gp_meta gp_lua_check_meta(lua_State *L, int index, const char *who) {
  return *gp_box_meta(gp_lua_check_box(L, index, who));
}

/* Make the box before looking at the argument: making it may free what the argument holds. */
gp_tensor *gp_lua_check_tensor(lua_State *L, int index, const char *who) {
  index = lua_absindex(L, index);
  gp_box *held = gp_lua_new_box(L);
  gp_box *box = gp_lua_check_known(L, index, who);
  if (box->tensor) return held->tensor = gp_tensor_retain(box->tensor);
  gp_status status = gp_param_value(box->param, &held->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  return held->tensor;
}

gp_tensor *gp_lua_check_host_tensor(lua_State *L, int index, const char *who) {
  gp_tensor *tensor = gp_lua_check_tensor(L, index, who);
  if (gp_tensor_is_host(tensor)) return tensor;
  gp_box *here = gp_lua_new_box(L);
  gp_status status = gp_tensor_move(tensor, "cpu", &here->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  lua_remove(L, -2);
  return here->tensor;
}

/* No new box: for calls that finish with the tensor before they make anything in Lua. */
gp_tensor *gp_lua_peek_tensor(lua_State *L, int index, const char *who) {
  gp_box *box = gp_lua_check_known(L, index, who);
  return box->tensor ? box->tensor : gp_lua_check_tensor(L, index, who);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* The absolute position of an argument. A missing one becomes nil, or else the text of an error
 * about it would take its place. */
static int argument(lua_State *L, int index) {
  if (index > lua_gettop(L)) lua_settop(L, index);
  return lua_absindex(L, index);
}

/* False for strings, and for floats that are no integers. */
static bool to_integer(lua_State *L, int index, int64_t *value) {
  int good = 0;
  if (lua_type(L, index) == LUA_TNUMBER) *value = lua_tointegerx(L, index, &good);
  return good != 0;
}

/* Push the words for low..high; the text stays on the stack until the error is raised. */
static const char *push_range(lua_State *L, int64_t low, int64_t high) {
  if (high == INT64_MAX) return lua_pushfstring(L, "an integer >= %I", (LUAI_UACINT)low);
  return lua_pushfstring(L, "an integer in %I..%I", (LUAI_UACINT)low, (LUAI_UACINT)high);
}

int64_t gp_lua_check_int(lua_State *L, int index, const char *who, int64_t low, int64_t high) {
  int64_t value = 0;
  index = argument(L, index);
  if (!to_integer(L, index, &value) || value < low || value > high)
    gp_lua_bad_value(L, index, who, push_range(L, low, high));
  return value;
}

/* NaN and infinities pass: what they mean is the caller's to say. */
double gp_lua_check_number(lua_State *L, int index, const char *who) {
  if (lua_type(L, index) != LUA_TNUMBER) gp_lua_bad_value(L, index, who, "a number");
  return lua_tonumber(L, index);
}

int64_t gp_lua_check_position(lua_State *L, int index, const char *who, int64_t size) {
  int64_t value = 0;
  index = argument(L, index);
  bool good = to_integer(L, index, &value);
  if (good && value >= 1 && value <= size) return value - 1;
  if (good && value < 0 && value >= -size) return size + value;
  const char *wanted =
      size == 0 ? "nothing: the size is 0"
                : lua_pushfstring(L, "1..%I or -%I..-1", (LUAI_UACINT)size, (LUAI_UACINT)size);
  return gp_lua_bad_value(L, index, who, wanted);
}

/* A dimension is a position too; a scalar has none. */
int gp_lua_check_dim(lua_State *L, int index, const char *who, int rank) {
  if (rank == 0) gp_lua_error(L, "%s: the tensor is a scalar, it has no dimensions", who);
  return (int)gp_lua_check_position(L, index, who, rank);
}

/* ---- shapes, dtypes, strings --------------------------------------------------------------- */

/* `gp.zeros {dtype = "f64"}` would make a scalar: options belong in a separate table. */
void gp_lua_check_no_names(lua_State *L, int index, const char *who, const char *wanted) {
  index = lua_absindex(L, index);
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TSTRING)
      gp_lua_error(L, "%s has a field '%s', expected %s", who, lua_tostring(L, -1), wanted);
  }
}

/* This uses lua_geti, not rawgeti: a shape may be a table with __index. */
void gp_lua_check_shape(lua_State *L, int index, const char *who, int64_t low, gp_shape *shape) {
  bool table = lua_type(L, index) == LUA_TTABLE;
  if (!table && lua_type(L, index) != LUA_TNUMBER)
    gp_lua_bad_value(L, index, who, "a shape like {32, 128}");
  if (table) gp_lua_check_no_names(L, index, who, "sizes alone, like {32, 128}");
  int64_t rank = table ? (int64_t)lua_rawlen(L, index) : lua_gettop(L) - index + 1;
  if (rank > GP_MAX_RANK)
    gp_lua_error(L, "%s has %I dimensions, expected at most %d", who, (LUAI_UACINT)rank,
                 (int)GP_MAX_RANK);
  shape->rank = (int)rank;
  for (int d = 0; d < shape->rank; d++) {
    if (table) lua_geti(L, index, d + 1);
    shape->dim[d] = gp_lua_check_int(L, table ? -1 : index + d, who, low, INT64_MAX);
    if (table) lua_pop(L, 1);
  }
}

const char *gp_lua_check_string(lua_State *L, int index, const char *who) {
  if (lua_type(L, index) != LUA_TSTRING) gp_lua_bad_value(L, index, who, "a string");
  size_t length; /* C would cut a text at a zero and use another file or device */
  const char *text = lua_tolstring(L, index, &length);
  if (strlen(text) != length) gp_lua_bad_value(L, index, who, "a text without zeros");
  return text;
}

int gp_lua_bad_dtype(lua_State *L, int index, const char *who, const char *wanted) {
  index = lua_absindex(L, index);
  const char *meant = NULL;
  if (gp_lua_push_hook(L, "dtype") == LUA_TFUNCTION) {
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    meant = lua_tostring(L, -1);
  }
  if (meant) wanted = lua_pushfstring(L, "%s (did you mean '%s'?)", wanted, meant);
  return gp_lua_bad_value(L, index, who, wanted);
}

/* One text serves for a wrong type and for an unknown name: it lists all dtypes. */
gp_dtype gp_lua_check_dtype(lua_State *L, int index, const char *who) {
  gp_dtype dtype = GP_F32;
  if (lua_type(L, index) != LUA_TSTRING) gp_lua_bad_value(L, index, who, "a dtype like \"f32\"");
  if (gp_dtype_parse(lua_tostring(L, index), &dtype) != GP_OK)
    gp_lua_bad_dtype(L, index, who, "f32, f64, bf16, f16, i64, i32, u8 or bool");
  return dtype;
}

/* ---- elements ------------------------------------------------------------------------------ */

/* Can an integer dtype hold the value? Nothing wraps silently. */
static bool fits(gp_dtype dtype, int64_t value) {
  if (dtype == GP_I32) return value >= INT32_MIN && value <= INT32_MAX;
  if (dtype == GP_U8) return value >= 0 && value <= UINT8_MAX;
  return true;
}

/* Booleans go into every dtype as 0 and 1; numbers go into bool as "not zero". */
static bool store_here(lua_State *L, int index, gp_tensor *tensor, int64_t at) {
  gp_dtype dtype = gp_tensor_meta(tensor)->dtype;
  int type = lua_type(L, index);
  int64_t value = 0;
  if (type == LUA_TBOOLEAN) {
    gp_tensor_set_int(tensor, at, lua_toboolean(L, index));
    return true;
  }
  if (type != LUA_TNUMBER) return false;
  if (gp_dtype_is_float(dtype)) {
    gp_tensor_set_double(tensor, at, lua_tonumber(L, index));
    return true;
  }
  if (dtype == GP_BOOL)
    value = lua_tonumber(L, index) != 0.0;
  else if (!to_integer(L, index, &value) || !fits(dtype, value))
    return false;
  gp_tensor_set_int(tensor, at, value);
  return true;
}

/* Store in another memory space: into a scalar of the same dtype on the host, which is copied
 * there. Nothing raises while it is held. */
static gp_status store_there(lua_State *L, int index, gp_tensor *tensor, int64_t at, bool *good) {
  gp_tensor *there, *here;
  gp_status status = gp_tensor_element(tensor, at, &there);
  if (status) return status;
  const gp_meta *meta = gp_tensor_meta(there);
  status = gp_tensor_new(meta->dtype, &meta->shape, &here);
  if (!status) {
    *good = store_here(L, index, here, 0);
    if (*good) status = gp_tensor_copy(there, here);
    gp_tensor_free(here);
  }
  gp_tensor_free(there);
  return status;
}

bool gp_lua_try_store(lua_State *L, int index, gp_tensor *tensor, int64_t at) {
  bool good = false;
  if (gp_tensor_is_host(tensor)) return store_here(L, index, tensor, at);
  gp_status status = store_there(L, index, tensor, at, &good);
  if (status) gp_lua_fail(L, status);
  return good;
}

const char *gp_lua_push_wanted(lua_State *L, gp_dtype dtype) {
  if (dtype == GP_BOOL) return lua_pushliteral(L, "true or false");
  if (gp_dtype_is_float(dtype)) return lua_pushliteral(L, "a number");
  return lua_pushfstring(L, "an integer that %s can hold", gp_dtype_name(dtype));
}

void gp_lua_store(lua_State *L, int index, const char *who, gp_tensor *tensor, int64_t at) {
  if (gp_lua_try_store(L, index, tensor, at)) return;
  index = lua_absindex(L, index);
  gp_lua_bad_value(L, index, who, gp_lua_push_wanted(L, gp_tensor_meta(tensor)->dtype));
}

/* Integers keep their 64 bits, and a bool is a Lua boolean: 0 would be true in a condition. */
static void push_here(lua_State *L, const gp_tensor *tensor, int64_t at) {
  gp_dtype dtype = gp_tensor_meta(tensor)->dtype;
  if (dtype == GP_BOOL)
    lua_pushboolean(L, gp_tensor_get_int(tensor, at) != 0);
  else if (gp_dtype_is_float(dtype))
    lua_pushnumber(L, gp_tensor_get_double(tensor, at));
  else
    lua_pushinteger(L, gp_tensor_get_int(tensor, at));
}

/* For a tensor on a GPU, one element is fetched. */
void gp_lua_push_element(lua_State *L, gp_tensor *tensor, int64_t at) {
  gp_tensor *there = NULL, *here = NULL;
  if (gp_tensor_is_host(tensor)) {
    push_here(L, tensor, at);
    return;
  }
  gp_status status = gp_tensor_element(tensor, at, &there);
  if (!status) status = gp_tensor_move(there, "cpu", &here);
  gp_tensor_free(there);
  if (status) gp_lua_fail(L, status);
  push_here(L, here, 0);
  gp_tensor_free(here);
}
