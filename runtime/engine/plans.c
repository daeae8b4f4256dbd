/* engine/plans.c - the plans of a pipeline: they are made, bound to its memory, and dropped. */
#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/bind.h"
#include "engine/bind/compare.h"
#include "engine/memory/arena.h"
#include "engine/memory/work.h"
#include "engine/run/run.h"
#include "engine/state/pipeline.h"
#include "engine/worker/worker.h"
#include "gpipe/trace.h"
#include "plan/make.h"
#include "ranks/ranks.h"

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

static gp_status refuse(const gp_plan_spec *spec, gp_status status) {
  for (int k = 0; k < 2; k++) gp_trace_free(spec->shapes[k].trace);
  return status;
}

/* The ranks compare their plans before the first run: afterwards all of them are bound, so that a
 * message finds its link. The number is taken also where the plan fails. */
static gp_status build_spread(gp_pipeline *p, const gp_plan_env *env, const gp_plan_spec *spec,
                              gp_plan **plan) {
  gp_plan *made = NULL;
  uint64_t number;
  gp_status status = gp_ranks_number("plan for new shapes", &number);
  if (status) return refuse(spec, status);
  p->spread->plan_ports = number << 32;
  status = build_plan(p, env, spec, &made);
  status = gp_ranks_agree("plan for new shapes", status, gp_error_text());
  if (!status) status = gp_plan_compare(made);
  if (status && made) gp_plan_drop(p, made);
  if (!status) *plan = made;
  return status;
}

gp_status gp_plan_build(gp_pipeline *p, const gp_plan_spec *spec, gp_plan **plan) {
  gp_plan_env env = env_of(p);
  if (p->run.open) /* checked first: planning may move memory that the workers write to */
    return refuse(spec, gp_fail(GP_ESTATE, "plan: a stream is open, expected it to be drained"));
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
