/* plan/edge/flow.c - see flow.h.
 *
 * A device that cannot go on sleeps until a value that it reads is made, or a slot becomes free. So
 * a run costs what the actions touch.
 */
#include "plan/edge/flow.h"

#include <string.h>

#include "base/memory.h"

/* Position and copy are one number, so that one memset forgets both when a run begins. */
int32_t gp_flow_maker(const gp_flow *flow, int32_t edge, int32_t micro, int32_t *device) {
  const gp_plan *plan = flow->plan;
  int32_t made = flow->made[gp_flow_cell(flow, edge, micro)] - 1;
  if (made < 0) return -1;
  *device = gp_plan_maker(plan, edge, made % plan->copy_count);
  return made / plan->copy_count;
}

/* ---- actions ------------------------------------------------------------------------------- */

static gp_flow_use use_of(const gp_flow *f, int32_t device, int32_t action, int32_t edge) {
  const gp_action *a = &f->runner.actions[action];
  return (gp_flow_use){device, action - f->runner.first[device], a->stage, edge, a->micro};
}

/* The maker of a value needs room for it when it makes it, not when it uses it again. */
static int32_t lacks(void *context, int32_t device, int32_t action) {
  const gp_flow *f = context;
  const gp_action *a = &f->runner.actions[action];
  const gp_edge_list *touched = gp_edge_touched(f->plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    int32_t edge = touched->edges[i];
    bool own = f->from[edge] == a->stage;
    bool made = f->made[gp_flow_cell(f, edge, a->micro)];
    if (!own && !made) return GP_LACKS_WORD;
    if (!own || made || !f->watch->may_make) continue;
    gp_flow_use use = use_of(f, device, action, edge);
    if (!f->watch->may_make(f->watch->context, &use)) return GP_LACKS_WORD;
  }
  return GP_LACKS_NOTHING;
}

/* Wakes all devices of a stage: which of them has the micro-batch is not worth looking up. */
static void wake_stage(gp_flow *f, int32_t stage) {
  for (int32_t copy = 0; copy < f->plan->copy_count; copy++)
    gp_runner_wake(&f->runner, f->plan->placement[gp_plan_holder(f->plan, stage, copy)]);
}

static void make(gp_flow *f, const gp_flow_use *use, int32_t *made) {
  const gp_plan *plan = f->plan;
  const gp_edge *edge = gp_plan_edge(plan, use->edge);
  *made = use->position * plan->copy_count + gp_plan_copy_on(plan, use->stage, use->device) + 1;
  if (f->watch->makes) f->watch->makes(f->watch->context, use);
  for (int32_t r = 0; r < edge->to_count; r++) wake_stage(f, edge->to[r]);
}

/* Readers are woken when a value is made, its maker when it was used. */
static gp_status ran(void *context, int32_t device, int32_t begin, int32_t end) {
  gp_flow *f = context;
  const gp_action *a = &f->runner.actions[begin];
  const gp_edge_list *touched = gp_edge_touched(f->plan, a);
  (void)end; /* lowered lists have no joined actions */
  for (int32_t i = 0; i < touched->count; i++) {
    gp_flow_use use = use_of(f, device, begin, touched->edges[i]);
    int32_t *made = &f->made[gp_flow_cell(f, use.edge, a->micro)];
    if (!*made && f->from[use.edge] == a->stage) make(f, &use, made);
    if (f->watch->uses) f->watch->uses(f->watch->context, &use);
    if (f->watch->may_make) wake_stage(f, f->from[use.edge]);
  }
  return GP_OK;
}

bool gp_flow_run(gp_flow *f, const gp_flow_watch *watch, const int32_t *order) {
  f->watch = watch;
  f->runner.context = f;
  memset(f->made, 0, gp_flow_cell(f, f->plan->edge_count, 0) * sizeof *f->made);
  return !gp_runner_run(&f->runner, order) && f->runner.left == 0;
}

/* ---- new and free -------------------------------------------------------------------------- */

gp_status gp_flow_new(const gp_plan *plan, const gp_lowered *lowered, gp_flow *flow) {
  size_t cells;
  *flow = (gp_flow){.plan = plan,
                    .runner = {.actions = lowered->actions,
                               .first = lowered->first,
                               .device_count = plan->device_count,
                               .rule = GP_TURNS_FIRST,
                               .lacks = lacks,
                               .ran = ran}};
  GP_TRY(gp_size_mul((size_t)plan->edge_count, (size_t)plan->micro_count, &cells));
  gp_status status = gp_runner_new(&flow->runner);
  if (!status) status = gp_alloc_array(cells + 1, sizeof(int32_t), (void **)&flow->made);
  if (!status)
    status = gp_alloc_array((size_t)plan->edge_count + 1, sizeof(int32_t), (void **)&flow->from);
  if (status) return gp_flow_free(flow), status;
  for (int32_t e = 0; e < plan->edge_count; e++) flow->from[e] = gp_plan_edge(plan, e)->from;
  return GP_OK;
}

void gp_flow_free(gp_flow *flow) {
  gp_runner_free(&flow->runner);
  gp_free(flow->made);
  gp_free(flow->from);
  *flow = (gp_flow){0};
}
