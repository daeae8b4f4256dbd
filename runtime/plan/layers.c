/* plan/layers.c - what each layer adds to the stage that it is in: kept values, FLOP, bytes.
 *
 * Every instruction belongs to a node, and every node to a layer of the outermost Sequential. The
 * places of the programs say what is kept, so the sums over layers are the figures of the stage.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/memory/places.h"
#include "plan/plan.h"

enum { KEPT = 1 };

/* Add up what the instructions of a forward program compute and move, by layer. */
static void add_costs(const gp_program *forward, gp_layer_info *infos, int count) {
  for (int32_t n = 0; n < forward->instr_count; n++) {
    const gp_node *node = &forward->graph->nodes[forward->instrs[n].node];
    if (node->layer >= count) continue;
    gp_cost cost = gp_node_cost(forward->graph, node);
    infos[node->layer].flop += cost.flop;
    infos[node->layer].bytes += cost.bytes;
  }
}

/* Add up what the forward of a stage saves. Views have no place of their own. */
static gp_status add_kept(const gp_program *forward, gp_layer_info *infos, int count,
                          bool *is_forward) {
  const gp_graph *graph = forward->graph;
  for (int32_t n = 0; n < forward->instr_count; n++) {
    const gp_instr *instr = &forward->instrs[n];
    const gp_node *node = &graph->nodes[instr->node];
    for (int k = 0; k < node->n_out; k++) {
      gp_ref r = node->out + k;
      size_t bytes;
      is_forward[r] = true;
      if (node->layer >= count || !gp_instr_keeps(instr, k)) continue;
      GP_TRY(gp_size_align(gp_meta_bytes(&graph->values[r].meta), GP_PLACE_ALIGNMENT, &bytes));
      infos[node->layer].kept_bytes += bytes;
    }
  }
  return GP_OK;
}

/* Add up what the I of a stage leaves for W. */
static gp_status add_carried(const gp_program *input, gp_layer_info *infos, int count) {
  const gp_graph *graph = input->graph;
  for (int32_t n = 0; n < input->instr_count; n++) {
    const gp_instr *instr = &input->instrs[n];
    const gp_node *node = &graph->nodes[instr->node];
    for (int k = 0; node->layer < count && k < node->n_out; k++) {
      size_t bytes;
      if (instr->out[k].base != GP_BASE_CARRIED) continue;
      GP_TRY(gp_size_align(gp_meta_bytes(&graph->values[node->out + k].meta), GP_PLACE_ALIGNMENT,
                           &bytes));
      infos[node->layer].carried_bytes += bytes;
    }
  }
  return GP_OK;
}

/* Note which layers' backward reads what the layer was given: an input of the model, or what an
 * earlier layer's forward made. */
static void note_reads(const gp_program *backward, gp_layer_info *infos, int count,
                       const bool *is_forward) {
  const gp_graph *graph = backward->graph;
  for (int32_t n = 0; n < backward->instr_count; n++) {
    const gp_node *node = &graph->nodes[backward->instrs[n].node];
    for (int k = 0; node->layer < count && k < node->n_in; k++) {
      gp_ref r = gp_graph_base(graph, node->in[k]);
      const gp_value *value = &graph->values[r];
      bool earlier = value->kind == GP_VALUE_INPUT ||
                     (is_forward[r] && graph->nodes[value->node].layer < node->layer);
      if (earlier) infos[node->layer].reads_input = true;
    }
  }
}

static gp_status add_stage(const gp_stage_programs *stage, gp_layer_info *infos, int count) {
  const gp_program *forward = stage->forward[KEPT], *backward = stage->backward[KEPT];
  const gp_program *input = stage->input[KEPT];
  bool *is_forward;
  if (!forward) return GP_OK;
  add_costs(forward, infos, count);
  GP_TRY(
      gp_alloc_array((size_t)forward->graph->value_count + 1, sizeof(bool), (void **)&is_forward));
  gp_status status = add_kept(forward, infos, count, is_forward);
  if (!status && backward) note_reads(backward, infos, count, is_forward);
  if (!status && input) status = add_carried(input, infos, count);
  gp_free(is_forward);
  return status;
}

gp_status gp_plan_layers(const gp_plan *plan, gp_layer_info *infos, int count) {
  const gp_stage_programs *stages = plan->shapes[0].programs;
  gp_status status = GP_OK;
  for (int i = 0; i < count; i++) infos[i] = (gp_layer_info){0};
  for (int32_t s = 0; !status && stages && s < plan->stage_count; s++)
    status = add_stage(&stages[s], infos, count);
  return status;
}
