/* bindings/data/gather.c - makes batches from data in memory: gpipe.data calls it once per batch.
 *
 * Positions count from 1, as everywhere in Lua: a list of integers or an i64 tensor. */
#include "binding.h"

/* Push a fresh i64 tensor of n elements. */
static gp_tensor *push_positions(lua_State *L, int64_t n) {
  gp_shape shape = {.rank = 1, .dim = {n}};
  gp_box *box = gp_lua_new_box(L);
  gp_status status = gp_tensor_new(GP_I64, &shape, &box->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  return box->tensor;
}

static void check_limit(lua_State *L, const char *who, int64_t at, int64_t limit) {
  if (at < 1 || at > limit)
    gp_lua_error(L, "%s: position %I, expected 1 to %I", who, (LUAI_UACINT)at, (LUAI_UACINT)limit);
}

/* Push the positions at `index`, each in 1..limit, as a tensor of positions from 0. */
static gp_tensor *check_positions(lua_State *L, int index, const char *who, int64_t limit) {
  bool list = lua_type(L, index) == LUA_TTABLE;
  gp_tensor *from = list ? NULL : gp_lua_check_host_tensor(L, index, who);
  if (from && (gp_tensor_meta(from)->dtype != GP_I64 || gp_tensor_meta(from)->shape.rank != 1))
    gp_lua_bad_value(L, index, who, "a list of positions or an i64 tensor of one dimension");
  int64_t n = list ? (int64_t)lua_rawlen(L, index) : gp_tensor_numel(from);
  gp_tensor *to = push_positions(L, n);
  for (int64_t i = 0; i < n; i++) {
    if (list) lua_rawgeti(L, index, i + 1);
    int64_t at =
        list ? gp_lua_check_int(L, lua_gettop(L), who, 1, INT64_MAX) : gp_tensor_get_int(from, i);
    if (list) lua_pop(L, 1);
    check_limit(L, who, at, limit);
    gp_tensor_set_int(to, i, at - 1);
  }
  return to;
}

static int64_t first_dim(const gp_tensor *tensor) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  return meta->shape.rank ? meta->shape.dim[0] : 0;
}

/* core.gather_rows(tensor, positions) -> the rows in the order of the positions */
static int gather_rows(lua_State *L) {
  gp_tensor *tensor = gp_lua_check_host_tensor(L, 1, "gather_rows: the data");
  gp_tensor *positions = check_positions(L, 2, "gather_rows", first_dim(tensor));
  gp_status status = gp_data_rows(tensor, positions, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.gather_windows(bytes, starts, context, width) -> x, y (i64 [n, context]): x has ids start ..
 * start + context - 1, each of `width` bytes (default 1), y those one further */
static int gather_windows(lua_State *L) {
  int64_t width = lua_isnoneornil(L, 4) ? 1 : gp_lua_check_int(L, 4, "gather_windows: width", 1, 4);
  int64_t context = gp_lua_check_int(L, 3, "gather_windows: context", 1, INT64_MAX);
  gp_tensor *bytes = gp_lua_check_host_tensor(L, 1, "gather_windows: the data");
  gp_tensor *starts = check_positions(L, 2, "gather_windows", first_dim(bytes) / width - context);
  gp_box *x = gp_lua_new_box(L), *y = gp_lua_new_box(L);
  gp_status status = gp_data_windows(bytes, (int)width, starts, context, &x->tensor, &y->tensor);
  return status == GP_OK ? 2 : gp_lua_fail(L, status);
}

/* core.join_bytes{u8 tensor, ...} -> u8 tensor */
static int join_bytes(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  size_t count = lua_rawlen(L, 1);
  gp_box *joined = gp_lua_new_box(L);
  gp_tensor **parts = lua_newuserdatauv(L, (count + 1) * sizeof *parts, 0);
  for (size_t i = 0; i < count; i++) { /* nothing is made in Lua from here on */
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    gp_box *box = gp_lua_check_box(L, -1, "join_bytes: a part");
    if (!box->tensor) gp_lua_bad_value(L, lua_gettop(L), "join_bytes: a part", "a u8 tensor");
    parts[i] = box->tensor;
    lua_pop(L, 1);
  }
  gp_status status = gp_data_join(parts, count, &joined->tensor);
  lua_pop(L, 1);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.permutation(n, seed, stream) -> i64 tensor: 1..n in random order */
static int permutation(lua_State *L) {
  int64_t n = gp_lua_check_int(L, 1, "permutation: n", 0, INT64_MAX);
  int64_t seed = gp_lua_check_int(L, 2, "permutation: seed", INT64_MIN, INT64_MAX);
  int64_t stream = gp_lua_check_int(L, 3, "permutation: stream", INT64_MIN, INT64_MAX);
  gp_tensor *order = push_positions(L, n);
  int64_t *at = gp_tensor_data(order);
  gp_random_permutation(at, n, (uint64_t)seed, (uint64_t)stream);
  for (int64_t i = 0; i < n; i++) at[i]++;
  return 1;
}

static const luaL_Reg functions[] = {{"gather_rows", gather_rows},
                                     {"gather_windows", gather_windows},
                                     {"join_bytes", join_bytes},
                                     {"permutation", permutation},
                                     {NULL, NULL}};

int gp_open_gather(lua_State *L) {
  luaL_setfuncs(L, functions, 0);
  return 0;
}
