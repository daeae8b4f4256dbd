/* bindings/ranks.c - the ranks of the job: who this process is, and what all of them collect. */
#include <string.h>

#include "field.h"

/* core.rank_info() -> {rank, count, local, host} */
static int rank_info(lua_State *L) {
  gp_rank_info info;
  gp_status status = gp_ranks_info(&info);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, 0, 4);
  gp_lua_set_int(L, "rank", info.rank);
  gp_lua_set_int(L, "count", info.count);
  gp_lua_set_int(L, "local", info.local);
  lua_pushstring(L, info.host);
  lua_setfield(L, -2, "host");
  return 1;
}

/* Gives the pieces back, also when Lua has no memory for their texts. */
typedef struct held {
  gp_rank_pieces pieces;
} held;

static int held_clear(lua_State *L) {
  held *h = lua_touserdata(L, 1);
  gp_rank_pieces_free(&h->pieces);
  return 0;
}

#define GP_LUA_PIECES "gpipe.RankPieces"

/* core.rank_gather(what, text, seconds) -> the texts of all ranks, by rank from 1; seconds: how
 * long to wait for them, 0 (or nothing): until they come */
static int rank_gather(lua_State *L) {
  size_t bytes;
  const char *what = gp_lua_check_string(L, 1, "rank_gather: the name of the call");
  const char *text = luaL_checklstring(L, 2, &bytes);
  const double seconds = luaL_optnumber(L, 3, 0);
  luaL_argcheck(L, strlen(what) < GP_RANKS_WHAT, 1, "expected a short name");
  held *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (held){{0}};
  luaL_setmetatable(L, GP_LUA_PIECES);
  gp_status status = gp_ranks_gather(what, seconds, text, bytes, &h->pieces);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, h->pieces.count, 0);
  for (int r = 0; r < h->pieces.count; r++) {
    lua_pushlstring(L, h->pieces.data[r] ? h->pieces.data[r] : "", h->pieces.bytes[r]);
    lua_rawseti(L, -2, r + 1);
  }
  gp_rank_pieces_free(&h->pieces);
  return 1;
}

/* core.rank_probe(from, to, bytes, burst, rounds) -> seconds, offset; 0, 0 on all ranks but `from`
 * */
static int rank_probe(lua_State *L) {
  enum { MOST_RANKS = 1 << 20, MOST_BYTES = 1 << 30, MOST_ROUNDS = 1 << 20 };
  const gp_rank_probe_spec spec = {
      .from = (int)gp_lua_check_int(L, 1, "rank_probe: from", 0, MOST_RANKS),
      .to = (int)gp_lua_check_int(L, 2, "rank_probe: to", 0, MOST_RANKS),
      .bytes = (size_t)gp_lua_check_int(L, 3, "rank_probe: the bytes", 1, MOST_BYTES),
      .burst = (int)gp_lua_check_int(L, 4, "rank_probe: the burst", 1, MOST_ROUNDS),
      .rounds = (int)gp_lua_check_int(L, 5, "rank_probe: the rounds", 1, MOST_ROUNDS)};
  gp_rank_probe probe;
  gp_status status = gp_ranks_probe(&spec, &probe);
  if (status) return gp_lua_fail(L, status);
  lua_pushnumber(L, probe.seconds);
  lua_pushnumber(L, probe.offset);
  return 2;
}

/* core.rank_check() -> true | nil, which rank has ended or is gone */
static int rank_check(lua_State *L) {
  if (gp_ranks_check() == GP_OK) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  return 2;
}

int gp_open_ranks(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_PIECES, held_clear);
  lua_pop(L, 1);
  lua_pushcfunction(L, rank_info);
  lua_setfield(L, -2, "rank_info");
  lua_pushcfunction(L, rank_gather);
  lua_setfield(L, -2, "rank_gather");
  lua_pushcfunction(L, rank_probe);
  lua_setfield(L, -2, "rank_probe");
  lua_pushcfunction(L, rank_check);
  lua_setfield(L, -2, "rank_check");
  return 0;
}
