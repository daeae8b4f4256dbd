/* bindings/data/items.c - items that are made in C, batches of them, loaders. Positions count from
 * 1. */
#include <string.h>

#include "binding.h"

#define ITEMS  "gpipe.Items"
#define LOADER "gpipe.Loader"

enum { PATHS_MOST = 64, LIMIT = 1024 };

typedef struct items_box {
  gp_items *items;
} items_box;

typedef struct loader_box {
  gp_loader *loader;
} loader_box;

static int items_clear(lua_State *L) {
  items_box *box = luaL_checkudata(L, 1, ITEMS);
  gp_items_free(box->items);
  box->items = NULL;
  return 0;
}

/* core.loader_close(loader), and __gc: the loader's threads have ended when this returns */
static int loader_clear(lua_State *L) {
  loader_box *box = luaL_checkudata(L, 1, LOADER);
  gp_loader *loader = box->loader;
  box->loader = NULL;
  gp_loader_free(loader);
  return 0;
}

static items_box *push_items(lua_State *L) {
  items_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (items_box){0};
  luaL_setmetatable(L, ITEMS);
  return box;
}

static gp_items *check_items(lua_State *L, int index) {
  items_box *box = luaL_checkudata(L, index, ITEMS);
  if (!box->items) gp_lua_error(L, "items: they were not opened");
  return box->items;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* core.idx_read(path, rank) -> u8 tensor | nil, message, code */
static int idx_read(lua_State *L) {
  const char *path = gp_lua_check_string(L, 1, "idx: the path");
  int rank = (int)gp_lua_check_int(L, 2, "idx: rank", 1, GP_MAX_RANK);
  gp_status status = gp_idx_read(path, rank, &gp_lua_new_box(L)->tensor);
  return status == GP_OK ? 1 : gp_lua_return_failure(L, status);
}

/* core.cifar_read({path, ...}, fine) -> u8 [N, 3, 32, 32], i64 [N] | nil, message, code */
static int cifar_read(lua_State *L) {
  const char *path[PATHS_MOST];
  luaL_checktype(L, 1, LUA_TTABLE);
  bool fine = lua_toboolean(L, 2);
  size_t count = lua_rawlen(L, 1);
  if (count > PATHS_MOST) gp_lua_error(L, "cifar: more than %d files", PATHS_MOST);
  luaL_checkstack(L, PATHS_MOST + 8, "too many files");
  for (size_t i = 0; i < count; i++) { /* the stack keeps them alive */
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    path[i] = gp_lua_check_string(L, lua_gettop(L), "cifar: a path");
  }
  gp_box *x = gp_lua_new_box(L), *y = gp_lua_new_box(L);
  gp_status status = gp_cifar_read(path, count, fine, &x->tensor, &y->tensor);
  return status == GP_OK ? 2 : gp_lua_return_failure(L, status);
}

/* ---- items ----------------------------------------------------------------------------------- */

/* core.items_rows(x, y) -> items */
static int items_rows(lua_State *L) {
  items_box *box = push_items(L);
  gp_tensor *x = gp_lua_check_host_tensor(L, 1, "items: x");
  gp_tensor *y = gp_lua_check_host_tensor(L, 2, "items: y");
  gp_status status = gp_items_rows(x, y, &box->items);
  lua_pushvalue(L, 3);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* The numbers of a list field; the last one also serves all further channels. */
static void get_channels(lua_State *L, int index, const char *field, float *to) {
  lua_getfield(L, index, field);
  luaL_checktype(L, -1, LUA_TTABLE);
  lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
  for (int c = 0; c < GP_IMAGE_CHANNELS; c++) {
    lua_rawgeti(L, -1, c < count ? c + 1 : count);
    to[c] = (float)gp_lua_check_number(L, lua_gettop(L), field);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static lua_Integer get_integer(lua_State *L, int index, const char *field) {
  lua_getfield(L, index, field);
  lua_Integer value = luaL_optinteger(L, -1, 0);
  lua_pop(L, 1);
  return value;
}

static bool get_flag(lua_State *L, int index, const char *field) {
  lua_getfield(L, index, field);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

/* {size, crop, flip, random_crop, mean = {...}, deviation = {...}}, checked by lua/gpipe/data */
static gp_image_rule check_rule(lua_State *L, int index) {
  luaL_checktype(L, index, LUA_TTABLE);
  gp_image_rule rule = {.size = (int)get_integer(L, index, "size"),
                        .crop = (int)get_integer(L, index, "crop"),
                        .flip = get_flag(L, index, "flip"),
                        .random_crop = get_flag(L, index, "random_crop")};
  get_channels(L, index, "mean", rule.mean);
  get_channels(L, index, "deviation", rule.deviation);
  return rule;
}

/* core.items_pixels(x, y, rule) -> items */
static int items_pixels(lua_State *L) {
  gp_image_rule rule = check_rule(L, 3);
  items_box *box = push_items(L);
  gp_tensor *x = gp_lua_check_host_tensor(L, 1, "images: x");
  gp_tensor *y = gp_lua_check_host_tensor(L, 2, "images: y");
  gp_status status = gp_items_pixels(x, y, &rule, &box->items);
  lua_pushvalue(L, 4);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.items_files({path, ...}, y, rule) -> items */
static int items_files(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  gp_image_rule rule = check_rule(L, 3);
  lua_settop(L, 3);
  items_box *box = push_items(L);
  size_t count = lua_rawlen(L, 1);
  const char **paths = lua_newuserdatauv(L, (count + 1) * sizeof *paths, 0);
  gp_tensor *y = gp_lua_check_host_tensor(L, 2, "images: y");
  if ((size_t)gp_tensor_numel(y) != count) gp_lua_error(L, "images: not a label for each path");
  for (size_t i = 0; i < count; i++) { /* the list keeps them alive */
    if (lua_rawgeti(L, 1, (lua_Integer)i + 1) != LUA_TSTRING)
      gp_lua_error(L, "images: path %I is no string", (LUAI_UACINT)i + 1);
    paths[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  gp_status status = gp_items_files(paths, y, &rule, &box->items);
  lua_pushvalue(L, 4);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* core.items_windows(bytes, width, context, stride, count, path) -> items */
static int items_windows(lua_State *L) {
  gp_windows rule = {
      .width = (int)gp_lua_check_int(L, 2, "windows: width", 1, 4),
      .context = gp_lua_check_int(L, 3, "windows: context", 1, INT64_MAX),
      .stride = gp_lua_check_int(L, 4, "windows: stride", 1, INT64_MAX),
      .count = gp_lua_check_int(L, 5, "windows: count", 1, INT64_MAX),
      .path = lua_isnoneornil(L, 6) ? NULL : gp_lua_check_string(L, 6, "windows: the path")};
  lua_settop(L, 6);
  items_box *box = push_items(L);
  rule.bytes = gp_lua_check_host_tensor(L, 1, "windows: the bytes");
  gp_status status = gp_items_windows(&rule, &box->items);
  lua_pushvalue(L, 7);
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* The part on top of the stack: {items, order or false, base, count} */
static gp_items_part check_part(lua_State *L) {
  int at = lua_gettop(L);
  luaL_checktype(L, at, LUA_TTABLE);
  for (int i = 1; i <= 4; i++) lua_rawgeti(L, at, i);
  gp_items_part part = {.items = check_items(L, at + 1),
                        .base = gp_lua_check_int(L, at + 3, "concat: base", 0, INT64_MAX),
                        .count = gp_lua_check_int(L, at + 4, "concat: count", 1, INT64_MAX)};
  if (lua_toboolean(L, at + 2)) part.order = gp_lua_check_host_tensor(L, at + 2, "concat: order");
  return part;
}

/* core.items_joined{{items, order or false, base, count}, ...} -> items */
static int items_joined(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  items_box *box = push_items(L);
  gp_status status = gp_items_joined_new(&box->items);
  for (lua_Integer i = 1; status == GP_OK && i <= (lua_Integer)lua_rawlen(L, 1); i++) {
    lua_rawgeti(L, 1, i);
    gp_items_part part = check_part(L);
    status = gp_items_joined_add(box->items, &part);
    lua_settop(L, 2);
  }
  return status == GP_OK ? 1 : gp_lua_fail(L, status);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Push the positions of a walk, from 0: base + 1 .. base + count, or base + each of `order`. */
static gp_tensor *push_walk(lua_State *L, int order, int64_t base, int64_t count) {
  gp_shape shape = {.rank = 1, .dim = {count}};
  gp_box *box = gp_lua_new_box(L);
  gp_status status = gp_tensor_new(GP_I64, &shape, &box->tensor);
  if (status != GP_OK) gp_lua_fail(L, status);
  gp_tensor *positions = box->tensor;
  int64_t *at = gp_tensor_data(positions);
  gp_tensor *from = lua_isnil(L, order) ? NULL : gp_lua_check_host_tensor(L, order, "the order");
  if (from && gp_tensor_numel(from) < count) gp_lua_error(L, "batches: the order is too short");
  for (int64_t i = 0; i < count; i++) at[i] = base + (from ? gp_tensor_get_int(from, i) - 1 : i);
  return positions;
}

static gp_items_key check_key(lua_State *L, int index) {
  return (gp_items_key){.seed = (uint64_t)luaL_checkinteger(L, index),
                        .stream = (uint64_t)luaL_checkinteger(L, index + 1)};
}

/* core.items_batch(items, {position, ...}, seed, stream) -> x, y */
static int items_batch(lua_State *L) {
  gp_items *items = check_items(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  gp_items_key key = check_key(L, 3);
  gp_box *list = gp_lua_new_box(L), *x = gp_lua_new_box(L), *y = gp_lua_new_box(L);
  gp_shape shape = {.rank = 1, .dim = {(int64_t)lua_rawlen(L, 2)}};
  gp_status status = gp_tensor_new(GP_I64, &shape, &list->tensor);
  if (status != GP_OK) return gp_lua_fail(L, status);
  for (int64_t i = 0; i < shape.dim[0]; i++) {
    lua_rawgeti(L, 2, i + 1);
    gp_tensor_set_int(list->tensor, i,
                      gp_lua_check_int(L, lua_gettop(L), "position", 1, INT64_MAX) - 1);
    lua_pop(L, 1);
  }
  status = gp_items_batch(items, list->tensor, key, &x->tensor, &y->tensor);
  return status == GP_OK ? 2 : gp_lua_fail(L, status);
}

/* core.loader_new(items, order or nil, base, count, first, size, workers, prefetch, seed, stream)
 * -> loader; first counts from 0 */
static int loader_new(lua_State *L) {
  gp_items *items = check_items(L, 1);
  int64_t base = gp_lua_check_int(L, 3, "batches: base", 0, INT64_MAX);
  int64_t most = lua_isnil(L, 2) ? gp_items_count(items) : INT64_MAX; /* an order may repeat */
  int64_t count = gp_lua_check_int(L, 4, "batches: count", 0, most);
  gp_loader_options options = {.first = gp_lua_check_int(L, 5, "batches: first", 0, INT64_MAX),
                               .size = gp_lua_check_int(L, 6, "batches: n", 1, INT64_MAX / 2),
                               .workers = (int)gp_lua_check_int(L, 7, "batches: workers", 1, LIMIT),
                               .prefetch =
                                   (int)gp_lua_check_int(L, 8, "batches: prefetch", 1, LIMIT),
                               .key = check_key(L, 9)};
  loader_box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (loader_box){0};
  luaL_setmetatable(L, LOADER);
  int at = lua_gettop(L);
  gp_tensor *positions = push_walk(L, 2, base, count);
  gp_status status = gp_loader_new(items, positions, &options, &box->loader);
  if (status != GP_OK) return gp_lua_fail(L, status);
  lua_settop(L, at);
  return 1;
}

/* core.loader_next(loader) -> x, y; nothing at the end */
static int loader_next(lua_State *L) {
  loader_box *box = luaL_checkudata(L, 1, LOADER);
  gp_box *x = gp_lua_new_box(L), *y = gp_lua_new_box(L);
  if (!box->loader) return 0; /* closed */
  gp_status status = gp_loader_next(box->loader, &x->tensor, &y->tensor);
  if (status != GP_OK) return gp_lua_fail(L, status);
  return x->tensor ? 2 : 0;
}

/* core.order_mark(order or nil, base, count) -> integer that identifies the order */
static int order_mark(lua_State *L) {
  int64_t base = luaL_checkinteger(L, 2), count = luaL_checkinteger(L, 3);
  uint64_t mark = 0xcbf29ce484222325u; /* FNV-1a over whole numbers */
  gp_tensor *order = lua_isnil(L, 1) ? NULL : gp_lua_check_host_tensor(L, 1, "the order");
  mark = (mark ^ (uint64_t)base) * 0x100000001b3u;
  for (int64_t i = 0; order && i < count && i < gp_tensor_numel(order); i++)
    mark = (mark ^ (uint64_t)gp_tensor_get_int(order, i)) * 0x100000001b3u;
  lua_pushinteger(L, (lua_Integer)(mark >> 11)); /* exact as a float too, for JSON */
  return 1;
}

static const luaL_Reg functions[] = {{"idx_read", idx_read},
                                     {"cifar_read", cifar_read},
                                     {"items_rows", items_rows},
                                     {"items_pixels", items_pixels},
                                     {"items_files", items_files},
                                     {"items_windows", items_windows},
                                     {"items_joined", items_joined},
                                     {"items_batch", items_batch},
                                     {"loader_new", loader_new},
                                     {"loader_next", loader_next},
                                     {"loader_close", loader_clear},
                                     {"order_mark", order_mark},
                                     {NULL, NULL}};

int gp_open_items(lua_State *L) {
  gp_lua_push_type(L, ITEMS, items_clear);
  gp_lua_push_type(L, LOADER, loader_clear);
  lua_pop(L, 2);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
