/* ops/channels/merge_stats.c - the statistics of a mini-batch from those of its micro-batches, one
 * after the other.
 *
 * The pending statistics lie in a buffer of the layer, which the first micro-batch of a mini-batch
 * starts anew: a mini-batch that broke off leaves nothing behind. Source: Chan, Golub, LeVeque,
 * "Algorithms for computing the sample variance" (1983), (2.1). */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/infer.h"

#define GP_REAL_SOURCE "ops/channels/merge_stats.inc"
#include "ops/math/real.h"

static gp_status infer(gp_sig *sig) {
  const gp_shape pending = {2, {5, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, GP_OP_merge_stats, 0, &pending, -1));
  const int64_t channels = sig->in[0]->shape.dim[1];
  const gp_shape stats = {2, {1, channels}}, running = {1, {channels}};
  for (int i = 1; i < 5; i++)
    GP_TRY(gp_operand_shape(sig, GP_OP_merge_stats, i, i < 3 ? &stats : &running, 0));
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &sig->in[0]->shape));
  return gp_infer_out(sig, GP_I64, &(gp_shape){0});
}

GP_REAL_KERNEL(run, merge)

static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 4 * (double)gp_meta_numel(sig->in[0]));
}

const gp_op_def gp_def_merge_stats = {GP_OP_ROW(merge_stats), .infer = infer, .cost = cost,
                                      .cpu = {.cut = gp_cut_once, .run = run}};
