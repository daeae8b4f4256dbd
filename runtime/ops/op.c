/* ops/op.c - the table of ops, made from ops.def, and its lookup by number or by name.
 *
 * The table holds pointers because every definition lives in its op's own file; a row without a
 * definition does not link. */
#include "ops/op.h"

#include <string.h>

#include "base/status.h"

#define GP_OP(name, ...) &gp_def_##name,
static const gp_op_def *const table[] = {
#include "ops/rows.def"
};
#undef GP_OP
_Static_assert(sizeof table / sizeof table[0] == GP_OP_COUNT, "a row for every op");

const gp_op_def *gp_op_get(gp_op op) {
  GP_ASSERT((unsigned)op < GP_OP_COUNT);
  return table[op];
}

const char *gp_op_name(gp_op op) { return (unsigned)op < GP_OP_COUNT ? table[op]->name : "?"; }

gp_status gp_op_find(const char *name, gp_op *op) {
  for (int i = 0; i < GP_OP_COUNT; i++)
    if (strcmp(table[i]->name, name) == 0) {
      *op = (gp_op)i;
      return GP_OK;
    }
  return gp_fail(GP_EINVAL, "op: there is no op named \"%s\"", name);
}
