/* ops/replicas/replica_gather.c - what the micro-batches of one number have in all replicas.
 *
 * In a pipeline no kernel runs: the engine copies its own part, sends it to the other replicas and
 * takes theirs in. Elsewhere there is one replica. */
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/infer.h"

#define GP_REAL_SOURCE "ops/replicas/replica_gather.inc"
#include "ops/math/real.h"

static gp_status infer(gp_sig *sig) {
  const gp_attr_replica_gather *a = &sig->attr->replica_gather;
  gp_shape all = {2, {a->replicas, 0}};
  if (a->replicas < 1 || a->rows < 0)
    return gp_fail(GP_ERANGE, "%lld replicas of %lld rows, expected at least 1 of 0 or more",
                   (long long)a->replicas, (long long)a->rows);
  for (int i = 0; i < sig->n_in; i++) all.dim[1] += gp_meta_numel(sig->in[i]);
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &all));
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &(gp_shape){1, {a->replicas}}));
  return gp_infer_out(sig, GP_I64, &(gp_shape){0});
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_attr_replica_gather *a = &call->attr->replica_gather;
  (void)span;
  if (a->replicas != 1)
    return gp_fail(GP_EINVAL, "replica_gather: %lld replicas, expected 1 outside of a pipeline",
                   (long long)a->replicas);
  GP_BY_REAL(call->in[0].meta->dtype, gather)(call);
  return GP_OK;
}

const gp_op_def gp_def_replica_gather = {GP_OP_ROW(replica_gather), .infer = infer,
                                         .cost = gp_cost_copy,
                                         .cpu = {.cut = gp_cut_once, .run = run}};
