/* ops/replicas/replica_sums.c - sums over the rows of all replicas, as the gradient of a norm needs
 * them, added by the tree of replica_stats.c. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/replicas/infer.h"

#define GP_REAL_SOURCE "ops/replicas/replica_sums.inc"
#include "ops/math/real.h"

static gp_status infer(gp_sig *sig) {
  gp_shape out = {3, {2, 1, 0}};
  GP_TRY(gp_replicas_check(sig, GP_OP_replica_sums, &out.dim[2]));
  return gp_infer_out(sig, sig->in[0]->dtype, &out);
}

GP_REAL_KERNEL(run, join_sums)

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, (double)gp_meta_numel(sig->in[0]));
}

const gp_op_def gp_def_replica_sums = {GP_OP_ROW(replica_sums), .infer = infer, .cost = cost,
                                       .cpu = {.cut = gp_cut_once, .run = run}};
