/* plan/edge/flow.c - see flow.h.
 *
 * A device that cannot go on sleeps until somebody makes a value that it reads, or frees a slot, so
 * a run costs what the actions touch. Sleeping devices have no bit in `ready`, whose bits lie in
 * the caller's order of devices: the first bit is the first device that may go on.
 */
#include "plan/edge/flow.h"

#include <string.h>

#include "base/memory.h"

/* Sizes of micro-batches touch different edges where the model branches on the number of rows. */
const gp_edge_list *gp_flow_touched(const gp_plan *plan, const gp_action *action) {
  static const gp_edge_list none;
  if (action->op > GP_ACT_R) return &none;
  int shape = plan->shapes[1].micros ? gp_plan_shape_of(plan, action->micro) : 0;
  return gp_shape_touched(&plan->shapes[shape], action->stage, (gp_act)action->op);
}

static int32_t copy_on(const gp_plan *plan, int32_t stage, int32_t device) {
  return plan->copy_count > 1 && plan->placement[gp_plan_holder(plan, stage, 0)] != device;
}

/* Position and copy are one number, to be zeroed at once when a run begins. */
int32_t gp_flow_maker(const gp_flow *flow, int32_t edge, int32_t micro, int32_t *device) {
  const gp_plan *plan = flow->plan;
  int32_t made = flow->made[gp_flow_cell(flow, edge, micro)] - 1;
  if (made < 0) return -1;
  *device = gp_plan_maker(plan, edge, made % plan->copy_count);
  return made / plan->copy_count;
}

/* ---- waking -------------------------------------------------------------------------------- */

static void wake(gp_flow *f, int32_t device) {
  int32_t rank = f->rank[device];
  f->ready[rank / 64] |= UINT64_C(1) << rank % 64;
}

/* On either of its devices: which of them has the micro-batch is not worth looking up. */
static void wake_stage(gp_flow *f, int32_t stage) {
  for (int32_t copy = 0; copy < f->plan->copy_count; copy++)
    wake(f, f->plan->placement[gp_plan_holder(f->plan, stage, copy)]);
}

/* The first device that may be able to go on; -1: none. */
static int32_t first_ready(const gp_flow *f) {
  for (int32_t w = 0; w <= f->plan->device_count / 64; w++) {
    uint64_t bits = f->ready[w];
    if (!bits) continue;
    int32_t rank = 64 * w;
    for (; !(bits & 1); bits >>= 1) rank++;
    return f->device[rank];
  }
  return -1;
}

/* ---- actions ------------------------------------------------------------------------------- */

static const gp_action *action_of(const gp_flow *f, int32_t device) {
  int32_t at = f->lowered->first[device] + f->next[device];
  return at < f->lowered->first[device + 1] ? &f->lowered->actions[at] : NULL;
}

static gp_flow_use use_of(const gp_flow *f, int32_t device, const gp_action *a, int32_t edge) {
  return (gp_flow_use){device, f->next[device], a->stage, edge, a->micro};
}

/* The maker of a value needs room for it when it makes it, not when it uses it again. */
static bool can_run(const gp_flow *f, int32_t device, const gp_action *a) {
  const gp_edge_list *touched = gp_flow_touched(f->plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    int32_t edge = touched->edges[i];
    bool own = f->from[edge] == a->stage;
    bool made = f->made[gp_flow_cell(f, edge, a->micro)];
    if (!own && !made) return false;
    gp_flow_use use = use_of(f, device, a, edge);
    if (own && !made && f->watch->may_make && !f->watch->may_make(f->watch->context, &use))
      return false;
  }
  return true;
}

/* Readers are woken by what was made, the maker by what was read. */
static void run(gp_flow *f, int32_t device, const gp_action *a) {
  const gp_plan *plan = f->plan;
  const gp_edge_list *touched = gp_flow_touched(plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    gp_flow_use use = use_of(f, device, a, touched->edges[i]);
    int32_t *made = &f->made[gp_flow_cell(f, use.edge, a->micro)];
    if (!*made && f->from[use.edge] == a->stage) {
      const gp_edge *edge = gp_plan_edge(plan, use.edge);
      *made = use.position * plan->copy_count + copy_on(plan, a->stage, device) + 1;
      if (f->watch->makes) f->watch->makes(f->watch->context, &use);
      for (int32_t r = 0; r < edge->to_count; r++) wake_stage(f, edge->to[r]);
    }
    if (f->watch->uses) f->watch->uses(f->watch->context, &use);
    if (f->watch->may_make) wake_stage(f, f->from[use.edge]);
  }
  f->next[device]++;
}

static void begin(gp_flow *f, const int32_t *order) {
  int32_t devices = f->plan->device_count;
  memset(f->next, 0, (size_t)devices * sizeof *f->next);
  memset(f->made, 0, gp_flow_cell(f, f->plan->edge_count, 0) * sizeof *f->made);
  for (int32_t i = 0; i < devices; i++) {
    f->device[i] = order ? order[i] : i;
    f->rank[f->device[i]] = i;
  }
  for (int32_t d = 0; d < devices; d++) wake(f, d);
}

/* Whoever cannot go on loses its bit; what wakes it may have come before, and is seen then. */
bool gp_flow_run(gp_flow *f, const gp_flow_watch *watch, const int32_t *order) {
  int64_t left = f->lowered->first[f->plan->device_count];
  f->watch = watch;
  begin(f, order);
  for (int32_t d; (d = first_ready(f)) >= 0;) {
    const gp_action *a = action_of(f, d);
    if (a && can_run(f, d, a)) {
      run(f, d, a);
      left--;
    } else {
      f->ready[f->rank[d] / 64] &= ~(UINT64_C(1) << f->rank[d] % 64);
    }
  }
  return left == 0;
}

/* ---- new and free -------------------------------------------------------------------------- */

gp_status gp_flow_new(const gp_plan *plan, const gp_lowered *lowered, gp_flow *flow) {
  size_t devices = (size_t)plan->device_count, cells;
  *flow = (gp_flow){.plan = plan, .lowered = lowered};
  GP_TRY(gp_size_mul((size_t)plan->edge_count, (size_t)plan->micro_count, &cells));
  gp_status status = gp_alloc_array(3 * devices, sizeof(int32_t), (void **)&flow->next);
  if (!status) status = gp_alloc_array(cells + 1, sizeof(int32_t), (void **)&flow->made);
  if (!status)
    status = gp_alloc_array((size_t)plan->edge_count + 1, sizeof(int32_t), (void **)&flow->from);
  if (!status) status = gp_alloc_array(devices / 64 + 1, sizeof(uint64_t), (void **)&flow->ready);
  if (status) return gp_flow_free(flow), status;
  for (int32_t e = 0; e < plan->edge_count; e++) flow->from[e] = gp_plan_edge(plan, e)->from;
  flow->rank = flow->next + devices;
  flow->device = flow->rank + devices;
  return GP_OK;
}

void gp_flow_free(gp_flow *flow) {
  gp_free(flow->next);
  gp_free(flow->made);
  gp_free(flow->from);
  gp_free(flow->ready);
  *flow = (gp_flow){0};
}
