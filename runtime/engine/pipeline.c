/* engine/pipeline.c - the life of a pipeline: its plans, its parameters, its workers. */
#include "engine/state/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/bind.h"
#include "engine/bind/compare.h"
#include "engine/memory/arena.h"
#include "engine/memory/halves.h"
#include "engine/memory/work.h"
#include "engine/optimizer/optimizer.h"
#include "engine/run/run.h"
#include "engine/watch/fault.h"
#include "engine/watch/watchdog.h"
#include "engine/worker/worker.h"
#include "gpipe/profile.h"
#include "gpipe/trace.h"
#include "graph/param.h"
#include "plan/make.h"
#include "ranks/ranks.h"

/* ---- plans --------------------------------------------------------------------------------- */

/* Collect what a plan needs to know about this pipeline. */
static gp_plan_env env_of(gp_pipeline *p) {
  return (gp_plan_env){.layout = &p->layout,
                       .devices = p->device_specs,
                       .stage_of = p->stage_of,
                       .layer_count = p->layer_count,
                       .stage_count = p->stage_count,
                       .device_count = p->device_count,
                       .remat = p->remat,
                       .layers = p->layers,
                       .update = p->optimizer ? p->use.update : GP_UPDATE_NONE,
                       .norm = p->check != GP_FINITE_IGNORE || p->use.clip_norm > 0,
                       .clip = p->use.clip_norm > 0,
                       .scaled = p->scaling.scale > 0,
                       .finite = p->finite,
                       .fuse = p->fuse,
                       .added = p->added,
                       .sum_group = p->sum_group,
                       .bucket = p->bucket};
}

/* Plan this rank's devices alone where the whole would take too long. */
static void choose_share(const gp_pipeline *p, const gp_plan_spec *spec, gp_plan_env *env) {
  const gp_schedule *s = spec->schedule;
  if (p->spread && s->first[s->device_count] > p->most_whole)
    env->share = gp_plan_share_of_rank(env, spec, p->spread->own);
}

/* A question to a device: how much scratch do the ops of its programs need? */
typedef struct question {
  const gp_lane *lane;
  size_t scratch; /* bytes: the most that one op needs */
} question;

static gp_status ask_of(question *q, gp_op op, const gp_call *call) {
  size_t bytes = 0;
  GP_TRY(q->lane->work->prepare(q->lane, op, call, &bytes));
  if (bytes > q->scratch) q->scratch = bytes;
  return GP_OK;
}

/* Ask about every op of a program. */
static gp_status ask(void *context, const gp_program *program) {
  for (int32_t n = 0; n < program->instr_count; n++) {
    const gp_instr *instr = &program->instrs[n];
    gp_call writes = instr->call;
    writes.accumulate = false;
    GP_TRY(ask_of(context, instr->op, &instr->call));
    /* the same op adds to a gradient in one task and writes it in another */
    if (instr->opens && instr->call.accumulate) GP_TRY(ask_of(context, instr->op, &writes));
  }
  return GP_OK;
}

/* Make a plan, which needs no device, and then ask the devices here with memory of their own about
 * its ops: they choose their algorithms now and say how much scratch these need. */
static gp_status plan_with_devices(gp_pipeline *p, const gp_plan_env *env, const gp_plan_spec *spec,
                                   gp_plan **plan) {
  gp_status status = GP_OK;
  gp_plan *made;
  gp_plan_env own = *env;
  choose_share(p, spec, &own);
  GP_TRY(gp_plan_make(&own, spec, &made));
  for (int32_t d = 0; !status && d < made->device_count; d++) {
    question q = {.lane = &p->workers[d].lane};
    if (gp_plan_on_host(made, d) || !gp_device_is_here(p, d)) continue;
    status = gp_plan_each_program(made, d, ask, &q);
    if (!status) status = gp_plan_set_scratch(made, d, q.scratch);
  }
  if (status) return gp_plan_free(made), status;
  *plan = made;
  return GP_OK;
}

/* Make a plan and bind it: allocate everything that its runs need, so that they allocate
 * nothing. */
static gp_status build_plan(gp_pipeline *p, const gp_plan_env *env, const gp_plan_spec *spec,
                            gp_plan **plan) {
  gp_plan *made;
  bool moved = false;
  size_t n = (size_t)p->binding_count;
  GP_TRY(plan_with_devices(p, env, spec, &made));
  gp_status status = gp_workers_prepare(p, made);
  if (!status) status = gp_minibatches_prepare(p, made);
  if (!status) status = gp_resize_array(n, n + 1, sizeof(gp_binding *), (void **)&p->bindings);
  if (!status) gp_layout_adopt(&p->layout, &made->layout);
  if (!status) status = gp_arenas_grow(p, &moved);
  if (!status) status = gp_work_grow(p, made, &moved);
  for (int32_t i = 0; moved && i < p->binding_count; i++) gp_binding_move(p->bindings[i]);
  if (!status) status = gp_bind(p, made, &p->bindings[n]);
  if (status) gp_work_shrink(p);
  if (status) return gp_plan_free(made), status;
  p->binding_count++;
  *plan = made;
  return GP_OK;
}

/* The ranks compare their plans before the first run: afterwards all of them are bound, so that a
 * message finds its link. */
static gp_status build_spread(gp_pipeline *p, const gp_plan_env *env, const gp_plan_spec *spec,
                              gp_plan **plan) {
  gp_plan *made = NULL;
  p->spread->plan_ports = gp_ranks_number() << 32; /* counted also where the plan fails */
  gp_status status = build_plan(p, env, spec, &made);
  status = gp_ranks_agree("plan for new shapes", status, gp_error_text());
  if (!status) status = gp_plan_compare(made);
  if (status && made) gp_plan_drop(p, made);
  if (!status) *plan = made;
  return status;
}

gp_status gp_plan_build(gp_pipeline *p, const gp_plan_spec *spec, gp_plan **plan) {
  gp_plan_env env = env_of(p);
  if (p->run.open) { /* checked first: planning may move memory that the workers write to */
    for (int k = 0; k < 2; k++) gp_trace_free(spec->shapes[k].trace);
    return gp_fail(GP_ESTATE, "plan: a stream is open, expected it to be drained");
  }
  return p->spread ? build_spread(p, &env, spec, plan) : build_plan(p, &env, spec, plan);
}

gp_status gp_plan_measure(gp_pipeline *p, const gp_plan_spec *spec, gp_remat remat,
                          gp_plan_need *needs) {
  gp_plan_env env = env_of(p);
  gp_plan *made;
  env.remat = remat;
  double time = 0;
  GP_TRY(plan_with_devices(p, &env, spec, &made));
  gp_status status = gp_plan_step_time(made, &time);
  for (int32_t d = 0; d < p->device_count; d++)
    needs[d] = d < made->device_count
                   ? (gp_plan_need){.bytes = gp_plan_total(made, d),
                                    .work = made->devices[d].work.bytes,
                                    .grown = gp_arenas_growth(p, made, d) +
                                             gp_worker_growth(&p->workers[d], made),
                                    .host = gp_plan_host_bytes(made, d),
                                    .time = time}
                   : (gp_plan_need){0};
  gp_plan_free(made);
  return status;
}

gp_status gp_pipeline_free_bytes(const gp_pipeline *p, int device, size_t *bytes) {
  const gp_lane *lane = &p->workers[device].lane;
  return lane->memory->free_bytes(lane, bytes);
}

void gp_plan_drop(gp_pipeline *p, gp_plan *plan) {
  if (p->watch.lost) return; /* a lost worker may still run the plan */
  for (int32_t i = 0; i < p->binding_count; i++) {
    gp_binding *binding = p->bindings[i];
    if (binding->plan != plan) continue;
    p->bindings[i] = p->bindings[--p->binding_count];
    if (p->last_plan == plan) p->last_plan = NULL; /* the last run's events name its tasks */
    gp_unbind(binding);
    gp_work_shrink(p);
    return;
  }
}

bool gp_pipeline_has_plan(const gp_pipeline *p, const gp_plan *plan) {
  return gp_pipeline_binding(p, plan) != NULL;
}

/* The shape is that of one larger micro-batch; the binding to Lua scales its rows. */
const gp_meta *gp_plan_output_meta(const gp_plan *plan, int k) {
  const gp_shape_plan *shape = &plan->shapes[0];
  return k < shape->output_count ? &shape->trace->graph.values[shape->outputs[k]].meta : NULL;
}

const gp_meta *gp_plan_input_grad_meta(const gp_plan *plan, int k) {
  const gp_shape_plan *shape = &plan->shapes[0];
  if (k >= shape->input_grad_count || shape->input_grads[k] == GP_NONE) return NULL;
  return &shape->trace->graph.values[shape->input_grads[k]].meta;
}

/* ---- new and close ------------------------------------------------------------------------- */

/* Copy a list of the spec, which is borrowed for the call only. */
static gp_status copy_ints(const int32_t *from, int32_t count, int32_t **to) {
  GP_TRY(gp_alloc_array((size_t)count + 1, sizeof(int32_t), (void **)to));
  memcpy(*to, from, (size_t)count * sizeof(int32_t));
  return GP_OK;
}

/* Take the parameters. param_count goes up with each of them, so that a failure half-way gives back
 * exactly those that were taken. */
static gp_status own_params(gp_pipeline *p, const gp_pipeline_spec *spec) {
  size_t n = (size_t)spec->param_count + 1;
  GP_TRY(gp_alloc_array(n, sizeof(gp_param *), (void **)&p->params));
  GP_TRY(gp_alloc_array(n, sizeof(gp_tensor *), (void **)&p->values));
  GP_TRY(gp_alloc_array(n, sizeof(gp_tensor *), (void **)&p->grads));
  GP_TRY(gp_alloc_array(n, sizeof(int32_t), (void **)&p->param_stage));
  GP_TRY(gp_alloc_array(n, sizeof(uint64_t), (void **)&p->seen.params));
  GP_TRY(gp_alloc_array(n, sizeof(int32_t), (void **)&p->listed));
  GP_TRY(gp_alloc_array(2 * n, sizeof(bool), (void **)&p->chosen));
  GP_TRY(gp_alloc_array(n, sizeof(int32_t), (void **)&p->grad_place));
  GP_TRY(copy_ints(spec->param_layer, spec->param_count, &p->main_layer));
  for (int32_t i = 0; i < spec->param_count; i++) {
    p->param_stage[i] = p->stage_of[spec->param_layer[i]];
    GP_TRY(gp_param_own(spec->params[i], p, p->param_stage[i]));
    p->params[p->param_count++] = gp_param_retain(spec->params[i]);
  }
  return GP_OK;
}

/* Copy the placement; without one, stage s lies on device s. */
static gp_status place_stages(gp_pipeline *p, const gp_pipeline_spec *spec) {
  int32_t holders = p->stage_count * p->copy_count;
  if (spec->placement) return copy_ints(spec->placement, holders, &p->placement);
  GP_TRY(gp_alloc_array((size_t)holders + 1, sizeof(int32_t), (void **)&p->placement));
  for (int32_t s = 0; s < p->stage_count; s++) p->placement[s] = s;
  return GP_OK;
}

/* Make the layout from the pipeline's own lists, because the layout borrows them. */
static gp_status lay_out(gp_pipeline *p) {
  gp_pipeline_spec own = {.stage_count = p->stage_count,
                          .copy_count = p->copy_count,
                          .replicas = p->replicas,
                          .param_count = p->param_count,
                          .stage_of = p->stage_of,
                          .params = p->params,
                          .param_layer = p->main_layer};
  return gp_layout_new(&own, p->placement, &p->layout);
}

static void set_up_lanes(gp_pipeline *p, bool tf32) {
  for (int32_t d = p->device_count - 1; d >= 0; d--) {
    const gp_lane *lane = &p->workers[d].lane;
    lane->work->set_precision(lane, tf32);
    if (lane->memory->host_alloc) p->pinning = lane->memory;
  }
}

/* Describe the devices for plans. Devices that share memory get the number of the first of them,
 * from 1; those in host memory get 0. */
static gp_status describe_devices(const gp_pipeline_spec *spec, gp_pipeline *p) {
  GP_TRY(gp_alloc_array((size_t)p->device_count, sizeof(gp_plan_device_spec),
                        (void **)&p->device_specs));
  for (int32_t d = 0; d < p->device_count; d++) {
    const gp_lane *lane = &p->workers[d].lane;
    int32_t first = 0;
    while (!gp_lane_shares(&p->workers[first].lane, lane)) first++;
    p->device_specs[d].space = lane->space ? first + 1 : 0;
    p->device_specs[d].rank = lane->rank;
    p->device_specs[d].packs = lane->facts->packs_weights;
    p->device_specs[d].parts = lane->facts->sums_parts;
    p->device_specs[d].halves = lane->facts->writes_halves && gp_halves_wanted();
    if (spec->hosts) p->device_specs[d].host = spec->hosts[d];
  }
  return GP_OK;
}

/* Do everything that can fail; gp_pipeline_free undoes any part of it. */
static gp_status build(const gp_pipeline_spec *spec, gp_pipeline *p) {
  GP_TRY(gp_faults_parse(getenv("GPIPE_FAULT"), &p->faults));
  GP_TRY(gp_watch_new(p, spec->watchdog));
  GP_TRY(copy_ints(spec->stage_of, spec->layer_count + 1, &p->stage_of));
  GP_TRY(gp_layer_remats_copy(spec, &p->layers));
  GP_TRY(place_stages(p, spec));
  GP_TRY(own_params(p, spec));
  GP_TRY(lay_out(p));
  if (spec->spread) GP_TRY(gp_spread_new(p, &p->spread));
  p->run.spread = p->spread;
  GP_TRY(gp_workers_new(p, spec->devices));
  set_up_lanes(p, spec->tf32);
  GP_TRY(describe_devices(spec, p));
  GP_TRY(gp_alloc_array((size_t)p->device_count, sizeof *p->work, (void **)&p->work));
  const size_t holders = (size_t)p->stage_count * (size_t)p->copy_count;
  GP_TRY(gp_alloc_array(holders, sizeof(gp_stage_run), (void **)&p->run.stages));
  GP_TRY(gp_arenas_new(p));
  return gp_workers_start(p);
}

gp_status gp_pipeline_new(const gp_pipeline_spec *spec, gp_pipeline **pipeline) {
  gp_pipeline *p;
  GP_TRY(gp_alloc(sizeof *p, (void **)&p));
  p->stage_count = spec->stage_count;
  p->layer_count = spec->layer_count;
  p->device_count = spec->device_count;
  p->copy_count = spec->copy_count ? spec->copy_count : 1;
  p->replicas = spec->replicas ? spec->replicas : 1;
  p->remat = spec->remat;
  p->seed = spec->seed;
  p->check = spec->finite;
  p->finite = spec->finite == GP_FINITE_RAISE;
  p->fuse = !spec->unfused;
  p->added = spec->added;
  p->sum_group = spec->sum_group;
  p->bucket = spec->bucket;
  p->most_whole = spec->most_whole;
  p->scaling = spec->loss_scale;
  /* before what can fail, because gp_pipeline_free always destroys it */
  pthread_mutex_init(&p->run.failure_lock, NULL);
  gp_status status = build(spec, p);
  if (p->spread) status = gp_ranks_agree("gp.pipeline", status, gp_error_text());
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

/* Give up a pipeline that has lost a worker. The worker may still run, so everything that it can
 * reach stays: tensors, plans, the pipeline itself. The model is free again, with the values that
 * it has. */
static void abandon(gp_pipeline *p) {
  gp_workers_abandon(p);
  for (int32_t i = 0; i < p->param_count; i++) {
    gp_param_set_grad(p->params[i], NULL);
    gp_param_own(p->params[i], NULL, 0);
  }
}

static void close_pipeline(gp_pipeline *p) {
  if (p->closed) return;
  if (p->spread)
    gp_stream_drop(p);
  else
    gp_pipeline_drain(p);
  p->closed = true;
  if (p->watch.lost) {
    abandon(p);
    return;
  }
  gp_workers_stop(p); /* first: no worker may run while its memory is freed */
  while (p->binding_count) gp_plan_drop(p, p->bindings[0]->plan);
  gp_minibatches_free(p);
  gp_optimizer_free(p->optimizer);
  p->optimizer = NULL;
  release_params(p);
  gp_work_free(p);
  gp_arenas_free(p);
  gp_pipeline_profile_drop(p);
  gp_workers_free(p);
  gp_spread_free(p->spread);
  p->spread = p->run.spread = NULL;
}

void gp_pipeline_free(gp_pipeline *p) {
  if (!p) return;
  close_pipeline(p);
  if (p->watch.lost) return; /* the lost worker may still use the rest */
  gp_watch_free(p);
  pthread_mutex_destroy(&p->run.failure_lock);
  gp_free(p->stage_of);
  gp_free(p->layers);
  gp_free(p->placement);
  gp_free(p->params);
  gp_free(p->param_stage);
  gp_free(p->seen.params);
  gp_free(p->listed);
  gp_free(p->chosen);
  gp_free(p->grad_place);
  gp_free(p->main_layer);
  gp_free(p->values);
  gp_free(p->grads);
  gp_free(p->extras);
  gp_layout_free(&p->layout);
  gp_free(p->bindings);
  gp_free(p->run.stages);
  gp_free(p->device_specs);
  gp_free(p->work);
  gp_free(p);
}

/* ---- counters -------------------------------------------------------------------------------- */

uint32_t gp_pipeline_step_count(const gp_pipeline *p) { return p->step; }
gp_status gp_pipeline_check_faults(const gp_pipeline *p) {
  return gp_faults_check(&p->faults, p->device_count, p->stage_count);
}

void gp_pipeline_set_step_count(gp_pipeline *p, uint32_t steps) { p->step = steps; }
int64_t gp_pipeline_skipped(const gp_pipeline *p) { return p->skips.total; }
void gp_pipeline_set_skipped(gp_pipeline *p, int64_t skipped) { p->skips.total = skipped; }
bool gp_pipeline_is_broken(const gp_pipeline *p) { return p->broken; }
void gp_pipeline_mend(gp_pipeline *p) { p->broken = false; }
