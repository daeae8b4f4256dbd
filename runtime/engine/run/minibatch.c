/* engine/run/minibatch.c - the ring of mini-batches under way: its room, and what a place of it
 * holds.
 *
 * Each mini-batch that the workers are given has a place, which is filled again when every device
 * has run what it held. The ring is made when a plan is made, so that a run allocates nothing.
 */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/tensor.h"
#include "engine/optimizer/optimizer.h"
#include "engine/run/run.h"
#include "engine/state/pipeline.h"

/* ---- room ---------------------------------------------------------------------------------- */

/* Free the arrays of a place; its tensors were released when the mini-batch was over. */
static void free_batch(gp_minibatch *batch) {
  gp_free(batch->blocks);
  gp_free(batch->results);
  gp_free(batch->counts);
  gp_free(batch->rows);
  gp_free(batch->hyper);
  *batch = (gp_minibatch){0};
}

static void free_ring(gp_minibatch *batches, int32_t room) {
  for (int32_t i = 0; batches && i < room; i++) free_batch(&batches[i]);
  gp_free(batches);
}

/* Frees the ring between runs, when it holds no tensors. */
void gp_minibatches_free(gp_pipeline *p) {
  free_ring(p->run.batches, p->run.batch_room);
  p->run.batches = NULL;
  p->run.batch_room = p->run.batch_micros = p->run.batch_groups = 0;
}

/* Allocate the arrays of a place; groups may be 0. */
static gp_status make_batch(gp_minibatch *batch, size_t micros, size_t groups) {
  GP_TRY(gp_alloc_array(micros, sizeof(gp_step_block), (void **)&batch->blocks));
  GP_TRY(gp_alloc_array(micros, sizeof(gp_micro_result), (void **)&batch->results));
  GP_TRY(gp_alloc_array(micros, sizeof(int64_t), (void **)&batch->counts));
  GP_TRY(gp_alloc_array(micros, sizeof(int64_t), (void **)&batch->rows));
  return gp_alloc_array(groups + 1, sizeof(gp_optim_hyper), (void **)&batch->hyper);
}

static gp_status make_ring(gp_minibatch **batches, int32_t room, int32_t micros, int32_t groups) {
  gp_minibatch *made;
  GP_TRY(gp_alloc_array((size_t)room, sizeof(gp_minibatch), (void **)&made));
  gp_status status = GP_OK;
  for (int32_t i = 0; !status && i < room; i++)
    status = make_batch(&made[i], (size_t)micros, (size_t)groups);
  if (status) return free_ring(made, room), status;
  *batches = made;
  return GP_OK;
}

/* Grows the ring if the plan needs more than those before. */
gp_status gp_minibatches_prepare(gp_pipeline *p, const gp_plan *plan) {
  gp_run *run = &p->run;
  int32_t room = gp_plan_batch_room(plan);
  int32_t micros = plan->step_micros * plan->copy_count;
  int32_t groups = p->optimizer ? gp_optimizer_groups(p->optimizer) : 0;
  gp_minibatch *batches;
  if (room <= run->batch_room && micros <= run->batch_micros && groups <= run->batch_groups)
    return GP_OK;
  if (room < run->batch_room) room = run->batch_room;
  if (micros < run->batch_micros) micros = run->batch_micros;
  if (groups < run->batch_groups) groups = run->batch_groups;
  GP_TRY(make_ring(&batches, room, micros, groups));
  gp_minibatches_free(p);
  run->batches = batches;
  run->batch_room = room;
  run->batch_micros = micros;
  run->batch_groups = groups;
  return GP_OK;
}

/* ---- filling a place of the ring ------------------------------------------------------------- */

/* Does the last stage count what losses are divided by? Otherwise the shapes say it. */
static bool is_counted(const gp_plan *plan) { return plan->shapes[0].count != GP_NONE; }

static double constant_inverse(const gp_plan *plan, int32_t first, int32_t size) {
  int64_t count = 0;
  if (is_counted(plan)) return 0;
  for (int32_t i = first; i < first + size; i++)
    count += plan->shapes[gp_plan_shape_of(plan, i)].constant_count;
  return count ? 1.0 / (double)count : 0;
}

/* Fill in the step blocks of mini-batch `step` of the stream. */
static void set_blocks(gp_pipeline *p, const gp_run *run, gp_minibatch *batch, uint32_t step) {
  const gp_plan *plan = run->plan;
  int32_t size = gp_run_group(plan), groups = plan->step_micros / size;
  uint32_t clock = run->backward_half ? p->split_step : run->first_step;
  double inverse = 0; /* of the mini-batch that i belongs to */
  for (int32_t i = 0; i < plan->step_micros; i++) {
    int32_t first = i - i % size, shape = gp_plan_shape_of(plan, i);
    if (i == first) inverse = constant_inverse(plan, first, size);
    /* first_row counts from the begin of what is trained together */
    batch->rows[i] = gp_plan_first_row(plan, i);
    for (int32_t copy = 0; copy < plan->copy_count; copy++) {
      *gp_minibatch_count(plan, batch, i, copy) = plan->shapes[shape].constant_count;
      *gp_minibatch_block(plan, batch, i, copy) =
          (gp_step_block){.seed = p->seed,
                          .step = clock + step * (uint32_t)groups + (uint32_t)(i / size),
                          .rows = plan->shapes[shape].rows,
                          .first_row = batch->rows[i] - gp_plan_first_row(plan, first),
                          .inverse_count = inverse,
                          .scale = p->scaling.scale > 0 ? p->scaling.scale : 1};
    }
  }
}

void gp_minibatch_copy_blocks(const gp_plan *plan, const gp_minibatch *batch,
                              gp_step_block *blocks) {
  const bool counted = is_counted(plan);
  for (int32_t i = 0; i < plan->step_micros * plan->copy_count; i++) {
    const gp_step_block *from = &batch->blocks[i];
    blocks[i] = (gp_step_block){.seed = from->seed,
                                .step = from->step,
                                .rows = from->rows,
                                .first_row = from->first_row,
                                .inverse_count = counted ? 0 : from->inverse_count,
                                .scale = from->scale};
  }
}

/* Describe a tensor of a whole mini-batch. Its first dimension is a multiple of the mini-batch's
 * rows, so row_bytes may cover several of its own rows. */
static gp_rows rows_of(const gp_plan *plan, gp_tensor *tensor) {
  if (!tensor) return (gp_rows){0};
  size_t rows = (size_t)gp_plan_first_row(plan, plan->step_micros);
  return (gp_rows){.tensor = tensor,
                   .data = gp_tensor_data(tensor),
                   .row_bytes = gp_meta_bytes(gp_tensor_meta(tensor)) / rows};
}

/* Retain the tensors: the script may drop them while a stream runs. A single run does the same. */
static void retain(gp_minibatch *batch) {
  for (int i = 0; i < batch->input_count; i++) gp_tensor_retain(batch->inputs[i].tensor);
  for (int i = 0; i < batch->target_count; i++) gp_tensor_retain(batch->targets[i].tensor);
}

void gp_minibatch_release(gp_minibatch *batch) {
  for (int i = 0; i < batch->input_count; i++) gp_tensor_free(batch->inputs[i].tensor);
  for (int i = 0; i < batch->target_count; i++) gp_tensor_free(batch->targets[i].tensor);
  batch->input_count = batch->target_count = 0; /* nothing is retained any more */
}

void gp_minibatch_fill(gp_pipeline *p, gp_minibatch *batch, const gp_run_args *args) {
  const gp_run *run = &p->run;
  batch->input_count = args->input_count;
  batch->target_count = args->target_count;
  for (int i = 0; i < args->input_count; i++)
    batch->inputs[i] = rows_of(run->plan, args->inputs[i]);
  for (int i = 0; i < args->target_count; i++)
    batch->targets[i] = rows_of(run->plan, args->targets[i]);
  for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++) {
    const bool given = k < args->output_count;
    batch->outputs[k] = rows_of(run->plan, given && args->outputs ? args->outputs[k] : NULL);
    batch->out_grads[k] = rows_of(run->plan, given && args->out_grads ? args->out_grads[k] : NULL);
    const bool wanted = k < args->input_count && args->input_grads;
    batch->input_grads[k] = rows_of(run->plan, wanted ? args->input_grads[k] : NULL);
  }
  batch->accumulate = args->accumulate && !args->apart;
  batch->apart = args->accumulate && args->apart;
  if (p->optimizer && args->hyper)
    memcpy(batch->hyper, args->hyper,
           (size_t)gp_optimizer_groups(p->optimizer) * sizeof *batch->hyper);
  set_blocks(p, run, batch, run->given);
  retain(batch);
}

/* ---- what ranks tell each other of it -------------------------------------------------------- */

/* A script that shuffles by the clock gives each rank another batch; the stages would train on rows
 * that do not belong together. */
uint64_t gp_minibatch_hash(const gp_minibatch *batch) {
  uint64_t hash = GP_HASH_START;
  for (int i = 0; i < batch->input_count; i++) hash = gp_tensor_hash(batch->inputs[i].tensor, hash);
  for (int i = 0; i < batch->target_count; i++)
    hash = gp_tensor_hash(batch->targets[i].tensor, hash);
  for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++)
    if (batch->out_grads[k].tensor) hash = gp_tensor_hash(batch->out_grads[k].tensor, hash);
  return hash;
}

/* The same for what is done with its gradients. */
uint64_t gp_minibatch_settings(const gp_pipeline *p, const gp_minibatch *batch) {
  uint64_t hash = gp_hash_word(GP_HASH_START, (uint64_t)(batch->accumulate | batch->apart));
  if (!p->optimizer || !p->run.plan->update) return hash;
  const gp_update_settings own = gp_optimizer_settings(p->optimizer, p, batch->hyper);
  uint64_t clip_norm;
  memcpy(&clip_norm, &p->use.clip_norm, sizeof clip_norm);
  return gp_hash_word(gp_hash_word(hash, clip_norm), own.hash);
}

gp_micro_output gp_micro_output_of(const gp_run *run, int64_t micro) {
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  const int64_t own = micro % run->plan->step_micros;
  return (gp_micro_output){batch->results[own], batch->counts[own]};
}

void gp_micro_output_set(gp_run *run, int64_t micro, const gp_micro_result *loss,
                         const int64_t *count) {
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  const int64_t own = micro % run->plan->step_micros;
  if (loss) batch->results[own] = *loss;
  if (count) batch->counts[own] = *count;
}
