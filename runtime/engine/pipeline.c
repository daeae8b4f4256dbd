/* engine/pipeline.c - parameters in stage arenas, workers, plans: the life of a pipeline. */
#include "engine/pipeline.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "base/thread.h"
#include "engine/block.h"
#include "graph/param.h"

enum { ALIGNMENT = 64 };

/* Trainable parameters lie first in an arena, then frozen ones; buffers have their own. */
typedef enum region { TRAINABLE, FROZEN, BUFFER } region;

/* What is never trained needs no gradient and no moments, so it stands apart. */
static region region_of(const gp_param *param) {
  if (gp_param_is_buffer(param)) return BUFFER;
  return gp_param_is_frozen(param) ? FROZEN : TRAINABLE;
}

/* Every parameter starts on a cache line of its own: threads of an update never share one. */
static gp_status padded(const gp_param *param, size_t *bytes) {
  return gp_size_align(gp_meta_bytes(gp_param_meta(param)), ALIGNMENT, bytes);
}

/* ---- arenas -------------------------------------------------------------------------------- */

/* Sizes of the regions of one stage's arena. */
static gp_status measure(const gp_pipeline *p, int32_t stage, size_t sizes[3]) {
  for (int32_t i = 0; i < p->param_count; i++) {
    size_t bytes, *size = &sizes[region_of(p->params[i])];
    if (p->param_stage[i] != stage) continue;
    GP_TRY(padded(p->params[i], &bytes));
    GP_TRY(gp_size_add(*size, bytes, size));
  }
  return GP_OK;
}

/* Draws the first value straight into the arena, or copies the one that is there. */
static gp_status move_in(gp_pipeline *p, int32_t i, const gp_arena *a, size_t at) {
  gp_param *param = p->params[i];
  region r = region_of(param);
  GP_TRY(gp_block_view(r == BUFFER ? a->buffer_memory : a->value_memory, at, param, &p->values[i]));
  GP_TRY(gp_param_move(param, p->values[i]));
  if (r == TRAINABLE) GP_TRY(gp_block_view(a->grad_memory, at, param, &p->grads[i]));
  gp_param_set_grad(param, p->grads[i]);
  return GP_OK;
}

/* One block each for values, gradients and buffers. */
static gp_status make_arena(gp_arena *a, const size_t sizes[3]) {
  size_t value_bytes;
  a->grad_bytes = sizes[TRAINABLE];
  a->buffer_bytes = sizes[BUFFER];
  GP_TRY(gp_size_add(sizes[TRAINABLE], sizes[FROZEN], &value_bytes));
  GP_TRY(gp_block_new(value_bytes, &a->value_memory));
  GP_TRY(gp_block_new(a->grad_bytes, &a->grad_memory));
  GP_TRY(gp_block_new(a->buffer_bytes, &a->buffer_memory));
  if (a->buffer_bytes) GP_TRY(gp_alloc(a->buffer_bytes, (void **)&a->committed));
  a->grads = a->grad_memory ? gp_tensor_data(a->grad_memory) : NULL;
  a->buffers = a->buffer_memory ? gp_tensor_data(a->buffer_memory) : NULL;
  return GP_OK;
}

/* The parameters of a stage in order of declaration, region by region. */
static gp_status fill_arena(gp_pipeline *p, int32_t stage) {
  size_t sizes[3] = {0}, at[3] = {0}, bytes;
  GP_TRY(measure(p, stage, sizes));
  GP_TRY(make_arena(&p->arenas[stage], sizes));
  at[FROZEN] = sizes[TRAINABLE];
  for (int32_t i = 0; i < p->param_count; i++) {
    size_t *offset = &at[region_of(p->params[i])];
    if (p->param_stage[i] != stage) continue;
    GP_TRY(move_in(p, i, &p->arenas[stage], *offset));
    GP_TRY(padded(p->params[i], &bytes));
    *offset += bytes;
  }
  return GP_OK;
}

/* ---- what plans ask for -------------------------------------------------------------------- */

/* Linear: asked while plans are built, not while they run. */
int32_t gp_pipeline_find(const gp_pipeline *p, const gp_param *param) {
  for (int32_t i = 0; i < p->param_count; i++)
    if (p->params[i] == param) return i;
  return -1;
}

/* What plan/ asks: it knows nothing of pipelines. */
static void *value_address(void *context, const gp_param *param) {
  const gp_pipeline *p = context;
  int32_t i = gp_pipeline_find(p, param);
  return i < 0 ? NULL : gp_tensor_data(p->values[i]);
}

/* Kept for the life of the pipeline: every plan of the model will ask for the same ones. */
static gp_status add_extra(gp_pipeline *p, int32_t param, int32_t layer, void **address) {
  size_t n = (size_t)p->extra_count;
  const gp_meta *meta = gp_param_meta(p->params[param]);
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_extra_slot), (void **)&p->extras));
  gp_extra_slot *extra = &p->extras[n];
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &extra->grad));
  extra->param = param;
  extra->layer = layer;
  p->extra_count++;
  *address = gp_tensor_data(extra->grad);
  return GP_OK;
}

/* The main accumulator serves the layer that owns the parameter; other layers get extra ones. */
static gp_status slot_address(void *context, gp_param *param, int32_t layer, void **address) {
  gp_pipeline *p = context;
  int32_t i = gp_pipeline_find(p, param);
  if (i < 0 || !p->grads[i])
    return gp_fail(GP_EINVAL, "a parameter that is not part of the model needs a gradient");
  if (layer == p->main_layer[i]) return *address = gp_tensor_data(p->grads[i]), GP_OK;
  for (int32_t x = 0; x < p->extra_count; x++)
    if (p->extras[x].param == i && p->extras[x].layer == layer)
      return *address = gp_tensor_data(p->extras[x].grad), GP_OK;
  return add_extra(p, i, layer, address);
}

/* One copy per (parameter, stage): stages run at once and each makes its own. */
static gp_status packed_address(void *context, gp_param *param, int32_t stage, void **address) {
  gp_pipeline *p = context;
  int32_t index = gp_pipeline_find(p, param);
  for (int32_t i = 0; i < p->pack_count; i++)
    if (p->packs[i].param == index && p->packs[i].stage == stage)
      return *address = gp_tensor_data(p->packs[i].copy), GP_OK;
  const gp_meta *meta = gp_param_meta(param);
  size_t n = (size_t)p->pack_count;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_packed), (void **)&p->packs));
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &p->packs[n].copy));
  p->packs[n].param = index;
  p->packs[n].stage = stage;
  p->pack_count++;
  *address = gp_tensor_data(p->packs[n].copy);
  return GP_OK;
}

/* The workers make room for it now, so that running it allocates nothing. */
gp_status gp_plan_build(gp_pipeline *p, const gp_plan_spec *spec, gp_plan **plan) {
  gp_plan_env env = {.context = p,
                     .value = value_address,
                     .slot = slot_address,
                     .packed = packed_address,
                     .stage_of = p->stage_of,
                     .layer_count = p->layer_count,
                     .stage_count = p->stage_count,
                     .device_count = p->device_count,
                     .checkpoint = p->checkpoint,
                     .finite = p->finite};
  gp_plan *made;
  size_t n = (size_t)p->plan_count;
  GP_TRY(gp_plan_make(&env, spec, &made));
  gp_status status = gp_workers_prepare(p, made);
  if (!status) status = gp_resize_array(n, n + 1, sizeof(gp_plan *), (void **)&p->plans);
  if (status) return gp_plan_free(made), status;
  *plan = p->plans[p->plan_count++] = made;
  return GP_OK;
}

/* The records of the last run go with it. */
void gp_plan_drop(gp_pipeline *p, gp_plan *plan) {
  for (int32_t i = 0; i < p->plan_count; i++) {
    if (p->plans[i] != plan) continue;
    p->plans[i] = p->plans[--p->plan_count];
    if (p->last_plan == plan) p->last_plan = NULL;
    gp_plan_free(plan);
    return;
  }
}

/* Of one larger micro-batch: the binding scales the rows. */
const gp_meta *gp_plan_output_meta(const gp_plan *plan) {
  const gp_shape_plan *shape = &plan->shapes[0];
  return shape->output == GP_NONE ? NULL : &shape->trace->graph.values[shape->output].meta;
}

/* ---- new and close ------------------------------------------------------------------------- */

/* Specs are borrowed for the call only. */
static gp_status copy_ints(const int32_t *from, int32_t count, int32_t **to) {
  GP_TRY(gp_alloc_array((size_t)count + 1, sizeof(int32_t), (void **)to));
  memcpy(*to, from, (size_t)count * sizeof(int32_t));
  return GP_OK;
}

/* Counts up as it goes: a failure in the middle gives back exactly what was taken. */
static gp_status own_params(gp_pipeline *p, const gp_pipeline_spec *spec) {
  size_t n = (size_t)spec->param_count + 1;
  GP_TRY(gp_alloc_array(n, sizeof(gp_param *), (void **)&p->params));
  GP_TRY(gp_alloc_array(n, sizeof(gp_tensor *), (void **)&p->values));
  GP_TRY(gp_alloc_array(n, sizeof(gp_tensor *), (void **)&p->grads));
  GP_TRY(gp_alloc_array(n, sizeof(int32_t), (void **)&p->param_stage));
  GP_TRY(copy_ints(spec->param_layer, spec->param_count, &p->main_layer));
  for (int32_t i = 0; i < spec->param_count; i++) {
    p->param_stage[i] = p->stage_of[spec->param_layer[i]];
    GP_TRY(gp_param_own(spec->params[i], p, p->param_stage[i]));
    p->params[p->param_count++] = gp_param_retain(spec->params[i]);
  }
  return GP_OK;
}

/* Everything that can fail; gp_pipeline_free undoes any part of it. */
static gp_status build(const gp_pipeline_spec *spec, gp_pipeline *p) {
  GP_TRY(gp_fault_parse(getenv("GPIPE_FAULT"), &p->fault));
  GP_TRY(copy_ints(spec->stage_of, spec->layer_count + 1, &p->stage_of));
  GP_TRY(own_params(p, spec));
  GP_TRY(gp_alloc_array((size_t)p->stage_count, sizeof(gp_arena), (void **)&p->arenas));
  for (int32_t s = 0; s < p->stage_count; s++) GP_TRY(fill_arena(p, s));
  return gp_workers_start(p, spec->devices);
}

/* The lock first: free destroys it whatever failed. */
gp_status gp_pipeline_new(const gp_pipeline_spec *spec, gp_pipeline **pipeline) {
  gp_pipeline *p;
  GP_TRY(gp_alloc(sizeof *p, (void **)&p));
  p->stage_count = spec->stage_count;
  p->layer_count = spec->layer_count;
  p->device_count = spec->device_count;
  p->checkpoint = spec->checkpoint;
  p->seed = spec->seed;
  p->finite = spec->finite;
  pthread_mutex_init(&p->run.failure_lock, NULL);
  gp_status status = build(spec, p);
  if (status) return gp_pipeline_free(p), status;
  *pipeline = p;
  return GP_OK;
}

/* Give the model back: its values stay where they are and keep that memory alive. */
static void release_params(gp_pipeline *p) {
  for (int32_t i = 0; i < p->param_count; i++) {
    gp_param_set_grad(p->params[i], NULL);
    gp_param_own(p->params[i], NULL, 0);
    gp_tensor_free(p->values[i]);
    gp_tensor_free(p->grads[i]);
    gp_param_free(p->params[i]);
  }
  p->param_count = 0;
}

/* Workers first: nobody may run while memory goes. */
void gp_pipeline_close(gp_pipeline *p) {
  if (!p || p->closed) return;
  p->closed = true;
  gp_workers_stop(p);
  while (p->plan_count) gp_plan_drop(p, p->plans[0]);
  release_params(p);
  for (int32_t x = 0; x < p->extra_count; x++) gp_tensor_free(p->extras[x].grad);
  for (int32_t s = 0; p->arenas && s < p->stage_count; s++) {
    gp_tensor_free(p->arenas[s].value_memory);
    gp_tensor_free(p->arenas[s].grad_memory);
    gp_tensor_free(p->arenas[s].buffer_memory);
    gp_free(p->arenas[s].committed);
  }
  for (int32_t i = 0; i < p->pack_count; i++) gp_tensor_free(p->packs[i].copy);
  p->extra_count = p->pack_count = 0;
  gp_free(p->arenas);
  p->arenas = NULL;
}

/* Closing gave back everything that others could see. */
void gp_pipeline_free(gp_pipeline *p) {
  if (!p) return;
  gp_pipeline_close(p);
  pthread_mutex_destroy(&p->run.failure_lock);
  gp_free(p->stage_of);
  gp_free(p->params);
  gp_free(p->param_stage);
  gp_free(p->main_layer);
  gp_free(p->values);
  gp_free(p->grads);
  gp_free(p->extras);
  gp_free(p->packs);
  gp_free(p->run.blocks);
  gp_free(p->records);
  gp_free(p->plans);
  gp_free(p);
}

/* ---- running ------------------------------------------------------------------------------- */

/* Between runs nobody looks at the slots; the ticket that starts the next run publishes this. */
static void reset_channels(gp_plan *plan) {
  for (int32_t e = 0; e < plan->edge_count; e++)
    for (int32_t k = 0; k < plan->channels[e].slots; k++) {
      atomic_store_explicit(&plan->channels[e].states[k].published, 0, memory_order_relaxed);
      atomic_store_explicit(&plan->channels[e].states[k].released, 0, memory_order_relaxed);
    }
}

/* The count is known here where the shapes decide it; else the last stage counts first. */
static void set_blocks(gp_pipeline *p, gp_run *run) {
  const gp_plan *plan = run->plan;
  bool known = !plan->shapes[0].programs[plan->stage_count - 1].count;
  run->count = 0;
  for (int32_t i = 0; known && i < plan->micro_count; i++)
    run->count += plan->shapes[gp_plan_shape_of(plan, i)].constant_count;
  for (int32_t i = 0; i < plan->micro_count; i++)
    run->blocks[i] = (gp_step_block){.seed = p->seed,
                                     .step = run->backward_half ? p->split_step : p->step,
                                     .rows = plan->shapes[gp_plan_shape_of(plan, i)].rows,
                                     .first_row = gp_plan_first_row(plan, i),
                                     .inverse_count = run->count ? 1.0 / (double)run->count : 0};
}

/* A task never sees half a run: everything is set before the ticket, read after the last worker. */
gp_status gp_pipeline_run(gp_pipeline *p, gp_plan *plan, const gp_run_args *args,
                          gp_run_result *result) {
  gp_run *run = &p->run;
  if (p->closed) return gp_fail(GP_ESTATE, "the pipeline is closed");
  run->plan = plan;
  run->args = args;
  run->backward_half = plan->kind == GP_PLAN_SPLIT && args->out_grad;
  run->status = GP_OK;
  atomic_store(&run->failed_order, INT32_MAX);
  if (!run->backward_half) reset_channels(plan);
  set_blocks(p, run);
  gp_run_save_buffers(p);
  p->last_plan = plan;
  p->last_begin = gp_now_ns();
  GP_TRY(gp_workers_run(p, gp_run_device, run));
  gp_run_finish(p, result);
  p->last_end = gp_now_ns();
  return run->status ? gp_fail_text(run->status, run->text) : GP_OK;
}

/* Of the script's thread; the workers zero their own at the start of a step. */
void gp_pipeline_zero_grad(gp_pipeline *p) {
  for (int32_t s = 0; !p->closed && s < p->stage_count; s++)
    if (p->arenas[s].grads) memset(p->arenas[s].grads, 0, p->arenas[s].grad_bytes);
  for (int32_t x = 0; x < p->extra_count; x++)
    memset(gp_tensor_data(p->extras[x].grad), 0, gp_tensor_bytes(p->extras[x].grad));
}

uint32_t gp_pipeline_step_count(const gp_pipeline *p) { return p->step; }
void gp_pipeline_set_step_count(gp_pipeline *p, uint32_t steps) { p->step = steps; }
