/* plan/plan.c - one batch shape: build its programs, lower its schedule, lay out its memory.
 *
 * The schedule is lowered twice if a parameter has several accumulators: that is known only once
 * the programs are built, and which programs are built depends on the lowered schedule.
 */
#include "plan/channels.h"
#include "plan/make.h"

#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "plan/edge/step_edges.h"
#include "plan/edge/transfers.h"
#include "plan/gathers.h"
#include "plan/offload.h"
#include "plan/records.h"
#include "plan/sums.h"

/* Edges, constants and crossings are the last bases and take turns, so the largest of their numbers
 * counts. */
int32_t gp_plan_base_count(const gp_plan *plan) {
  int32_t constants = gp_plan_constant_count(plan);
  int32_t most = constants > plan->edge_count ? constants : plan->edge_count;
  if (plan->crossing_count > most) most = plan->crossing_count;
  return gp_base_of_edge(plan->stage_count, most);
}

int32_t gp_plan_constant_count(const gp_plan *plan) {
  const gp_shape_plan *last = &plan->shapes[plan->shapes[1].larger ? 1 : 0];
  return last->first_constant + last->trace->graph.constant_count;
}

/* Constants of the smaller micro-batches come behind those of the larger ones. */
const gp_tensor *gp_plan_constant(const gp_plan *plan, int32_t constant) {
  const gp_shape_plan *last = &plan->shapes[1];
  if (!last->larger || constant < last->first_constant)
    return plan->shapes[0].trace->graph.constants[constant];
  return last->trace->graph.constants[constant - last->first_constant];
}

/* ---- shapes -------------------------------------------------------------------------------- */

/* Edges are numbered through both sizes of micro-batches. */
const gp_edge *gp_plan_edge(const gp_plan *plan, int32_t edge) {
  const gp_shape_plan *shape = &plan->shapes[gp_plan_edge_is_small(plan, edge)];
  return &shape->stages->edges[edge - shape->first_edge];
}

/* Check that the first dimension of output k follows the rows: micro-batches are put together along
 * it. *meta: NULL if there is no such output. */
static gp_status check_output(const gp_shape_plan *shape, int k, const gp_meta **meta) {
  *meta = NULL;
  if (k >= shape->output_count || !shape->trace) return GP_OK;
  *meta = &shape->trace->graph.values[shape->outputs[k]].meta;
  if ((*meta)->shape.rank > 0 && (*meta)->shape.dim[0] % shape->rows == 0) return GP_OK;
  return gp_fail(
      GP_ESHAPE,
      "forward: the model makes %s of %d rows, expected the rows (or a multiple) in the first "
      "dimension",
      gp_meta_print(*meta, (char[96]){0}, 96), (int)shape->rows);
}

/* Check that both sizes of micro-batches make the same output k: they write into one tensor. */
static gp_status check_sizes(const gp_plan *plan, int k) {
  const gp_meta *large, *small;
  GP_TRY(check_output(&plan->shapes[0], k, &large));
  GP_TRY(check_output(&plan->shapes[1], k, &small));
  if (!large || !small) return GP_OK;
  gp_meta scaled = *small;
  scaled.shape.dim[0] = small->shape.dim[0] / plan->shapes[1].rows * plan->shapes[0].rows;
  if (gp_meta_equal(large, &scaled)) return GP_OK;
  return gp_fail(
      GP_ESHAPE,
      "forward: the model makes %s of %d rows but %s of %d: chunks must divide the batch",
      gp_meta_print(large, (char[96]){0}, 96), (int)plan->shapes[0].rows,
      gp_meta_print(small, (char[96]){0}, 96), (int)plan->shapes[1].rows);
}

static gp_status check_outputs(const gp_plan *plan) {
  for (int k = 0; k < plan->shapes[0].output_count; k++) GP_TRY(check_sizes(plan, k));
  return GP_OK;
}

/* Check that both sizes of micro-batches make the same kind of loss: sums are added up and counts
 * used the same way for all. */
static gp_status check_losses(const gp_plan *plan) {
  const gp_shape_plan *a = &plan->shapes[0], *b = &plan->shapes[1];
  if (!b->trace || a->loss == GP_NONE) return GP_OK;
  gp_dtype large = a->trace->graph.values[a->loss].meta.dtype;
  gp_dtype small = b->trace->graph.values[b->loss].meta.dtype;
  if (large == small && (a->count == GP_NONE) == (b->count == GP_NONE)) return GP_OK;
  return gp_fail(GP_EINVAL,
                 "loss: it is of another kind for %d rows than for %d: sum or count must not "
                 "depend on the number of rows",
                 (int)a->rows, (int)b->rows);
}

static gp_status build_shapes(const gp_shape_spec *spec, gp_plan *plan) {
  /* the larger micro-batches come first: the smaller ones use their packed weights */
  for (int k = 0; k < 2; k++) {
    if (!spec->plan->shapes[k].micros) continue;
    if (k) plan->shapes[1].larger = &plan->shapes[0];
    GP_TRY(gp_shape_build(spec, &spec->plan->shapes[k], &plan->shapes[k]));
  }
  plan->edge_count = plan->shapes[0].stages->edge_count;
  if (plan->shapes[1].own_edges) plan->edge_count += plan->shapes[1].stages->edge_count;
  GP_TRY(check_losses(plan));
  return check_outputs(plan);
}

/* ---- building ------------------------------------------------------------------------------ */

/* Check that the schedule's numbers fit the pipeline's, before anything is built on them. An
 * asynchronous schedule lists several mini-batches: enough for it to repeat itself. */
static gp_status check_numbers(const gp_plan_env *env, const gp_schedule *s, int32_t micros) {
  if (s->batch && s->copy_count > s->replicas)
    return gp_fail(GP_ESCHEDULE,
                   "schedule: it is asynchronous and runs a stage on two devices, whose "
                   "weights would differ: expected one device for each stage");
  if (s->batch && s->replicas > 1 && s->batch != micros)
    return gp_fail(GP_ESCHEDULE,
                   "schedule: it updates after every %d micro-batches of all replicas, a step has "
                   "%d: expected one update a step",
                   (int)s->batch, (int)micros);
  if (s->batch && micros % s->batch)
    return gp_fail(GP_ESCHEDULE,
                   "schedule: it updates after every %d micro-batches, a step has %d: "
                   "expected a multiple",
                   (int)s->batch, (int)micros);
  if (s->batch && gp_plan_env_offloads(env))
    return gp_fail(
        GP_ESCHEDULE,
        "schedule: it is a stream of mini-batches, expected a synchronous one where "
        "saved values go to the host's memory (checkpoint \"offload\"), with the barrier "
        "if it has replicas");
  bool fits = s->batch ? s->micro_count % micros == 0 : s->micro_count == micros;
  if (s->stage_count == env->stage_count && fits && s->device_count <= env->device_count)
    return GP_OK;
  return gp_fail(GP_ESCHEDULE,
                 "schedule: it has %d stages, %d micro-batches and %d devices, expected %d, %d and "
                 "at most %d",
                 (int)s->stage_count, (int)s->micro_count, (int)s->device_count,
                 (int)env->stage_count, (int)micros, (int)env->device_count);
}

/* Fill in the numbers and allocate the lists that do not depend on programs. */
static gp_status prepare(const gp_plan_env *env, const gp_plan_spec *spec, gp_plan *plan) {
  const gp_schedule *s = spec->schedule;
  int32_t micros = spec->shapes[0].micros + spec->shapes[1].micros;
  GP_TRY(check_numbers(env, s, micros));
  plan->kind = spec->kind;
  plan->sum_loss = spec->sum_loss;
  plan->sum_group = gp_plan_trains(spec->kind) ? env->sum_group : 0;
  plan->by_stage = gp_remat_is_by_stage(env->remat);
  plan->share = env->share;
  plan->stage_count = env->stage_count;
  plan->device_count = s->device_count;
  plan->copy_count = s->copy_count;
  plan->replicas = s->replicas;
  plan->replica_micros = s->replicas > 1 ? s->replica_micros : micros;
  plan->batch = s->batch;
  plan->micro_count = s->micro_count;
  plan->step_micros = micros;
  plan->shares = spec->kind != GP_PLAN_SPLIT && !s->batch;
  plan->update = spec->kind == GP_PLAN_STEP ? env->update : GP_UPDATE_NONE;
  size_t stages = (size_t)plan->stage_count, devices = (size_t)plan->device_count,
         holders = stages * (size_t)plan->copy_count;
  GP_TRY(gp_alloc_array(holders, sizeof(int32_t), (void **)&plan->placement));
  GP_TRY(gp_alloc_array(holders, sizeof(gp_slots), (void **)&plan->slots));
  GP_TRY(gp_alloc_array(holders, sizeof(bool), (void **)&plan->opened));
  GP_TRY(gp_alloc_array(holders, sizeof(int32_t), (void **)&plan->partial_count));
  GP_TRY(gp_alloc_array(holders, sizeof(gp_area), (void **)&plan->partials));
  GP_TRY(gp_alloc_array(holders, sizeof(gp_area), (void **)&plan->records));
  GP_TRY(gp_alloc_array(holders, sizeof(gp_area), (void **)&plan->sent));
  GP_TRY(gp_alloc_array(holders, sizeof(bool), (void **)&plan->active));
  GP_TRY(gp_alloc_array(holders, sizeof(size_t), (void **)&plan->owned));
  GP_TRY(gp_alloc_array(2 * holders, sizeof(gp_area), (void **)&plan->invariant));
  GP_TRY(gp_alloc_array(holders, sizeof(gp_versions), (void **)&plan->versions));
  GP_TRY(gp_alloc_array(stages, sizeof(int32_t), (void **)&plan->record_rounds));
  GP_TRY(gp_alloc_array(stages, sizeof(gp_stage_asked), (void **)&plan->asked));
  GP_TRY(gp_alloc_array(2 * holders, sizeof(gp_area), (void **)&plan->constants));
  GP_TRY(gp_alloc_array(2 * holders, sizeof(gp_area), (void **)&plan->states));
  GP_TRY(gp_alloc_array(devices, sizeof(gp_plan_device), (void **)&plan->devices));
  for (int32_t d = 0; env->devices && d < plan->device_count; d++)
    plan->devices[d].spec = env->devices[d];
  memcpy(plan->placement, s->placement, holders * sizeof(int32_t));
  return GP_OK;
}

/* Find the stages whose I and W run as programs of their own. */
static void find_apart(const gp_lowered *lowered, bool *apart) {
  for (int32_t i = 0; i < lowered->first[lowered->device_count]; i++)
    if (lowered->actions[i].op == GP_ACT_I || lowered->actions[i].op == GP_ACT_W)
      apart[lowered->actions[i].stage] = true;
}

/* The next action of a device with a program of a micro-batch; NULL behind the last one. */
static const gp_action *next_work(const gp_lowered *lowered, int32_t device, int32_t i) {
  while (++i < lowered->first[device + 1])
    if (lowered->actions[i].op <= GP_ACT_R) return &lowered->actions[i];
  return NULL;
}

/* Find the stages with an R that the backward pass of its micro-batch does not directly follow. */
static void find_hoisted(const gp_lowered *lowered, bool *hoisted) {
  for (int32_t d = 0; d < lowered->device_count; d++)
    for (int32_t i = lowered->first[d]; i < lowered->first[d + 1]; i++) {
      const gp_action *x = &lowered->actions[i];
      const gp_action *next = x->op == GP_ACT_R ? next_work(lowered, d, i) : x;
      if (!next || next->stage != x->stage || next->micro != x->micro) hoisted[x->stage] = true;
    }
}

/* Build the programs that the lowered schedule runs. */
static gp_status make_programs(const gp_plan_env *env, const gp_plan_spec *spec,
                               const gp_lowered *lowered, gp_plan *plan) {
  bool *apart, *hoisted;
  GP_TRY(gp_alloc_array(2 * (size_t)plan->stage_count, sizeof *apart, (void **)&apart));
  hoisted = apart + plan->stage_count;
  find_apart(lowered, apart);
  find_hoisted(lowered, hoisted);
  gp_shape_spec shapes = {
      .env = env, .plan = spec, .lowered = lowered, .apart = apart, .hoisted = hoisted};
  gp_status status = build_shapes(&shapes, plan);
  gp_free(apart);
  return status;
}

/* Choose the options of lowering. In a stream every stage decides for itself when it updates, and
 * its replicas decide together. */
static gp_lower_options options_of(const gp_plan_env *env, const gp_plan *plan) {
  bool joined = plan->update == GP_UPDATE_BARRIER, scaled = env->scaled && !gp_plan_streams(plan);
  bool shared = gp_plan_shares_updates(plan) && plan->update != GP_UPDATE_NONE;
  return (gp_lower_options){.remat = env->remat,
                            .update = plan->update,
                            .norm = ((joined || shared) && env->norm) || scaled,
                            .clip = (joined && env->clip) || scaled};
}

/* Make the channels: one more than there are edges, so that a plan without edges has an array
 * too. */
static gp_status make_channels(gp_plan *plan, const gp_lowered *lowered) {
  GP_TRY(gp_alloc_array((size_t)gp_plan_value_channels(plan) + 1, sizeof(gp_channel),
                        (void **)&plan->channels));
  return gp_plan_size_channels(plan, lowered);
}

/* Find the copies of stages that the schedule gives micro-batches: the others prepare nothing and
 * read nothing. */
static void find_active(gp_plan *plan, const gp_lowered *lowered) {
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t i = lowered->first[d]; i < lowered->first[d + 1]; i++) {
      const gp_action *action = &lowered->actions[i];
      const int32_t copy = gp_plan_copy_on(plan, action->stage, d);
      if (action->op <= GP_ACT_R) plan->active[gp_plan_holder(plan, action->stage, copy)] = true;
    }
}

static gp_status note_asked(gp_plan *plan, const gp_layout *layout) {
  for (int32_t s = 0; s < plan->stage_count; s++)
    plan->asked[s] = (gp_stage_asked){layout->stages[s].grads, layout->stages[s].extras,
                                      layout->stages[s].halves > 0};
  plan->extra_count = (int32_t)layout->extra_count;
  plan->crossing_count = layout->crossing_count;
  GP_TRY(gp_alloc_array(layout->extra_count + 1, sizeof *plan->extras, (void **)&plan->extras));
  for (int32_t x = 0; x < plan->extra_count; x++)
    plan->extras[x] =
        (gp_plan_extra){layout->at[layout->extras[x].param].stage, layout->extras[x].stage,
                        layout->at[layout->extras[x].param].owner};
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    plan->owned[h] = layout->slices[h].grads;
  return GP_OK;
}

/* Make what follows from programs and lowered actions. */
static gp_status make_tasks(const gp_plan_env *env, const gp_plan_spec *spec, bool tied,
                            const gp_lowered *lowered, gp_plan *plan) {
  GP_TRY(gp_plan_number_gathers(plan));
  find_active(plan, lowered);
  GP_TRY(gp_plan_find_turns(plan, lowered));
  GP_TRY(gp_plan_add_outline(plan, lowered));
  GP_TRY(note_asked(plan, env->layout));
  GP_TRY(gp_plan_add_step_edges(plan, env, tied));
  GP_TRY(gp_plan_add_tasks(plan, spec->schedule, lowered));
  gp_plan_count_records(plan);
  GP_TRY(gp_plan_check_turns(plan));
  GP_TRY(make_channels(plan, lowered));
  GP_TRY(gp_plan_check_gathers(plan));
  if (!env->added) GP_TRY(gp_plan_add_opening(plan));
  GP_TRY(gp_plan_add_sums(plan));
  GP_TRY(gp_plan_add_offloads(plan, spec->keeps));
  GP_TRY(gp_plan_add_slots(plan));
  GP_TRY(gp_plan_add_uses(plan));
  GP_TRY(gp_plan_add_step_uses(plan));
  GP_TRY(gp_plan_add_versions(plan, env));
  return gp_plan_add_ranges(plan, lowered);
}

/* Make all parts of a plan. The order matters: capacities need the edges of stages, memory needs
 * capacities. */
static gp_status make(const gp_plan_env *env, const gp_plan_spec *spec, gp_plan *plan) {
  gp_lowered lowered;
  GP_TRY(prepare(env, spec, plan));
  gp_lower_options options = options_of(env, plan);
  GP_TRY(gp_schedule_lower(spec->schedule, &options, &lowered));
  gp_status status = make_programs(env, spec, &lowered, plan);
  if (!status && (plan->shapes[0].tied || plan->shapes[1].tied) && !gp_plan_streams(plan)) {
    gp_lowered_free(&lowered);
    options.tied = true;
    status = gp_schedule_lower(spec->schedule, &options, &lowered);
  }
  plan->joined = options.norm && !plan->batch;
  plan->checks = options.norm && plan->batch;
  plan->decides = plan->joined || plan->update == GP_UPDATE_BARRIER;
  if (!status) status = make_tasks(env, spec, options.tied, &lowered, plan);
  gp_lowered_free(&lowered);
  GP_TRY(status);
  GP_TRY(gp_plan_prove_transfers(plan));
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    if (plan->versions[h].live > 1)
      plan->versions[h].stash_bytes = env->layout->stages[h / plan->copy_count].values;
  return gp_plan_add_memory(plan);
}

gp_status gp_plan_make(const gp_plan_env *env, const gp_plan_spec *spec, gp_plan **plan) {
  gp_plan *made = NULL;
  gp_status status = gp_alloc(sizeof *made, (void **)&made);
  /* take the traces first, so that every way out frees them once */
  for (int k = 0; k < 2; k++) {
    if (made)
      made->shapes[k].trace = spec->shapes[k].trace;
    else
      gp_trace_free(spec->shapes[k].trace);
  }
  if (!status) status = gp_layout_copy(env->layout, &made->layout);
  if (!status) {
    gp_plan_env own = *env;
    own.layout = &made->layout;
    if (spec->policy) own.remat = *spec->policy;
    status = make(&own, spec, made);
  }
  if (status) return gp_plan_free(made), status;
  *plan = made;
  return GP_OK;
}

/* Also frees a plan whose building stopped half-way: what was not built is NULL or counted as
 * none. */
void gp_plan_free(gp_plan *plan) {
  if (!plan) return;
  gp_free(plan->uses);
  gp_plan_free_offloads(plan);
  gp_plan_free_step_edges(plan);
  for (int32_t c = 0; plan->channels && c < gp_plan_value_channels(plan); c++)
    gp_free(plan->channels[c].fetches);
  for (int k = 0; k < 2; k++) gp_shape_free(&plan->shapes[k]);
  gp_layout_free(&plan->layout);
  gp_free(plan->placement);
  for (int end = 0; end < 2; end++) gp_free(plan->runners[end]);
  gp_free(plan->tasks);
  gp_free(plan->first);
  gp_free(plan->ranges.begin);
  gp_free(plan->versions);
  gp_free(plan->invariant);
  gp_free(plan->channels);
  gp_free(plan->turns);
  gp_free(plan->slots);
  gp_free(plan->opened);
  gp_free(plan->partial_count);
  gp_free(plan->partials);
  gp_free(plan->records);
  gp_free(plan->record_rounds);
  gp_free(plan->gathers);
  gp_free(plan->sent);
  gp_free(plan->active);
  gp_free(plan->owned);
  gp_free(plan->asked);
  gp_free(plan->extras);
  gp_free(plan->constants);
  gp_free(plan->states);
  gp_free(plan->devices);
  gp_free(plan);
}
