/* ops/replicas/infer.h - what the ops that join replicas share: the check of their operands, and
 * the walk through the tree (ops/replicas/replica_stats.c). */
#ifndef GP_OPS_REPLICAS_INFER_H
#define GP_OPS_REPLICAS_INFER_H

#include "ops/infer.h"
#include "ops/replicas/tree.h"

/* Check that in[0] is [R, 2 C] and in[1] is [R], for at least one replica. Errors: GP_ESHAPE. */
static inline gp_status gp_replicas_check(const gp_sig *sig, gp_op op, int64_t *channels) {
  const gp_shape any = {2, {GP_ANY_DIM, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, op, 0, &any, -1));
  const gp_shape *all = &sig->in[0]->shape;
  if (all->dim[0] < 1 || all->dim[1] % 2)
    return gp_fail(GP_ESHAPE, "all is %lldx%lld, expected at least 1 replica, two values a channel",
                   (long long)all->dim[0], (long long)all->dim[1]);
  *channels = all->dim[1] / 2;
  return gp_operand_shape(sig, op, 1, &(gp_shape){1, {all->dim[0]}}, 0);
}

#endif
