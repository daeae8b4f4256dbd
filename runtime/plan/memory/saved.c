/* plan/memory/saved.c - which values a stage saves between F and its backward pass, and who reads
 * them. */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/plan.h"

typedef struct lister {
  const gp_plan *plan;
  const gp_graph *graph;
  int32_t *reader; /* per value: the first node that reads it from its slot + 1 */
  gp_saved_visit visit;
  void *context;
} lister;

/* Do the first micro-batches of the stage keep everything? */
static bool keeps_all(const gp_plan *plan, int32_t stage) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    if (plan->tasks[t].op == GP_ACT_F && plan->tasks[t].stage == stage) return plan->tasks[t].kept;
  return true;
}

static bool is_saved(gp_place place) {
  return place.base == GP_BASE_SAVED || place.base == GP_BASE_AWAY;
}

static void note_readers(const lister *l, const gp_program *program) {
  for (int32_t n = 0; program && n < program->instr_count; n++) {
    const gp_instr *instr = &program->instrs[n];
    const gp_node *node = &l->graph->nodes[instr->node];
    for (int i = 0; i < node->n_in; i++) {
      const gp_ref base = gp_graph_base(l->graph, node->in[i]);
      if (is_saved(instr->in[i]) && !l->reader[base]) l->reader[base] = instr->node + 1;
    }
  }
}

/* Do the first micro-batches of the stage put what goes to the host there? */
static bool goes(const gp_plan *plan, int32_t stage) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    if (plan->tasks[t].op == GP_ACT_F && plan->tasks[t].stage == stage) return plan->tasks[t].away;
  return false;
}

static void visit_value(const lister *l, int32_t stage, int32_t maker, gp_ref r, bool away) {
  const gp_graph *graph = l->graph;
  const gp_node *node = &graph->nodes[maker];
  const gp_node *reader = l->reader[r] ? &graph->nodes[l->reader[r] - 1] : NULL;
  gp_saved_info info = {.stage = stage,
                        .layer = node->layer,
                        .label = graph->labels[node->label],
                        .op = gp_op_get(node->op)->name,
                        .bytes = gp_meta_bytes(&graph->values[r].meta),
                        .away = away,
                        .reader = reader ? gp_op_get(reader->op)->name : NULL,
                        .reader_label = reader ? graph->labels[reader->label] : NULL};
  gp_meta_print(&graph->values[r].meta, info.shape, sizeof info.shape);
  l->visit(l->context, &info);
}

static void list_stage(const lister *l, int32_t stage) {
  const gp_stage_programs *p = &l->plan->shapes[0].programs[stage];
  const int variant = keeps_all(l->plan, stage) ? GP_KEEPS_ALL : GP_BY_MODE;
  const gp_program *forward = p->forward[variant];
  const bool away = goes(l->plan, stage);
  if (variant == GP_BY_MODE) note_readers(l, p->recompute);
  note_readers(l, p->backward[variant]);
  note_readers(l, p->input[variant]);
  note_readers(l, p->weight[variant]);
  for (int32_t n = 0; forward && n < forward->instr_count; n++) {
    const gp_instr *instr = &forward->instrs[n];
    const gp_ref out = l->graph->nodes[instr->node].out;
    for (int k = 0; k < instr->call.n_out; k++)
      if (gp_instr_keeps(instr, k) && l->graph->values[out + k].base == out + k)
        visit_value(l, stage, instr->node, out + k, away && instr->out[k].base == GP_BASE_AWAY);
  }
}

gp_status gp_plan_each_saved(const gp_plan *plan, gp_saved_visit visit, void *context) {
  lister l = {plan, &plan->shapes[0].trace->graph, NULL, visit, context};
  if (!gp_plan_trains(plan->kind)) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)l.graph->value_count + 1, sizeof *l.reader, (void **)&l.reader));
  for (int32_t s = 0; s < plan->stage_count; s++) list_stage(&l, s);
  gp_free(l.reader);
  return GP_OK;
}
