/* bindings/tensor/linalg.c - matrix factorizations: gpipe.linalg makes tensors, LAPACK fills them.
 *
 * lua/gpipe/linalg handles shapes, batches and messages to users. */
#include <string.h>

#include "binding.h"

static gp_linalg check_what(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  for (int w = 0; w < GP_LINALG_COUNT; w++)
    if (strcmp(name, gp_linalg_name((gp_linalg)w)) == 0) return (gp_linalg)w;
  gp_lua_bad_value(L, 1, "linalg", "the name of a factorization");
  return GP_LINALG_COUNT;
}

/* core.linalg(name, ...): read and write the tensors that gpipe/linalg.h names -> nothing, or, if a
 * matrix has no answer, its number (from 1) and LAPACK's reason */
static int linalg(lua_State *L) {
  const gp_linalg what = check_what(L);
  const int count = gp_linalg_n_tensors(what);
  gp_tensor *tensors[GP_LINALG_MAX_TENSORS];
  gp_linalg_fault fault = {-1, 0};
  for (int t = 0; t < count; t++) gp_lua_check_known(L, t + 2, "linalg");
  for (int t = 0; t < count; t++) tensors[t] = gp_lua_peek_tensor(L, t + 2, "linalg");
  gp_status status = gp_linalg_run(what, tensors, &fault);
  if (status == GP_OK) return 0;
  if (fault.matrix < 0) return gp_lua_fail(L, status);
  lua_pushinteger(L, fault.matrix + 1);
  lua_pushinteger(L, fault.info);
  return 2;
}

int gp_open_linalg(lua_State *L) {
  lua_pushcfunction(L, linalg);
  lua_setfield(L, -2, "linalg");
  return 0;
}
