/* engine/profile/profile.c - the profile of a pipeline: all of its devices, and what an instruction
 * is called and costs.
 *
 * A record gets all its texts and numbers when the instruction is recorded: the plan may be gone
 * when the script reads the profile. */
#include "engine/bind/bind.h"
#include "engine/profile/recorder.h"
#include "engine/state/pipeline.h"
#include "gpipe/profile.h"

#include <stdio.h>

enum { WARM = 3 }; /* runs of a plan: launched, captured, replayed */

const char *gp_profile_phase_name(gp_profile_phase phase) {
#define NAME(name, text) [GP_PROFILE_##name] = text,
  static const char *const names[] = {GP_PROFILE_LIST(NAME)};
#undef NAME
  return names[phase];
}

/* ---- instructions -------------------------------------------------------------------------- */

/* The phase that an instruction counts for. A forward node that a backward action runs is a
 * recomputation. */
static gp_profile_phase phase_of(const gp_task *task, const gp_node *node) {
  switch (task->op) {
  case GP_ACT_F:
  case GP_ACT_S: return GP_PROFILE_FORWARD;
  case GP_ACT_R: return GP_PROFILE_RECOMPUTE;
  case GP_ACT_P: return GP_PROFILE_PREPARE;
  case GP_ACT_C: return GP_PROFILE_COUNT;
  default: return node->phase == GP_BACKWARD ? GP_PROFILE_BACKWARD : GP_PROFILE_RECOMPUTE;
  }
}

/* The action of the task that the worker runs: its open event knows the micro-batch. */
static gp_action action_of(const gp_worker *w, const gp_task *task) {
  const gp_event *now = &w->events[w->event_count % w->event_room];
  return gp_task_action(w->pipeline->run.plan, task, now->micro);
}

gp_record gp_record_of_instr(const gp_worker *w, const gp_task *task, const gp_instr *instr) {
  const gp_graph *graph = task->program->graph;
  const gp_node *node = &graph->nodes[instr->node];
  const gp_meta *first = instr->call.n_in ? instr->call.in[0].meta : instr->call.out[0].meta;
  gp_cost cost = gp_node_cost(graph, node);
  gp_record r = {.entry = {.phase = phase_of(task, node),
                           .op = gp_op_name(instr->op),
                           .dtype = first->dtype,
                           .in_action = true,
                           .action = action_of(w, task),
                           .bytes = cost.bytes,
                           .flop = cost.flop},
                 .stream = GP_STREAM_COMPUTE};
  snprintf(r.entry.what, sizeof r.entry.what, "%s", graph->labels[node->label]);
  return r;
}

/* ---- all devices --------------------------------------------------------------------------- */

void gp_profile_note_run(gp_pipeline *p) {
  gp_profiling *now = &p->profiling;
  now->timed = now->open;
  if (!now->open) {
    p->run.binding->runs++;
    return;
  }
  now->mixed = now->mixed || (now->runs && now->plan != p->run.plan);
  now->plan = p->run.plan;
  now->runs++;
}

bool gp_pipeline_ran_warm(const gp_pipeline *p) {
  const gp_binding *binding = p->last_plan ? gp_pipeline_binding(p, p->last_plan) : NULL;
  return binding && !p->profiling.timed && !gp_plan_streams(p->last_plan) && binding->runs >= WARM;
}

void gp_pipeline_profile_drop(gp_pipeline *p) {
  /* in a stream, workers still call their lanes by the recorders' tables */
  if (p->profiling.open) (void)gp_pipeline_drain(p);
  if (p->watch.lost) return;
  for (int32_t d = 0; p->workers && d < p->device_count; d++) gp_recorder_free(&p->workers[d]);
  p->profiling.open = false;
}

gp_status gp_pipeline_profile_begin(gp_pipeline *p, bool eager) {
  gp_status status = GP_OK;
  if (p->closed || p->watch.lost) return gp_fail(GP_ESTATE, "profile: the pipeline is closed");
  if (p->profiling.open)
    return gp_fail(GP_ESTATE, "profile: another profile is under way, expected it to end first");
  if (p->run.open) return gp_fail(GP_ESTATE, "profile: a stream is open, drain it first");
  gp_pipeline_profile_drop(p);
  for (int32_t d = 0; !status && d < p->device_count; d++)
    if (!p->workers[d].far) status = gp_recorder_new(&p->workers[d], eager);
  if (status) return gp_pipeline_profile_drop(p), status;
  p->profiling = (gp_profiling){.open = true, .timed = p->profiling.timed};
  return GP_OK;
}

gp_status gp_pipeline_profile_end(gp_pipeline *p, gp_profile_info *info) {
  gp_status status = GP_OK;
  /* a lost worker may still call its lane by the recorder's tables */
  if (!p->profiling.open || p->closed || p->watch.lost)
    return gp_fail(GP_ESTATE, "profile: no profile is under way, expected one to end");
  GP_TRY(gp_pipeline_drain(p));
  *info = (gp_profile_info){.runs = p->profiling.runs, .one_plan = !p->profiling.mixed};
  for (int32_t d = p->device_count - 1; d >= 0; d--) {
    gp_recorder *recorder = p->workers[d].recorder; /* NULL: a device of another rank */
    gp_status closed = recorder ? gp_recorder_close(recorder) : GP_OK;
    if (closed) status = closed;
    if (recorder) info->overhead = recorder->overhead;
  }
  p->profiling.open = false;
  return status;
}

size_t gp_pipeline_profile_count(const gp_pipeline *p, int device) {
  const gp_recorder *r = p->workers[device].recorder;
  return r && !p->profiling.open ? r->count : 0;
}

void gp_pipeline_profile_entry(const gp_pipeline *p, int device, size_t i,
                               gp_profile_entry *entry) {
  *entry = p->workers[device].recorder->records[i].entry;
}
