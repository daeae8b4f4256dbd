/* bindings/ranks.c - the ranks of the job: who this process is, and what all of them collect. */
#include <limits.h>
#include <string.h>

#include "field.h"

/* core.rank_info() -> {rank, count, local, one_host, host} */
static int rank_info(lua_State *L) {
  gp_rank_info info;
  gp_status status = gp_ranks_info(&info);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, 0, 5);
  gp_lua_set_int(L, "rank", info.rank);
  gp_lua_set_int(L, "count", info.count);
  gp_lua_set_int(L, "local", info.local);
  lua_pushboolean(L, info.one_host);
  lua_setfield(L, -2, "one_host");
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

/* The flags of all ranks in a list, which the stack keeps; NULL if there is none. */
static const bool *push_flags(lua_State *L, int list) {
  gp_rank_info info = {.count = 1};
  if (lua_isnoneornil(L, list)) return NULL;
  luaL_checktype(L, list, LUA_TTABLE);
  gp_status status = gp_ranks_info(&info);
  if (status) gp_lua_fail(L, status);
  bool *flags = lua_newuserdatauv(L, (size_t)info.count * sizeof *flags, 0);
  for (int r = 0; r < info.count; r++) {
    lua_rawgeti(L, list, r + 1);
    flags[r] = lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
  return flags;
}

/* core.rank_call(name, where): what the script has called just now; "", "": nothing */
static int rank_call(lua_State *L) {
  gp_ranks_name_call(luaL_checkstring(L, 1), luaL_checkstring(L, 2));
  return 0;
}

/* core.rank_limit(seconds) -> for how long the script of another rank might stay away so far */
static int rank_limit(lua_State *L) {
  double before;
  gp_status status = gp_ranks_set_limit(luaL_checknumber(L, 1), &before);
  if (status) return gp_lua_fail(L, status);
  lua_pushnumber(L, before);
  return 1;
}

/* core.rank_gather(what, text, seconds) -> the texts of all ranks, by rank from 1; seconds: how
 * long to wait for them, 0 (or nothing): until they come */
static int gather(lua_State *L, const bool *to, double seconds) {
  size_t bytes;
  const char *what = gp_lua_check_string(L, 1, "rank_gather: the name of the call");
  const char *text = luaL_checklstring(L, 2, &bytes);
  luaL_argcheck(L, strlen(what) < GP_RANKS_WHAT, 1, "expected a short name");
  held *h = lua_newuserdatauv(L, sizeof *h, 0);
  *h = (held){{0}};
  luaL_setmetatable(L, GP_LUA_PIECES);
  gp_status status = to ? gp_ranks_hand(what, to, text, bytes, &h->pieces)
                        : gp_ranks_gather(what, seconds, text, bytes, &h->pieces);
  if (status) return gp_lua_fail(L, status);
  lua_createtable(L, h->pieces.count, 0);
  for (int r = 0; r < h->pieces.count; r++) {
    lua_pushlstring(L, h->pieces.data[r] ? h->pieces.data[r] : "", h->pieces.bytes[r]);
    lua_rawseti(L, -2, r + 1);
  }
  gp_rank_pieces_free(&h->pieces);
  return 1;
}

static int rank_gather(lua_State *L) { return gather(L, NULL, luaL_optnumber(L, 3, 0)); }

/* core.rank_hand(what, text, to) -> the same, where only the ranks whose flag is set in list `to`
 * get the text of this one, and others get "" */
static int rank_hand(lua_State *L) { return gather(L, push_flags(L, 3), 0); }

/* core.rank_dictate(text): tell it to all other ranks */
static int rank_dictate(lua_State *L) {
  size_t bytes;
  const char *text = luaL_checklstring(L, 1, &bytes);
  gp_status status = gp_ranks_dictate(text, bytes);
  return status ? gp_lua_fail(L, status) : 0;
}

/* core.rank_listen(from) -> the next text that this rank dictates | nil, why there is none */
static int rank_listen(lua_State *L) {
  int from = (int)gp_lua_check_int(L, 1, "rank_listen", 0, INT_MAX);
  char *text = NULL;
  size_t bytes = 0;
  gp_status status = gp_ranks_listen(from, &text, &bytes);
  if (status) return gp_lua_return_failure(L, status);
  lua_pushlstring(L, text ? text : "", bytes);
  gp_rank_text_free(text);
  return 1;
}

/* core.rank_transport() -> "unix", "tcp", "mpi"; "" before the ranks are connected */
static int rank_transport(lua_State *L) {
  lua_pushstring(L, gp_ranks_transport());
  return 1;
}

/* core.rank_remark() -> what was refused while the ranks connected, or "" */
static int rank_remark(lua_State *L) {
  lua_pushstring(L, gp_ranks_remark());
  return 1;
}

/* core.ranks_lost() -> is a rank gone that has not said that it ends, or does one hang? */
static int ranks_lost(lua_State *L) {
  lua_pushboolean(L, gp_ranks_are_lost());
  return 1;
}

/* core.rank_goes_on(there): can the job go on from a checkpoint? */
static int rank_goes_on(lua_State *L) {
  gp_ranks_note_checkpoint(lua_toboolean(L, 1));
  return 0;
}

static int measured(lua_State *L,
                    gp_status (*probe_with)(const gp_rank_probe_spec *, gp_rank_probe *)) {
  enum { MOST_RANKS = 1 << 20, MOST_BYTES = 1 << 30, MOST_ROUNDS = 1 << 20 };
  const gp_rank_probe_spec spec = {
      .from = (int)gp_lua_check_int(L, 1, "rank_probe: from", 0, MOST_RANKS),
      .to = (int)gp_lua_check_int(L, 2, "rank_probe: to", 0, MOST_RANKS),
      .bytes = (size_t)gp_lua_check_int(L, 3, "rank_probe: the bytes", 1, MOST_BYTES),
      .burst = (int)gp_lua_check_int(L, 4, "rank_probe: the burst", 1, MOST_ROUNDS),
      .rounds = (int)gp_lua_check_int(L, 5, "rank_probe: the rounds", 1, MOST_ROUNDS),
      .precision = luaL_optnumber(L, 6, 0),
      .most = luaL_optnumber(L, 7, 0),
      .work = luaL_optnumber(L, 8, 0)};
  gp_rank_probe probe;
  gp_status status = probe_with(&spec, &probe);
  if (status) return gp_lua_fail(L, status);
  lua_pushnumber(L, probe.seconds);
  lua_pushnumber(L, probe.offset);
  lua_pushnumber(L, probe.mean);
  lua_pushnumber(L, probe.work);
  return 4;
}

/* core.rank_probe(from, to, bytes, burst, rounds, precision?, most?, work?) -> seconds, offset,
 * mean, work of messages; all are 0 on all ranks but `from`, and work but at both ends */
static int rank_probe(lua_State *L) { return measured(L, gp_ranks_probe); }

/* core.link_probe: the same of values between CPU devices; the offset is 0 within a host */
static int link_probe(lua_State *L) { return measured(L, gp_link_probe); }

/* core.rank_check() -> true | nil, which rank has ended or is gone */
static int rank_check(lua_State *L) {
  if (gp_ranks_check() == GP_OK) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, gp_error_text());
  return 2;
}

static const luaL_Reg functions[] = {{"rank_info", rank_info},
                                     {"rank_call", rank_call},
                                     {"rank_gather", rank_gather},
                                     {"rank_hand", rank_hand},
                                     {"rank_dictate", rank_dictate},
                                     {"rank_listen", rank_listen},
                                     {"rank_transport", rank_transport},
                                     {"rank_remark", rank_remark},
                                     {"ranks_lost", ranks_lost},
                                     {"rank_goes_on", rank_goes_on},
                                     {"rank_probe", rank_probe},
                                     {"link_probe", link_probe},
                                     {"rank_check", rank_check},
                                     {"rank_limit", rank_limit},
                                     {NULL, NULL}};

int gp_open_ranks(lua_State *L) {
  gp_lua_push_type(L, GP_LUA_PIECES, held_clear);
  lua_pop(L, 1);
  luaL_setfuncs(L, functions, 0);
  return 0;
}
