/* ops/replicas/replica_stats.c - mean and variance of channels over the positions of all replicas.
 *
 * Two parts have together the mean and the sum of squared distances of Chan, Golub, LeVeque,
 * "Algorithms for computing the sample variance" (1983), (2.1). Replicas are joined by the tree of
 * gradients (plan/sums.h) over their numbers: the parent of two neighbouring blocks of 2^k replicas
 * is left + right, and the last block may be shorter. A walk through the replicas keeps the blocks
 * that have no right neighbour yet, as a binary counter keeps its digits. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/replicas/infer.h"

#define GP_REAL_SOURCE "ops/replicas/replica_stats.inc"
#include "ops/math/real.h"

static gp_status infer(gp_sig *sig) {
  gp_shape out = {2, {1, 0}};
  GP_TRY(gp_replicas_check(sig, GP_OP_replica_stats, &out.dim[1]));
  for (int k = 0; k < 3; k++) GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &out));
  return GP_OK;
}

GP_REAL_KERNEL(run, join_stats)

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 5 * (double)gp_meta_numel(sig->in[0]));
}

const gp_op_def gp_def_replica_stats = {GP_OP_ROW(replica_stats), .infer = infer, .cost = cost,
                                        .cpu = {.cut = gp_cut_once, .run = run}};
