/* bindings/sweep/numbers.c - arrays of numbers for densities of many kernels.
 *
 * A suggestion evaluates each of a thousand kernels for every candidate and parameter, which takes
 * milliseconds in Lua. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

#define NUMBERS "gpipe.Numbers"

enum {
  FAR = 6,   /* deviations: less than 1e-8 lies beyond */
  REMOTE = 9 /* deviations: less than 1e-18 lies beyond */
};

static const double ROOT = 0.3989422804014327; /* 1 / sqrt(2 pi) */
static const double SHORT = 0.2;               /* deviations */

typedef struct numbers {
  size_t count;
  double at[];
} numbers;

static numbers *push_numbers(lua_State *L, size_t count) {
  numbers *made = lua_newuserdatauv(L, sizeof *made + count * sizeof(double), 0);
  made->count = count;
  luaL_setmetatable(L, NUMBERS);
  return made;
}

/* The array at `index`, which must have as many numbers as the one at position 1. */
static const numbers *check_like(lua_State *L, int index, size_t count) {
  const numbers *other = luaL_checkudata(L, index, NUMBERS);
  if (other->count != count)
    gp_lua_error(L, "numbers: there are %d, expected %d", (int)other->count, (int)count);
  return other;
}

/* core.numbers(list) -> numbers; core.numbers(count) -> as many zeros */
static int make(lua_State *L) {
  bool zeros = lua_isinteger(L, 1);
  if (!zeros) luaL_checktype(L, 1, LUA_TTABLE);
  size_t count =
      zeros ? (size_t)gp_lua_check_int(L, 1, "numbers: count", 0, INT32_MAX) : lua_rawlen(L, 1);
  numbers *made = push_numbers(L, count);
  if (zeros) memset(made->at, 0, count * sizeof(double));
  for (size_t i = 0; i < count && !zeros; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    made->at[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  return 1;
}

/* ---- kernels ------------------------------------------------------------------------------- */

enum { SHARPEST = 100 }; /* no kernel is narrower than this part of the range */

typedef struct place {
  double at;
  size_t kernel;
} place;

/* Sort by value. Equal values are sorted by kernel, so that the order does not depend on qsort. */
static int compare(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return x->kernel < y->kernel ? -1 : x->kernel > y->kernel;
}

/* Find the width of each kernel: the distance to its farther neighbour. The first and the last use
 * their only neighbour, so that a distant end of the range does not blur them. */
static void find_widths(const place *sorted, size_t count, double low, double high,
                        double *widths) {
  double range = high - low, least = range / fmin(SHARPEST, (double)count + 2);
  for (size_t k = 0; k < count; k++) {
    double x = sorted[k].at;
    double left = k > 0 ? x - sorted[k - 1].at : -1;
    double right = k + 1 < count ? sorted[k + 1].at - x : -1;
    if (count == 1) left = x - low, right = high - x;
    widths[sorted[k].kernel] = fmin(fmax(fmax(left, right), least), range);
  }
}

/* core.kernels(trials, name, is_log, low, high) -> means, widths, scales (1 / width): a kernel
 * around the value of each trial, and one over the whole range after them */
static int kernels(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const char *name = gp_lua_check_string(L, 2, "kernels: name");
  bool is_log = lua_toboolean(L, 3);
  double low = gp_lua_check_number(L, 4, "kernels: low");
  double high = gp_lua_check_number(L, 5, "kernels: high");
  size_t count = lua_rawlen(L, 1);
  numbers *means = push_numbers(L, count + 1);
  numbers *widths = push_numbers(L, count + 1), *scales = push_numbers(L, count + 1);
  place *sorted = lua_newuserdatauv(L, (count + 1) * sizeof *sorted, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    lua_getfield(L, -1, name);
    double value = lua_tonumber(L, -1);
    lua_pop(L, 2);
    means->at[i] = is_log ? log(value) : value;
    sorted[i] = (place){means->at[i], i};
  }
  qsort(sorted, count, sizeof *sorted, compare);
  find_widths(sorted, count, low, high, widths->at);
  means->at[count] = (low + high) / 2;
  widths->at[count] = high - low;
  for (size_t i = 0; i <= count; i++) scales->at[i] = 1 / widths->at[i];
  lua_pop(L, 1);
  return 3;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

/* n:get(i) -> the i-th number, from 1 */
static int get(lua_State *L) {
  const numbers *n = luaL_checkudata(L, 1, NUMBERS);
  int64_t i = gp_lua_check_int(L, 2, "numbers: i", 1, (int64_t)n->count);
  lua_pushnumber(L, n->at[i - 1]);
  return 1;
}

/* n:copy() -> numbers */
static int copy(lua_State *L) {
  const numbers *from = luaL_checkudata(L, 1, NUMBERS);
  numbers *made = push_numbers(L, from->count);
  memcpy(made->at, from->at, from->count * sizeof(double));
  return 1;
}

/* n:add(other): add the other's numbers, in place */
static int add(lua_State *L) {
  numbers *n = luaL_checkudata(L, 1, NUMBERS);
  const numbers *other = check_like(L, 2, n->count);
  for (size_t i = 0; i < n->count; i++) n->at[i] += other->at[i];
  return 0;
}

/* n:add_logs(other): add the logarithms of the other's numbers, in place */
static int add_logs(lua_State *L) {
  numbers *n = luaL_checkudata(L, 1, NUMBERS);
  const numbers *other = check_like(L, 2, n->count);
  for (size_t i = 0; i < n->count; i++) n->at[i] += log(other->at[i]);
  return 0;
}

/* n:add_normal(x, means, scales): add -((x - mean) scale)^2 / 2, in place */
static int add_normal(lua_State *L) {
  numbers *n = luaL_checkudata(L, 1, NUMBERS);
  double x = gp_lua_check_number(L, 2, "numbers: x");
  const numbers *means = check_like(L, 3, n->count), *scales = check_like(L, 4, n->count);
  for (size_t i = 0; i < n->count; i++) {
    double z = (x - means->at[i]) * scales->at[i];
    n->at[i] -= 0.5 * z * z;
  }
  return 0;
}

/* The logarithm of the standard normal distribution's share between a and b >= a. Most intervals
 * are short: for them it uses the density in the middle with the second term of its series. Far out
 * it uses the density at the near end over its distance, which is right to two digits; nothing
 * depends on more there. */
static double log_share(double a, double b) {
  double low = a > 0 ? -b : a, high = a > 0 ? -a : b;
  double width = high - low, z = (low + high) / 2;
  if (low < -FAR && high > FAR) return 0;
  if (width < SHORT && fabs(z) * width < SHORT)
    return log(width * ROOT * (1 + (z * z - 1) * width * width / 24)) - z * z / 2;
  if (high < -REMOTE) return log(ROOT / -high) - high * high / 2;
  double share = 0.5 * (erfc(-high * M_SQRT1_2) - erfc(-low * M_SQRT1_2));
  return log(fmax(share, 1e-300));
}

/* n:add_share(sign, from, to, means, scales): add sign times the logarithm of each normal
 * distribution's share between two points, in place */
static int add_share(lua_State *L) {
  numbers *n = luaL_checkudata(L, 1, NUMBERS);
  double sign = gp_lua_check_number(L, 2, "numbers: sign");
  double from = gp_lua_check_number(L, 3, "numbers: from");
  double to = gp_lua_check_number(L, 4, "numbers: to");
  const numbers *means = check_like(L, 5, n->count), *scales = check_like(L, 6, n->count);
  for (size_t i = 0; i < n->count; i++) {
    double mean = means->at[i], scale = scales->at[i];
    n->at[i] += sign * log_share((from - mean) * scale, (to - mean) * scale);
  }
  return 0;
}

/* n:log_sum() -> the logarithm of the sum of the numbers' exponentials */
static int log_sum(lua_State *L) {
  const numbers *n = luaL_checkudata(L, 1, NUMBERS);
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < n->count; i++) most = fmax(most, n->at[i]);
  for (size_t i = 0; i < n->count; i++) sum += exp(n->at[i] - most);
  lua_pushnumber(L, most + log(sum));
  return 1;
}

static const luaL_Reg methods[] = {{"copy", copy},
                                   {"get", get},
                                   {"add", add},
                                   {"add_logs", add_logs},
                                   {"add_normal", add_normal},
                                   {"add_share", add_share},
                                   {"log_sum", log_sum},
                                   {NULL, NULL}};

static const luaL_Reg functions[] = {{"numbers", make}, {"kernels", kernels}, {NULL, NULL}};

int gp_open_numbers(lua_State *L) {
  luaL_newmetatable(L, NUMBERS);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
