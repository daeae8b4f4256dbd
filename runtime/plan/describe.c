/* plan/describe.c - describes a plan to people: its lowered schedule as text, its edges, what its
 * stages hold.
 *
 * The text has the format of torch.distributed.pipelining's CSV, so that it can be compared with
 * theirs. Sends and receives are no tasks here: they are read off the edges that a task waits for
 * and publishes.
 */
#include <stdio.h>

#include "base/text.h"
#include "plan/channels.h"
#include "plan/edge/step_edges.h"
#include "schedule/schedule.h"

/* ---- text ---------------------------------------------------------------------------------- */

/* The row of a device under construction. */
typedef struct printer {
  const gp_plan *plan;
  gp_text text;
} printer;

/* Append a part, with a comma before it unless it is the first. */
static void put(printer *p, const char *part) {
  gp_text_put(&p->text, "%s%s", p->text.length ? "," : "", part);
}

/* Does the micro-batch cross devices between this device and that stage? If the stage has two
 * copies, the one that runs the micro-batch counts. */
static bool crosses(const gp_plan *plan, int32_t device, int32_t stage, int32_t micro) {
  if (plan->copy_count == 1) return plan->placement[stage] != device;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    if (plan->tasks[t].stage == stage && plan->tasks[t].micro == micro &&
        plan->tasks[t].op <= GP_ACT_R)
      return false;
  return true;
}

/* Print "0SEND_F3", or "0SEND_F3>2" to a stage that is not the neighbour; receives likewise, with
 * "<". */
static void put_message(printer *p, const gp_task *task, const gp_edge *edge, int32_t other) {
  bool send = edge->from == task->stage, backward = edge->phase == GP_BACKWARD;
  gp_act act =
      backward ? (send ? GP_ACT_SEND_B : GP_ACT_RECV_B) : (send ? GP_ACT_SEND_F : GP_ACT_RECV_F);
  char text[64], far[24] = "";
  int32_t next = task->stage + (backward == send ? -1 : 1);
  if (other != next) snprintf(far, sizeof far, "%c%d", send ? '>' : '<', (int)other);
  snprintf(text, sizeof text, "%d%s%d%s", (int)task->stage, gp_act_name(act), (int)task->micro,
           far);
  put(p, text);
}

/* Print what the task receives from other devices; it stands before the action. */
static void put_receives(printer *p, int32_t device, const gp_task *task) {
  for (int32_t u = 0; u < task->use_count; u++) {
    if (gp_plan_step_edge(p->plan, task->uses[u].edge)) continue;
    const gp_edge *edge = gp_plan_edge(p->plan, task->uses[u].edge);
    if (task->uses[u].wait && crosses(p->plan, device, edge->from, task->micro))
      put_message(p, task, edge, edge->from);
  }
}

/* Print what the task sends to other devices; it stands after the action. */
static void put_sends(printer *p, int32_t device, const gp_task *task) {
  for (int32_t u = 0; u < task->use_count; u++) {
    if (gp_plan_step_edge(p->plan, task->uses[u].edge)) continue;
    const gp_edge *edge = gp_plan_edge(p->plan, task->uses[u].edge);
    for (int32_t r = 0; task->uses[u].publish && r < edge->to_count; r++)
      if (crosses(p->plan, device, edge->to[r], task->micro))
        put_message(p, task, edge, edge->to[r]);
  }
}

gp_action gp_task_action(const gp_plan *plan, const gp_task *task, int64_t micro) {
  const int32_t group = plan->batch ? plan->batch : plan->step_micros;
  const int64_t moved = micro - task->micro;
  if (!gp_act_has_micro(task->op)) micro = -1;
  if (task->op == GP_ACT_U) micro /= group; /* an update is named by its number */
  return (gp_action){.op = (uint8_t)task->op,
                     .stage = task->stage,
                     .micro = (int32_t)micro,
                     .version = plan->batch ? (int32_t)(task->version + moved / plan->batch) : -1};
}

static void put_task(printer *p, const gp_task *task) {
  char text[GP_ACTION_TEXT];
  gp_action action = gp_task_action(p->plan, task, task->micro);
  put(p, gp_action_print(&action, text));
}

size_t gp_plan_print(const gp_plan *plan, int device, char *text, size_t size) {
  printer p = {plan, gp_text_begin(text, size)};
  if (device >= plan->device_count) return 0;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    put_receives(&p, device, task);
    put_task(&p, task);
    put_sends(&p, device, task);
  }
  return p.text.length;
}

/* ---- figures ------------------------------------------------------------------------------- */

int gp_plan_edge_count(const gp_plan *plan) { return plan->edge_count; }

/* Copies may need different numbers of slots. */
static int most_slots(const gp_plan *plan, int edge) {
  int most = 0;
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    const int slots = plan->channels[gp_plan_channel(plan, edge, copy)].slots;
    if (slots > most) most = slots;
  }
  return most;
}

void gp_plan_edge_info(const gp_plan *plan, int edge, gp_edge_info *info) {
  const gp_edge *e = gp_plan_edge(plan, edge);
  const gp_shape_plan *shape = &plan->shapes[gp_plan_edge_is_small(plan, edge)];
  const gp_graph *graph = &shape->trace->graph;
  int32_t node = graph->values[e->value].node;
  *info = (gp_edge_info){.label = node < 0 ? "input" : graph->labels[graph->nodes[node].label],
                         .from = e->from,
                         .to_count = e->to_count,
                         .to = e->to,
                         .backward = e->phase == GP_BACKWARD,
                         .slots = most_slots(plan, edge),
                         .bytes = plan->channels[edge].bytes};
}

/* Bytes of all parts of one micro-batch. */
static size_t bytes_of_one(const gp_slots *slots, int kind) {
  return gp_parts_sum(&slots->bytes[kind]);
}

/* The most slots of a part. */
static int count_of(const gp_slots *slots, int kind) {
  int count = 0;
  for (int k = kind; k < kind + GP_PARTS; k++)
    if (slots->count[k] > count) count = slots->count[k];
  return count;
}

/* Bytes of all slots of a kind. */
static size_t bytes_of_all(const gp_slots *slots, int kind) {
  size_t bytes = 0;
  for (int k = kind; k < kind + GP_PARTS; k++) bytes += (size_t)slots->count[k] * slots->bytes[k];
  return bytes;
}

/* Slots are counted per kind; of some parts there are fewer. If no micro-batch keeps all its
 * values, kept_bytes is what all slots together keep of results that may not be computed twice. */
void gp_plan_stage_info(const gp_plan *plan, int stage, int copy, gp_stage_info *info) {
  const gp_slots *s = &plan->slots[gp_plan_holder(plan, stage, copy)];
  const size_t dropped = bytes_of_all(s, GP_SLOT_DROPPED) + bytes_of_all(s, GP_SLOT_AWAY);
  const int kept = count_of(s, GP_SLOT_KEPT);
  *info = (gp_stage_info){.versions = plan->versions[gp_plan_holder(plan, stage, copy)].live,
                          .kept = kept,
                          .recomputed = count_of(s, GP_SLOT_RECOMPUTED),
                          .held = count_of(s, GP_SLOT_DROPPED),
                          .carried = s->count[GP_SLOT_CARRIED],
                          .kept_bytes = kept ? bytes_of_one(s, GP_SLOT_KEPT) : dropped,
                          .recomputed_bytes = bytes_of_one(s, GP_SLOT_RECOMPUTED),
                          .held_bytes = bytes_of_one(s, GP_SLOT_DROPPED),
                          .carried_bytes = s->bytes[GP_SLOT_CARRIED],
                          .away_bytes =
                              count_of(s, GP_SLOT_FETCHED) ? bytes_of_one(s, GP_SLOT_AWAY) : 0,
                          .partials = plan->partial_count[gp_plan_holder(plan, stage, copy)],
                          .owned_bytes = plan->owned[gp_plan_holder(plan, stage, copy)],
                          .gradient_bytes = plan->asked[stage].grads};
}

/* The first task of that kind stands for all, because micro-batches differ by a row at most. */
void gp_plan_each_op(const gp_plan *plan, int stage, gp_act act,
                     void (*f)(void *context, const char *op, double flop, double bytes),
                     void *context) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->stage != stage || task->op != act || !task->program || task->shape != 0) continue;
    const gp_graph *graph = task->program->graph;
    for (int32_t n = 0; n < task->program->instr_count; n++) {
      const gp_node *node = &graph->nodes[task->program->instrs[n].node];
      const gp_cost cost = gp_node_cost(graph, node);
      f(context, gp_op_name(node->op), cost.flop, cost.bytes);
    }
    return;
  }
}

static void add_cost(void *context, const char *op, double flop, double bytes) {
  gp_cost *sum = context;
  (void)op;
  sum->flop += flop;
  sum->bytes += bytes;
}

int gp_plan_gathers(const gp_plan *plan, int stage, gp_act act) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->stage == stage && task->op == act && task->program)
      return (int)task->program->gather_count;
  }
  return 0;
}

void gp_plan_cost(const gp_plan *plan, int stage, gp_act act, double *flop, double *bytes) {
  gp_cost sum = {0};
  gp_plan_each_op(plan, stage, act, add_cost, &sum);
  *flop = sum.flop;
  *bytes = sum.bytes;
}
