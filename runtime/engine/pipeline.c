/* engine/pipeline.c - the life of a pipeline: its parameters, its devices, its workers. */
#include "engine/state/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/memory/arena.h"
#include "engine/memory/halves.h"
#include "engine/memory/work.h"
#include "engine/optimizer/optimizer.h"
#include "engine/run/run.h"
#include "engine/watch/fault.h"
#include "engine/watch/watchdog.h"
#include "engine/worker/worker.h"
#include "gpipe/profile.h"
#include "graph/param.h"
#include "plan/make.h"
#include "ranks/ranks.h"

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
                          .streams = p->streams,
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
  p->streams = spec->streams;
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
