/* plan/shape.c - a traced model becomes the programs of its stages, for one number of rows.
 *
 * The trace is completed (exports, gradient, fused and packed nodes) before it is cut, so that the
 * nodes and the order in which they are added do not depend on the cut.
 */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/gates.h"
#include "graph/late.h"
#include "graph/losses.h"
#include "graph/pad.h"
#include "graph/turn.h"
#include "plan/memory/places.h"

/* The loss, its count, outputs, and gradients of inputs. */
enum { MOST_EXPORTS = 2 + 2 * GP_MAX_BATCH_TENSORS };

/* ---- exports and gradient ------------------------------------------------------------------ */

/* Append a copy of a value that leaves the pipeline: the value itself may be kept, sent or
 * recomputed. */
static gp_status export_copy(gp_shaper *s, gp_ref value, gp_ref *copy) {
  int32_t label;
  *copy = GP_NONE;
  if (value == GP_NONE) return GP_OK;
  GP_TRY(gp_graph_label(s->graph, "output", &label));
  gp_builder at = {.graph = s->graph, .layer = s->env->layer_count, .label = label};
  return gp_build(&at, GP_OP_copy, &(gp_attrs){0}, &value, 1, copy);
}

/* Check that sum and count are one number per micro-batch: 8 bytes wait for each. */
static gp_status check_loss(const gp_shaper *s) {
  for (int k = 0; k < 2; k++) {
    gp_ref ref = k ? s->shape->count : s->shape->loss;
    if (ref == GP_NONE) continue;
    const gp_meta *meta = &s->graph->values[ref].meta;
    bool wanted = k ? meta->dtype == GP_I64 : meta->dtype == GP_F32 || meta->dtype == GP_F64;
    if (wanted && meta->shape.rank == 0) continue;
    return gp_fail(wanted ? GP_ESHAPE : GP_EDTYPE, "loss: the %s is %s, expected a scalar of %s",
                   k ? "count" : "sum", gp_meta_print(meta, (char[96]){0}, 96),
                   k ? "i64" : "f32 or f64");
  }
  return GP_OK;
}

/* Append the gradient in training plans; the others have a forward pass only. */
static gp_status differentiate(gp_shaper *s, const gp_plan_spec *spec,
                               const gp_traced_shape *from) {
  gp_gradient_root roots[GP_MAX_BATCH_TENSORS] = {{.value = from->loss_sum,
                                                   .layer = s->env->layer_count,
                                                   .is_loss = true,
                                                   .factor = spec->sum_loss ? 1 : 0}};
  if (!gp_plan_trains(spec->kind)) return GP_OK;
  if (spec->kind != GP_PLAN_SPLIT) return gp_graph_gradient(s->graph, roots, 1);
  for (int k = 0; k < from->output_count; k++)
    roots[k] = (gp_gradient_root){.value = from->outputs[k], .layer = s->env->layer_count};
  s->graph->asks_inputs = true;
  GP_TRY(gp_graph_gradient(s->graph, roots, from->output_count));
  s->shape->input_grad_count = from->trace->input_count;
  for (int k = 0; k < s->shape->input_grad_count; k++)
    s->shape->input_grads[k] = s->graph->input_grads[k];
  return GP_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Do the same values cross between the same stages? */
static bool same_edges(const gp_stages *a, const gp_stages *b) {
  if (a->edge_count != b->edge_count) return false;
  for (int32_t e = 0; e < a->edge_count; e++) {
    const gp_edge *x = &a->edges[e], *y = &b->edges[e];
    if (x->from != y->from || x->phase != y->phase || x->to_count != y->to_count ||
        memcmp(x->to, y->to, (size_t)x->to_count * sizeof *x->to))
      return false;
  }
  return true;
}

/* List the values that leave the pipeline; returns how many. */
static int list_exports(const gp_shape_plan *shape, gp_ref exports[MOST_EXPORTS]) {
  int count = 0;
  if (shape->loss != GP_NONE) exports[count++] = shape->loss;
  for (int k = 0; k < shape->output_count; k++) exports[count++] = shape->outputs[k];
  for (int k = 0; k < shape->input_grad_count; k++)
    if (shape->input_grads[k] != GP_NONE) exports[count++] = shape->input_grads[k];
  return count;
}

/* Part what only leads to buffers from F, where F cannot write these. */
static gp_status part_late(const gp_shaper *s, const gp_shape_spec *spec) {
  gp_ref exports[MOST_EXPORTS];
  char text[GP_WHY_LATE];
  gp_late_spec late = {.exports = exports,
                       .export_count = list_exports(s->shape, exports),
                       .runs = gp_plan_trains(spec->plan->kind),
                       .updates = spec->plan->schedule->batch > 0,
                       .why = gp_shape_why_late(spec, s->graph, text)};
  if (s->shape->count != GP_NONE) exports[late.export_count++] = s->shape->count;
  return late.why ? gp_graph_part_late(s->graph, &late) : GP_OK;
}

/* Cut the graph into stages; nodes that lead to an export are kept. */
static gp_status cut_stages(gp_shaper *s, const gp_shape_spec *spec) {
  gp_ref exports[MOST_EXPORTS];
  const gp_cut_spec cut = {.graph = s->graph,
                           .stage_of = s->env->stage_of,
                           .stage_count = s->env->stage_count,
                           .exports = exports,
                           .export_count = list_exports(s->shape, exports),
                           .drops_late = !gp_plan_trains(spec->plan->kind)};
  GP_TRY(gp_stages_build(&cut, &s->shape->stages));
  const gp_shape_plan *larger = s->shape->larger;
  s->shape->own_edges = larger && !same_edges(larger->stages, s->shape->stages);
  if (s->shape->own_edges) s->shape->first_edge = larger->stages->edge_count;
  return GP_OK;
}

/* Do all devices take packed weights? The stages are cut from one graph, so all must agree. */
static bool all_pack(const gp_plan_env *env) {
  for (int32_t d = 0; env->devices && d < env->device_count; d++)
    if (!env->devices[d].packs) return false;
  return true;
}

static bool all_sum_parts(const gp_plan_env *env) {
  for (int32_t d = 0; env->devices && d < env->device_count; d++)
    if (!env->devices[d].parts) return false;
  return env->devices != NULL;
}

/* May cheap ops stay by themselves, so that they can run again? Not on devices with memory of their
 * own: their fused ops round differently, and no mode may change a bit. */
static bool selects(const gp_plan_env *env) {
  for (int32_t d = 0; env->devices && d < env->device_count; d++)
    if (env->devices[d].space) return false;
  return gp_remat_is_by_stage(env->remat) && env->remat != GP_REMAT_OFFLOAD;
}

/* Are all devices GPUs? */
static bool all_gpus(const gp_plan_env *env) {
  for (int32_t d = 0; env->devices && d < env->device_count; d++)
    if (!env->devices[d].space) return false;
  return env->devices != NULL;
}

/* A CPU computes norms of halves in f32 and rounds their results alone. */
static gp_status gate(const gp_shaper *s) {
  const gp_gates_spec spec = {s->env->stage_of, all_gpus(s->env)};
  return gp_graph_gate(s->graph, &spec);
}

/* Put values where kernels of GPUs read them fastest. A check of all results (finite) would look at
 * what pads rows, too. */
static gp_status suit_gpus(const gp_shaper *s) {
  const gp_pad_spec rows = {s->env->stage_of, s->env->layer_count};
  GP_TRY(gp_graph_turn(s->graph));
  if (!s->env->fuse) return GP_OK;
  GP_TRY(gp_graph_join_losses(s->graph));
  return s->env->finite ? GP_OK : gp_graph_pad(s->graph, &rows);
}

/* Choose the order in which values lie in memory; what leaves the pipeline lies row-major. */
static gp_status arrange(const gp_shaper *s) {
  gp_ref fixed[2 + 2 * GP_MAX_BATCH_TENSORS] = {s->shape->loss, s->shape->count};
  int count = 2;
  for (int k = 0; k < s->shape->output_count; k++) fixed[count++] = s->shape->outputs[k];
  for (int k = 0; k < s->shape->input_grad_count; k++) fixed[count++] = s->shape->input_grads[k];
  const gp_arrange_spec spec = {s->env->stage_of, fixed, count};
  return gp_graph_arrange(s->graph, &spec);
}

/* The gradient comes before fusing and packing, so that its rules see single ops and the weight
 * itself. Packing comes before the cut, because packed copies are nodes. */
gp_status gp_shape_build(const gp_shape_spec *spec, const gp_traced_shape *from,
                         gp_shape_plan *shape) {
  gp_shaper s = {.env = spec->env,
                 .schedule = spec->plan->schedule,
                 .apart = spec->apart,
                 .hoisted = spec->hoisted,
                 .budgets = spec->plan->budgets,
                 .keeps = spec->plan->keeps,
                 .stays = spec->plan->stays,
                 .whole = spec->plan->whole,
                 .refine = spec->plan->refine,
                 .lowered = spec->lowered,
                 .graph = &from->trace->graph,
                 .shape = shape};
  shape->rows = from->rows;
  shape->micros = from->micros;
  shape->constant_count = from->constant_count;
  if (shape->larger) shape->first_constant = shape->larger->trace->graph.constant_count;
  GP_TRY(export_copy(&s, from->loss_sum, &shape->loss));
  GP_TRY(export_copy(&s, from->loss_count, &shape->count));
  for (; shape->output_count < from->output_count; shape->output_count++)
    GP_TRY(
        export_copy(&s, from->outputs[shape->output_count], &shape->outputs[shape->output_count]));
  GP_TRY(check_loss(&s));
  GP_TRY(differentiate(&s, spec->plan, from));
  if (s.env->fuse) GP_TRY(gp_graph_fuse(s.graph, selects(s.env)));
  if (s.env->fuse && all_sum_parts(s.env)) GP_TRY(gp_graph_split_norms(s.graph));
  GP_TRY(arrange(&s));
  if (s.env->fuse) GP_TRY(gate(&s));
  if (all_pack(s.env)) GP_TRY(gp_graph_pack(s.graph));
  if (all_gpus(s.env)) GP_TRY(suit_gpus(&s));
  GP_TRY(part_late(&s, spec));
  GP_TRY(cut_stages(&s, spec));
  gp_status status = gp_shape_add_recipes(&s);
  if (!status) status = gp_shape_add_touched(&s);
  if (!status) status = gp_shape_add_crossings(&s);
  if (!status) status = gp_shape_check_buffers(spec, s.graph, shape->stages);
  if (!status) status = gp_shape_add_programs(&s);
  gp_shape_free_recipes(&s);
  return status;
}

void gp_shape_free(gp_shape_plan *shape) {
  int32_t stages = shape->programs && shape->stages ? shape->stages->count : 0;
  for (int32_t s = 0; s < stages; s++) {
    gp_program *list[GP_STAGE_PROGRAM_KINDS];
    int count = gp_stage_programs_list(&shape->programs[s], list);
    for (int i = 0; i < count; i++) gp_program_free(list[i]);
    gp_free(shape->programs[s].constants);
  }
  gp_free(shape->programs);
  gp_free(shape->crossings);
  gp_shape_free_touched(shape);
  gp_stages_free(shape->stages);
  /* last, because the programs borrow its graph */
  gp_trace_free(shape->trace);
}
