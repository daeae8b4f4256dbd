/* plan/memory/left.c - which values the tasks of a micro-batch leave for later ones, and who reads
 * them.
 *
 * All of it is read off the operands of the programs, so it says what is needed, whatever slots
 * hold. */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/plan.h"

typedef struct lister {
  const gp_plan *plan;
  const gp_graph *graph;
  int32_t *reader; /* per value: the first node that reads it from its slot + 1 */
  gp_act *last;    /* per such value: the action whose program reads it last */
  gp_saved_visit visit;
  void *context;
} lister;

/* An action of a micro-batch, and what it runs. */
typedef struct step {
  gp_act act;
  const gp_program *program; /* NULL: nothing */
} step;

/* The F of the stage's first micro-batch; NULL: it has none here. */
static const gp_task *first_forward(const gp_plan *plan, int32_t stage) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    if (plan->tasks[t].op == GP_ACT_F && plan->tasks[t].stage == stage) return &plan->tasks[t];
  return NULL;
}

static void note_readers(const lister *l, const step *s) {
  for (int32_t n = 0; s->program && n < s->program->instr_count; n++) {
    const gp_instr *instr = &s->program->instrs[n];
    const gp_node *node = &l->graph->nodes[instr->node];
    for (int i = 0; i < node->n_in; i++) {
      const gp_ref base = gp_graph_base(l->graph, node->in[i]);
      const int32_t from = instr->in[i].base;
      if (!gp_base_is_kept(from) && from != GP_BASE_CARRIED) continue;
      if (!l->reader[base]) l->reader[base] = instr->node + 1;
      l->last[base] = s->act;
    }
  }
}

static void visit_value(const lister *l, int32_t stage, gp_act act, int32_t maker, gp_ref r,
                        bool away) {
  const gp_graph *graph = l->graph;
  const gp_node *node = &graph->nodes[maker];
  const gp_node *reader = l->reader[r] ? &graph->nodes[l->reader[r] - 1] : NULL;
  gp_saved_info info = {.stage = stage,
                        .layer = node->layer,
                        .label = graph->labels[node->label],
                        .op = gp_op_get(node->op)->name,
                        .bytes = gp_meta_bytes(&graph->values[r].meta),
                        .maker = act,
                        .last = reader ? l->last[r] : act,
                        .away = away,
                        .reader = reader ? gp_op_get(reader->op)->name : NULL,
                        .reader_label = reader ? graph->labels[reader->label] : NULL};
  gp_meta_print(&graph->values[r].meta, info.shape, sizeof info.shape);
  l->visit(l->context, &info);
}

/* Does a program of the action leave output k of an instruction for a later one? */
static bool leaves(gp_act act, const gp_instr *instr, int k) {
  const int32_t base = instr->out[k].base;
  if (act == GP_ACT_F) return gp_instr_keeps(instr, k);
  if (act == GP_ACT_I) return base == GP_BASE_CARRIED;
  const bool again = gp_base_is_kept(base) && !gp_base_is_saved(base);
  return act == GP_ACT_R && again && !(instr->ahead >> k & 1);
}

static void list_left(const lister *l, int32_t stage, const step *s, bool away) {
  for (int32_t n = 0; s->program && n < s->program->instr_count; n++) {
    const gp_instr *instr = &s->program->instrs[n];
    const gp_ref out = l->graph->nodes[instr->node].out;
    for (int k = 0; k < instr->call.n_out; k++)
      if (leaves(s->act, instr, k) && l->graph->values[out + k].base == out + k)
        visit_value(l, stage, s->act, instr->node, out + k,
                    away && gp_base_is_away(instr->out[k].base));
  }
}

/* List what the first micro-batch of a stage leaves. */
static void list_stage(const lister *l, int32_t stage) {
  enum { STEPS = 5 };
  const gp_stage_programs *p = &l->plan->shapes[0].programs[stage];
  const gp_task *first = first_forward(l->plan, stage);
  const int v = !first || first->kept ? GP_KEEPS_ALL : GP_BY_MODE;
  const bool apart = p->input[v] || p->weight[v];
  const step steps[STEPS] = {{GP_ACT_F, p->forward[v]},
                             {GP_ACT_R, v == GP_BY_MODE ? p->recompute : NULL},
                             {GP_ACT_B, apart ? NULL : p->backward[v]},
                             {GP_ACT_I, p->input[v]},
                             {GP_ACT_W, p->weight[v]}};
  for (int i = 1; i < STEPS; i++) note_readers(l, &steps[i]);
  for (int i = 0; i < STEPS; i++) list_left(l, stage, &steps[i], first && first->away);
}

gp_status gp_plan_each_left(const gp_plan *plan, gp_saved_visit visit, void *context) {
  lister l = {plan, &plan->shapes[0].trace->graph, NULL, NULL, visit, context};
  const size_t values = (size_t)l.graph->value_count + 1;
  if (!gp_plan_trains(plan->kind)) return GP_OK;
  GP_TRY(gp_alloc_array(values, sizeof *l.reader, (void **)&l.reader));
  gp_status status = gp_alloc_array(values, sizeof *l.last, (void **)&l.last);
  for (int32_t s = 0; !status && s < plan->stage_count; s++) list_stage(&l, s);
  gp_free(l.reader);
  gp_free(l.last);
  return status;
}
