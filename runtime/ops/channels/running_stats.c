/* ops/channels/running_stats.c - moves a norm's running statistics, in their own memory.
 *
 * move_stats moves them once for every batch that forward sees. merge_stats is for a pipeline whose
 * micro-batches count as one batch: the statistics of the mini-batch so far lie in a buffer of the
 * layer, `pending`, which its first micro-batch starts anew, so a mini-batch that broke off leaves
 * nothing behind. Every micro-batch moves the running values as if it were the last one, from where
 * they were before the mini-batch.
 *
 * One op writes all buffers of a layer. As single ops (differences, products, sums, copies) they
 * are 14, of a few hundred elements each, and a GPU spends its time on launches. Every value is
 * rounded where single ops would round it. Source of merging: Chan, Golub, LeVeque, "Algorithms for
 * computing the sample variance" (1983), (2.1). */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/infer.h"

/* What both ops have among their operands: slots come first (GP_OP_EFFECT). */
enum { RUNNING_MEAN, RUNNING_VARIANCE, BATCHES, PENDING };

/* How far the running values move, and how many positions a batch has. */
typedef struct moving {
  double momentum;
  bool cumulative;
  int64_t rows;
} moving;

#define GP_REAL_SOURCE "ops/channels/running_stats.inc"
#include "ops/math/real.h"

/* Check the slots, and the statistics [1, C] behind them; outputs are the slots. */
static gp_status infer_slots(gp_sig *sig, gp_op op, int slots) {
  GP_TRY(gp_operand_shape(sig, op, RUNNING_MEAN, &(gp_shape){1, {GP_ANY_DIM}}, -1));
  const int64_t channels = sig->in[RUNNING_MEAN]->shape.dim[0];
  const gp_shape running = {1, {channels}}, pending = {2, {5, channels}},
                 stats = {2, {1, channels}};
  GP_TRY(gp_operand_shape(sig, op, RUNNING_VARIANCE, &running, RUNNING_MEAN));
  GP_TRY(gp_operand_shape(sig, op, BATCHES, &(gp_shape){0}, -1));
  if (slots > PENDING) GP_TRY(gp_operand_shape(sig, op, PENDING, &pending, RUNNING_MEAN));
  for (int i = slots; i < slots + 2; i++)
    GP_TRY(gp_operand_shape(sig, op, i, &stats, RUNNING_MEAN));
  for (int k = 0; k < slots; k++) sig->out[k] = *sig->in[k];
  sig->n_out = slots;
  return GP_OK;
}

/* Slots are read and written. */
static gp_cost cost(const gp_sig *sig) {
  return gp_cost_of(sig, 8 * (double)gp_meta_numel(sig->in[RUNNING_MEAN]));
}

/* ---- once for every batch -------------------------------------------------------------------- */

static gp_status infer_move(gp_sig *sig) { return infer_slots(sig, GP_OP_move_stats, PENDING); }

GP_REAL_KERNEL(run_move, move)

const gp_op_def gp_def_move_stats = {GP_OP_ROW(move_stats), .infer = infer_move, .cost = cost,
                                     .cpu = {.cut = gp_cut_once, .run = run_move}};

/* ---- once for every mini-batch --------------------------------------------------------------- */

static gp_status infer_merge(gp_sig *sig) {
  return infer_slots(sig, GP_OP_merge_stats, PENDING + 1);
}

GP_REAL_KERNEL(run_merge, merge)

const gp_op_def gp_def_merge_stats = {GP_OP_ROW(merge_stats), .infer = infer_merge, .cost = cost,
                                      .cpu = {.cut = gp_cut_once, .run = run_merge}};
